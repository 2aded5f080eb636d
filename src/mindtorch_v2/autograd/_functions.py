"""Functions of the tape that have names in PyTorch: gradients that are left out, and a reshape that is differentiable."""

from __future__ import annotations

import math
from typing import Any

from .._autograd.function import Function
from .._tensor import Tensor


class _Left(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


class UndefinedGrad:
    """`UndefinedGrad()(*tensors)`: the tensors, to whose history no gradient comes."""

    def __call__(self, *tensors: Tensor) -> Any:
        made = _Left.apply(*tensors)
        return made[0] if len(tensors) == 1 else made


class Resize(Function):
    """`Resize.apply(tensor, sizes)`: the elements in another shape. RuntimeError for another number of them."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Any) -> Tensor:
        """A copy in the shape."""
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), but the given tensor has a size of "
                f"{'x'.join(map(str, tensor.shape))} ({tensor.numel()} elements). autograd's resize can only change the shape of a given tensor, "
                "while preserving the number of elements. "
            )
        ctx.shape = tensor.shape
        return tensor.clone().reshape(sizes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradient in the former shape."""
        return grads[0].reshape(ctx.shape), None
