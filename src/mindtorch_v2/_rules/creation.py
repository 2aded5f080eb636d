"""Rules of fresh tensors: factories, ranges, copies, random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._dtype import dtype
from .._warnings import warn_of_call
from ._common import as_list, checked_size, is_tensor, not_implemented, shape_text
from .geometry import (
    Shape,
    channels_last_strides,
    contiguous_strides,
    format_name,
    format_strides,
    geometry,
    is_contiguous,
)
from .pointwise import _check_number, check_fill
from .promotion import scalar_dtype
from .spec import Spec, rule

_MAX_ELEMENTS = 2**63 - 1


@rule(flops="0", batch="elements")
def like(
    self: Any,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    memory_format: Any = None,
    fill_value: Any = None,
) -> Spec:
    """self's shape; its dtype and dense strides unless others are given."""
    target = dtype or self.dtype
    if fill_value is not None:
        _check_fill(fill_value, target)
    return Spec(tuple(self.shape), target, format_strides(self, memory_format))


def _check_fill(value: Any, target: dtype) -> None:
    if is_tensor(value):
        if value.dim():
            raise RuntimeError(
                f"full(): fill_value must be a number or a tensor without dimensions, but got {value.dim()} dimensions"
            )
    else:
        check_fill(value, target)


@rule(flops="0")
def factory(
    size: Any, dtype: dtype | None = None, fill_value: Any = None, memory_format: Any = None, op: str = "empty"
) -> Spec:
    """Contiguous, or in the given format. Without dtype the default one, or that of `fill_value`. RuntimeError for
    negative sizes, and for a format that does not fit."""
    shape = checked_size(size, op)
    target = dtype
    if target is None:
        if fill_value is None:
            target = _d.get_default_dtype()
        else:
            target = fill_value.dtype if is_tensor(fill_value) else scalar_dtype(fill_value)
            if target is _d.complex32 and not is_tensor(fill_value):
                target = _d.complex64  # of a number, whatever the default dtype
    if fill_value is not None:
        _check_fill(fill_value, target)
    if memory_format is not None:
        return Spec(shape, target, _strides_in(shape, memory_format))
    return Spec(shape, target)


def _strides_in(shape: Shape, memory_format: Any) -> Shape | None:
    name = format_name(memory_format)
    if name == "preserve_format":
        raise RuntimeError("unsupported memory format Preserve")
    if name == "contiguous_format":
        return None
    ndim = 4 if name == "channels_last" else 5
    if len(shape) != ndim:
        raise RuntimeError(f"required rank {ndim} tensor to use {name} format")
    return channels_last_strides(shape)


@rule(flops="0", batch="new")
def new(self: Any, size: Any, dtype: dtype | None = None, fill_value: Any = None) -> Spec:
    """As `factory`, with self's dtype by default."""
    return factory(size, dtype or self.dtype, fill_value)


@rule(flops="0", batch="new_strided")
def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: dtype | None = None) -> Spec:
    """A tensor with the given strides."""
    shape, strides = as_list(size), as_list(stride)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    checked = checked_size(shape)
    if any(step < 0 for step in strides):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={shape_text(shape)} and strides={shape_text(strides)}"
        )
    return Spec(checked, dtype or _d.get_default_dtype(), tuple(map(int, strides)))


