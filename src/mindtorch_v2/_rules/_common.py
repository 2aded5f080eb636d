"""What all rules share: dimensions, broadcasting, the dtypes that an operator accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._dtype import (
    CATEGORY_BOOL,
    CATEGORY_COMPLEX,
    CATEGORY_FLOATING,
    CATEGORY_INTEGER,
    FLOAT8,
    dtype,
)
from .._state import TLS
from .geometry import Geometry, Shape, infer_dense_strides

_B, _I, _F, _C = CATEGORY_BOOL, CATEGORY_INTEGER, CATEGORY_FLOATING, CATEGORY_COMPLEX

DTYPES_ACCEPTED = {
    "all": (_B, _I, _F, _C),
    "integral": (_B, _I),
    "integer": (_I,),
    "numeric": (_I, _F, _C),
    "real": (_B, _I, _F),
    "real_numeric": (_I, _F),
    "floating": (_F, _C),
    "floating_real": (_F,),
    "floating_never_complex": (_F,),
    "floating_wide": (_F,),
}
"""The categories behind the word that an entry gives as `dtypes`. `floating_wide` has no half types; `floating_never_complex` says so of complex ones."""


def type_name(d: dtype) -> str:
    """How some messages name a tensor's type: the first types of PyTorch as `torch.FloatTensor`, others as
    `CPUBFloat16Type`."""
    return f"CPU{d.cpp}Type" if d in _YOUNGER_TYPES or d.is_complex else f"torch.{d.cpp}Tensor"


_YOUNGER_TYPES = (_d.bool, _d.bfloat16)


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor (by duck type), not a number."""
    return getattr(value, "dtype", None).__class__ is dtype


def not_implemented(op: str, d: dtype) -> NotImplementedError:
    """The error of a kernel that does not know the dtype."""
    return NotImplementedError(f"\"{op}\" not implemented for '{d.cpp}'")


def check_dtype(d: dtype, accepted: str, op: str) -> None:
    """NotImplementedError unless the dtype belongs to the `accepted` word of DTYPES_ACCEPTED. float8 types have no
    arithmetic."""
    if d.category not in DTYPES_ACCEPTED[accepted] or d in FLOAT8 or (accepted == "floating_wide" and d.itemsize < 4):
        if d.is_complex and accepted == "floating_never_complex":
            raise RuntimeError(f"{op} is not supported for complex tensors.")
        raise not_implemented(op, d)


def check_undifferentiable(op: str, **tensors: Any) -> None:
    """RuntimeError when a gradient would be wanted of a tensor that the operator has none for."""
    if TLS.undifferentiable is not None:
        TLS.undifferentiable += tensors.values()
    for name, tensor in tensors.items():
        if TLS.grad_enabled and getattr(tensor, "requires_grad", False):
            raise RuntimeError(
                f"The function '{op}' is not differentiable with respect to argument '{name}'. This input cannot have requires_grad True."
            )


def wrap_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front. A tensor without dimensions counts as having one. IndexError out of range."""
    limit = ndim if ndim > 0 else 1
    if -limit <= dim < limit:
        return dim + limit if dim < 0 else dim
    raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {int(dim)})")


def wrap_existing_dim(dim: int, ndim: int) -> int:
    """As `wrap_dim`, but a tensor without dimensions has none. IndexError."""
    if ndim == 0:
        wrap_dim(dim, 0)
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def wrap_dims(dims: Sequence[int], ndim: int) -> list[int]:
    """The dims counted from the front, in the given order. RuntimeError for one named twice."""
    wrapped = []
    for dim in dims:
        at = wrap_dim(dim, ndim)
        if at in wrapped:
            raise RuntimeError(f"dim {at} appears multiple times in the list of dims")
        wrapped.append(at)
    return wrapped


def as_list(value: Any) -> list[int]:
    """A list of ints from an int or a sequence."""
    return [value] if isinstance(value, int) else list(value)


def broadcast(a: Sequence[int], b: Sequence[int]) -> Shape:
    """The shape to which `a` and `b` broadcast. RuntimeError if they do not."""
    if tuple(a) == tuple(b):
        return tuple(a)
    ndim = max(len(a), len(b))
    shape = [1] * ndim
    for dim in range(ndim - 1, -1, -1):
        at_a, at_b = dim - ndim + len(a), dim - ndim + len(b)
        size_a = a[at_a] if at_a >= 0 else 1
        size_b = b[at_b] if at_b >= 0 else 1
        if size_a != size_b and size_a != 1 and size_b != 1:
            raise RuntimeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) at non-singleton "
                f"dimension {dim}"
            )
        shape[dim] = size_b if size_a == 1 else size_a
    return tuple(shape)


def promoted_geometry(tensor: Any, promoted: dtype) -> Geometry:
    """Shape and strides of an operand after its cast to the promoted dtype, which makes a dense copy."""
    if tensor.dtype is promoted:
        return tensor.shape, tensor.stride()
    return tensor.shape, infer_dense_strides(tensor.shape, tensor.stride())


def shape_text(shape: Sequence[int]) -> str:
    """A shape as messages print it: `[2, 3]`."""
    return f"[{', '.join(str(int(size)) for size in shape)}]"


def checked_size(size: Any, op: str = "") -> Shape:
    """The shape of a factory. RuntimeError for a negative size."""
    shape = (int(size),) if isinstance(size, int) else tuple(int(n) for n in size)
    for n in shape:
        if n < 0:
            if op == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {shape_text(shape)}")
    return shape
