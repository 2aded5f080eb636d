"""Derivatives of products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._sparse_payload import is_sparse
from ..._state import SPARSE
from ..._tensor import Tensor
from .pointwise import conj_of


def adjoint_of(x: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    return conj_of(ops.transpose(x, -2, -1))


def scaled(grad: Tensor, factor: Any) -> Tensor:
    """`grad` times a number (or its conjugate); itself for 1."""
    return grad if factor == 1 else grad * conj_of(factor)


def _flat(x: Tensor) -> Tensor:
    """All dimensions but the last as one."""
    return x if x.dim() == 2 else ops.reshape(x, [-1, x.shape[-1]])


def _by_columns(matrix: Tensor) -> bool:
    """Whether a matrix lies column after column: its gradient is laid out like it."""
    return not (SPARSE and is_sparse(matrix)) and matrix.stride() == (1, matrix.shape[0])


def matmul_gradient(
    grad: Tensor, self: Tensor, other: Tensor, needs: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Both gradients of a product of vectors, matrices or batches; the engine sums over broadcast batches."""
    left, right = self.dim(), other.dim()
    grad_self = grad_other = None
    if left == 1 and right == 1:
        return (grad * conj_of(other) if needs[0] else None, grad * conj_of(self) if needs[1] else None)
    if left == 1:
        row = ops.unsqueeze(grad, -2)
        if needs[0]:
            grad_self = ops.squeeze(ops.matmul(row, adjoint_of(other)), -2)
            if grad_self.dim() > 1:
                grad_self = ops.sum(grad_self, list(range(grad_self.dim() - 1)))
        if needs[1]:
            grad_other = conj_of(ops.unsqueeze(self, -1)) * row
        return grad_self, grad_other
    if right == 1:
        column = ops.unsqueeze(grad, -1)
        if needs[0]:
            grad_self = column * conj_of(other)
        if needs[1]:
            grad_other = ops.mv(ops.transpose(conj_of(_flat(self)), 0, 1), ops.reshape(grad, [-1]))
        return grad_self, grad_other
    if left == 2 and right == 2:
        if needs[0]:
            by_columns = _by_columns(self)
            grad_self = (
                ops.t(ops.mm(conj_of(other), ops.t(grad))) if by_columns else ops.matmul(grad, adjoint_of(other))
            )
        if needs[1]:
            by_columns = _by_columns(other)
            grad_other = ops.t(ops.mm(ops.t(grad), conj_of(self))) if by_columns else ops.mm(adjoint_of(self), grad)
        return grad_self, grad_other
    if right == 2:
        if needs[0]:
            grad_self = ops.matmul(grad, adjoint_of(other))
        if needs[1]:
            grad_other = ops.mm(adjoint_of(_flat(self)), _flat(grad))
        return grad_self, grad_other
    if needs[0]:
        grad_self = ops.matmul(grad, adjoint_of(other))
    if needs[1]:
        grad_other = ops.matmul(adjoint_of(self), grad)
    return grad_self, grad_other


def linear_input_gradient(grad: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the input of a linear map."""
    if weight.dim() == 1:
        return ops.unsqueeze(grad, -1) * conj_of(weight)
    return ops.matmul(grad, conj_of(weight))


def linear_weight_gradient(grad: Tensor, input: Tensor, ndim: int) -> Tensor:
    """The gradient of a weight of one or two dimensions."""
    if ndim == 1:
        return ops.sum(_flat(ops.unsqueeze(grad, -1) * conj_of(input)), 0)
    source = ops.unsqueeze(input, 0) if input.dim() == 1 else _flat(input)
    return ops.mm(ops.t(_rows(grad)), conj_of(source))


def linear_bias_gradient(grad: Tensor, ndim: int) -> Tensor:
    """The gradient of a bias beside a weight of one or two dimensions."""
    return ops.sum(grad) if ndim == 1 else ops.sum(_rows(grad), 0)


def _rows(grad: Tensor) -> Tensor:
    return ops.unsqueeze(grad, 0) if grad.dim() == 1 else _flat(grad)


__all__ = [
    "adjoint_of",
    "linear_bias_gradient",
    "linear_input_gradient",
    "linear_weight_gradient",
    "matmul_gradient",
    "scaled",
]
