"""The few helpers of `torch._prims_common` that programs use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2


def is_contiguous(a: Any) -> bool:
    """Whether the tensor `a` is contiguous."""
    return a.is_contiguous()


def is_contiguous_or_false(a: Any) -> bool:
    """Whether the tensor `a` is contiguous."""
    return a.is_contiguous()


def is_boolean_dtype(dtype: Any) -> bool:
    """Whether `dtype` is bool."""
    return dtype is mindtorch_v2.bool


def is_float_dtype(dtype: Any) -> bool:
    """Whether `dtype` is a real floating-point type."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: Any) -> bool:
    """Whether `dtype` is complex."""
    return dtype.is_complex


def is_integer_dtype(dtype: Any) -> bool:
    """Whether `dtype` is an integer type; bool is not."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is mindtorch_v2.bool)


def corresponding_complex_dtype(dtype: Any) -> Any:
    """The complex type whose parts have a real floating `dtype`. KeyError for other types."""
    if not dtype.is_floating_point:
        raise KeyError(dtype)
    return dtype.to_complex()


def corresponding_real_dtype(dtype: Any) -> Any:
    """The type of the parts of a complex `dtype`. KeyError for other types."""
    if not dtype.is_complex:
        raise KeyError(dtype)
    return dtype.to_real()


def dtype_to_type(dtype: Any) -> type:
    """Python's type of a dtype's elements."""
    if dtype is mindtorch_v2.bool:
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """The strides of a contiguous tensor of `shape`; with `row_major=False`, of one whose last two dims are swapped."""
    strides, step = [], 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= max(size, 1)
    strides.reverse()
    if not row_major and len(strides) >= 2:
        strides[-2:] = [1, max(tuple(shape)[-2], 1)]
    return tuple(strides)


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """`idx` counted from the front.

    Raises:
        IndexError: if it is out of range.
    """
    if rank == 0 and wrap_scalar:
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: int | Sequence[int], wrap_scalar: bool = True) -> int | tuple[int, ...]:
    """One or several dims counted from the front."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, idx, wrap_scalar) for idx in indices)


def check(b: bool, s: Callable[[], str], exc_type: type[Exception] = RuntimeError) -> None:
    """Raise `exc_type(s())` unless `b`."""
    if not b:
        raise exc_type(s())


def alert_not_deterministic(caller: str) -> None:
    """Nothing to say: every operator here is deterministic."""