def _number(value: Any) -> Any:
    """A Python number from a number or a tensor without dimensions."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    return number


def _is_integer(value: Any) -> bool:
    kind = value.dtype if is_tensor(value) else scalar_dtype(value)
    return kind.category <= _d.CATEGORY_INTEGER


def _check_bounds(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


@rule(flops="0")
def arange(start: Any, end: Any, step: Any = 1, dtype: dtype | None = None) -> Spec:
    """From start to before end: int64 if all numbers are integers, else the default dtype."""
    target = dtype
    if target is None:
        integers = _is_integer(start) and _is_integer(end) and _is_integer(step)
        target = _d.int64 if integers else _d.get_default_dtype()
    if target is _d.bool or target.is_complex or target in _d.FLOAT8:
        raise not_implemented("arange_cpu", target)
    first, last, step_by = _number(start), _number(end), _number(step)
    _check_bounds(first, last, step_by)
    if target is _d.int64:
        # int64 counts in whole numbers: 0.5 to 5.5 is 0 to 5.
        first, last, step_by = int(first), int(last), int(step_by)
        if step_by == 0:
            raise ValueError("step must be nonzero")
        count = -((first - last) // step_by)
    else:
        ratio = (last - first) / step_by
        count = math.ceil(ratio) if math.isfinite(ratio) else _MAX_ELEMENTS + 1
    if not 0 <= count <= _MAX_ELEMENTS // max(target.itemsize, 1):
        raise RuntimeError("invalid size, possible overflow?")
    return Spec((count,), target)


@rule(flops="0")
def range(start: Any, end: Any, step: Any = 1, dtype: dtype | None = None) -> Spec:
    """From start to end, end included: the default dtype. Integers count in whole numbers."""
    warn_of_call(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
        "builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    target = dtype or _d.get_default_dtype()
    if target is _d.bool or target.is_complex or target in _d.FLOAT8:
        raise not_implemented("range_cpu", target)
    first, last, step_by = _number(start), _number(end), _number(step)
    _check_bounds(first, last, step_by)
    if not target.is_floating_point:
        first, last, step_by = int(first), int(last), int(step_by)
        _check_bounds(first, last, step_by)
    return Spec((math.floor((last - first) / step_by) + 1,), target)


@rule(flops="0")
def linspace(start: Any, end: Any, steps: int, dtype: dtype | None = None, op: str = "linspace") -> Spec:
    """`steps` numbers from start to end, both included; logspace likewise. Complex ends need a complex dtype."""
    for value in (start, end):
        if is_tensor(value) and value.dim():
            raise RuntimeError(
                f"{op} only supports 0-dimensional start and end tensors, but got start with "
                f"{start.dim() if is_tensor(start) else 0} dimension(s) and end with "
                f"{end.dim() if is_tensor(end) else 0} dimension(s)."
            )
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    kinds = [value.dtype if is_tensor(value) else scalar_dtype(value) for value in (start, end)]
    target = dtype or _d.get_default_dtype()
    if any(kind.is_complex for kind in kinds):
        inferred = _d.get_default_complex_dtype()
        target = dtype or inferred
        if not target.is_complex:
            raise RuntimeError(
                f"torch.{op}(): inferred dtype {inferred.ctype} can't be safely cast to passed dtype {target.cpp}"
            )
    if target is _d.bool or target in _d.FLOAT8:
        raise not_implemented(f"{op}_cpu", target)
    return Spec((int(steps),), target)


@rule(flops="0")
def eye(n: int, m: int | None = None, dtype: dtype | None = None) -> Spec:
    """[n, m]; m is n by default."""
    for name, size in (("n", n), ("m", n if m is None else m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return Spec((int(n), int(n if m is None else m)), dtype or _d.get_default_dtype())


@rule(flops="0")
def scalar_tensor(s: Any, dtype: dtype | None = None) -> Spec:
    """A tensor without dimensions, of the default dtype."""
    target = dtype or _d.get_default_dtype()
    _check_number(s, target)
    return Spec((), target)


@rule(flops="0")
def tril_indices(row: int, col: int, offset: int = 0, dtype: dtype | None = None, op: str = "tril_indices") -> Spec:
    """tril_indices and triu_indices: [2, count], int32 or int64."""
    for name, size in (("row", row), ("col", col)):
        if size < 0:
            raise RuntimeError(f"{name} must be non-negative, got{size}")
    target = dtype or _d.int64
    if target not in (_d.int16, _d.int32, _d.int64):
        raise not_implemented(op, target)
    kept_below = offset + 1 if op == "tril_indices" else offset
    # Row `at` keeps at + kept_below elements, of those that there are: none at first, then one more each, then all.
    first = min(max(1 - kept_below, 0), row)
    full = min(max(col - kept_below, first), row)
    count = (first + full - 1 + 2 * kept_below) * (full - first) // 2 + (row - full) * col
    return Spec((2, count if op == "tril_indices" else row * col - count), target)


@rule(flops="numel(out)")
def window(window_length: int, dtype: dtype | None = None, layout: Any = None, op: str = "hann_window") -> Spec:
    """hann_window and its kin: floating dtypes only."""
    target = dtype or _d.get_default_dtype()
    if not (target.is_floating_point or target.is_complex):
        raise RuntimeError(
            f"{op} expects floating point dtypes, got: TensorOptions(dtype={target.ctype}, device=cpu, "
            f"layout=Strided{'' if layout else ' (default)'}, requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if window_length < 0:
        raise RuntimeError(f"{op} requires non-negative window_length, got window_length={window_length}")
    if target.is_complex and window_length > 1:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{target.cpp}'")
    return Spec((int(window_length),), target)


@rule(flops="0")
def clone(self: Any, memory_format: Any = None) -> Spec:
    """A copy in a memory format; by default in self's dense strides."""
    return Spec(tuple(self.shape), self.dtype, format_strides(self, memory_format))


def contiguous(self: Any, memory_format: Any = None) -> Spec:
    """A copy in the given format, contiguous by default. Where self already has that format nothing is copied: see
    `has_format`."""
    if memory_format is not None and format_name(memory_format) == "preserve_format" and not has_format(self):
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return Spec(tuple(self.shape), self.dtype, None if memory_format is None else format_strides(self, memory_format))


def has_format(self: Any, memory_format: Any = None) -> bool:
    """Whether self is dense in the given format (None: contiguous), so that `contiguous` gives self itself."""
    if memory_format is None or format_name(memory_format) == "contiguous_format":
        return is_contiguous(*geometry(self))
    wanted = format_strides(self, memory_format) or contiguous_strides(self.shape)
    return all(size == 1 or have == want for size, have, want in zip(self.shape, self.stride(), wanted, strict=True))


@rule(flops="0", batch="elements")
def to_copy(self: Any, dtype: dtype | None = None, memory_format: Any = None) -> Spec:
    """A copy as another dtype."""
    return Spec(tuple(self.shape), dtype or self.dtype, format_strides(self, memory_format))
