"""Assertions that are operators, so that exported programs can hold them. All give None."""

from __future__ import annotations

from typing import Any

from mindtorch_v2._layout import layout as _layout
from mindtorch_v2._tensor import Tensor

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def assert_async(self: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError with `assert_msg` unless the one element of `self` is true; on the CPU at once.

    Raises:
        RuntimeError: also if there is no element, or more than one.
    """
    if self.device.type != "meta" and not bool(self):
        raise RuntimeError(assert_msg)


def assert_scalar(self: Any, assert_msg: str) -> None:
    """Raise RuntimeError with `assert_msg` unless a number is true."""
    if not self:
        raise RuntimeError(assert_msg)


def assert_tensor_metadata(
    a: Tensor,
    size: Any = None,
    stride: Any = None,
    dtype: Any = None,
    device: Any = None,
    layout: _layout | None = None,
) -> None:
    """Raise RuntimeError for the first of what is given that a tensor has not."""
    _compare("sizes", size, lambda: list(a.shape), list)
    _compare("strides", stride, lambda: list(a.stride()), list)
    _compare("dtype", dtype, lambda: a.dtype, lambda d: d.cpp, lambda d: d.ctype)
    _compare("device", device, lambda: a.device, str)
    _compare("layout", layout, lambda: a.layout, lambda kind: _camel(str(kind)))


def _compare(what: str, wanted: Any, own: Any, shown: Any, shown_own: Any = None) -> None:
    if wanted is not None and (list(wanted) if what in ("sizes", "strides") else wanted) != own():
        got = (shown_own or shown)(own())
        raise RuntimeError(f"Tensor {what} mismatch! Expected: {shown(wanted)}, Got: {got}")


def _camel(name: str) -> str:
    words = name.removeprefix("torch.").removesuffix("_coo").split("_")
    return "".join(word.capitalize() for word in words)


def sym_constrain_range(size: Any, min: int | None = None, max: int | None = None) -> None:
    """Raise RuntimeError unless a size lies between two."""
    least, most = _LEAST if min is None else min, _MOST if max is None else max
    if most < least:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={least} max={most}")
    if not least <= size <= most:
        raise RuntimeError(f"Invalid value range for {size} between [{least}, {most}].")


def sym_constrain_range_for_size(size: Any, min: int | None = None, max: int | None = None) -> None:
    """`sym_constrain_range` of a size, of which the least is 0 unless `min` says another."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, 0 if min is None else min, max)
