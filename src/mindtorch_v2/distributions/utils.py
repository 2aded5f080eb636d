"""Helpers of distributions: joint shapes of parameters, probabilities and logits, properties computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mindtorch_v2 as mt

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape; numbers get the dtype and device of the first tensor.

    Raises:
        ValueError: if a value is neither a number nor a tensor.
    """
    if not all(isinstance(value, mt.Tensor | int | float) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    first = next((value for value in values if isinstance(value, mt.Tensor)), None)
    options: dict[str, Any] = (
        {"dtype": mt.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    )
    tensors = [value if isinstance(value, mt.Tensor) else mt.tensor(value, **options) for value in values]
    return tuple(mt.broadcast_tensors(*tensors))


def clamp_probs(probs: Any) -> Any:
    """Probabilities a little away from 0 and 1."""
    eps = mt.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log odds (binary) or unnormalised log probabilities along the last dimension."""
    return mt.sigmoid(logits) if is_binary else mt.nn.functional.softmax(logits, dim=-1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log odds (binary) or log probabilities, from probabilities."""
    clamped = clamp_probs(probs)
    return mt.log(clamped) - mt.log1p(-clamped) if is_binary else mt.log(clamped)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The entries on and below a diagonal of square matrices, row by row: [..., n, n] to [..., count].

    Raises:
        ValueError: if the diagonal is outside of the matrix.
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = mt.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """The square matrices whose entries on and below a diagonal are given, zero elsewhere: [..., count] to [..., n, n].

    Raises:
        ValueError: if no matrix has that many entries there.
    """
    count = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = mt.finfo(vec.dtype).eps
    if round(n) - n > eps:
        raise ValueError(
            f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    rows, columns = mt.tril_indices(n, n, diag, device=vec.device)
    matrix = vec.new_zeros(vec.shape[:-1] + (n, n))
    matrix[..., rows, columns] = vec
    return matrix


def _sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Standard normal numbers."""
    return mt.randn(shape, dtype=dtype, device=device)


class _LazyProperty(property):
    """What a class shows of a property that is computed once."""


class lazy_property:
    """A property that is computed once, with gradients, and then is an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__
        self.name = wrapped.__name__

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _LazyProperty(self.wrapped)
        with mt.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.name, value)
        return value

    if TYPE_CHECKING:  # an instance's own attribute hides the property

        def __set__(self, instance: Any, value: Any) -> None: ...


class TwoOutcomes:
    """The probabilities and the log odds of one of two outcomes: each follows from the other when it is asked for."""

    @lazy_property
    def logits(self) -> Any:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)
