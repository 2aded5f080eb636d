"""What a rule is, and what it gives back: `Spec` of a fresh result, `ViewSpec` of a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._dtype import complex32, dtype
from .._warnings import warn_once
from .geometry import Shape, contiguous_strides

Function = TypeVar("Function", bound=Callable)


def rule(
    *, flops: str | None = None, inline: str | None = None, batch: str | None = None
) -> Callable[[Function], Function]:
    """Marks a function that the `meta:` of an entry may name. The generator reads name, parameters and first sentence from the source.

    flops: what a call of its operators costs, over `out`, the rule's parameters and the functions of `_planning/costs.py`; an entry's own `flops:`
    comes first. One for a multiplication, an addition, or any function of one element; none for what moves or compares indices. The addition of a
    bias to a product is not counted, as usual. Views cost nothing and have no formula.
    inline: of operands of one float dtype the rule says no more than that they broadcast, so that a ufunc may stand for it and the kernel; the result has
    the dtype of the "operands", or is "bool".
    batch: how its operators run on a whole batch of examples under `vmap`: a function of `func/kinds.py`; an entry's own `vmap:` comes first.
    """
    return _as_it_is


def _as_it_is(function: Function) -> Function:
    return function


class Spec:
    """A fresh result: its shape (None: the data decide), dtype and strides (None: contiguous; () beside an unknown
    shape: as the kernel laid it out).

    compute: the dtype in which the kernel computes, and to which the dispatcher casts the promoted operands first;
    None: operands stay as they are.
    """

    __slots__ = ("shape", "dtype", "stride", "compute")
    shape: Any  # Shape | None; nobody asks it of an operator whose result's shape depends on the data

    def __init__(
        self,
        shape: Shape | None,
        dtype: dtype,
        stride: Shape | None = None,
        compute: dtype | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.stride = stride
        self.compute = compute
        if dtype is complex32:
            warn_once("ComplexHalf support is experimental and many operators don't support it yet.")

    def strides(self) -> Shape:
        """The strides spelled out. The shape must be known."""
        if self.shape is None:
            raise ValueError("the shape of this result depends on the data")
        return contiguous_strides(self.shape) if self.stride is None else self.stride

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.shape, self.dtype, self.stride, self.compute) == (
            other.shape,
            other.dtype,
            other.stride,
            other.compute,
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype}, stride={self.stride}, compute={self.compute})"


class ViewSpec:
    """A view of self: shape, strides and the offset of its first element from self's first element, all in elements.

    dtype: that of a view as another type (the geometry then counts elements of that type, the offset is 0 or in that
    type); None: self's.
    """

    __slots__ = ("shape", "stride", "offset", "dtype")

    def __init__(self, shape: Shape, stride: Shape, offset: int = 0, dtype: dtype | None = None) -> None:
        self.shape = shape
        self.stride = stride
        self.offset = offset
        self.dtype = dtype

    def strides(self) -> Shape:
        """The strides, as `Spec.strides`."""
        return self.stride

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ViewSpec) and (self.shape, self.stride, self.offset, self.dtype) == (
            other.shape,
            other.stride,
            other.offset,
            other.dtype,
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return f"ViewSpec({self.shape}, {self.stride}, {self.offset}{'' if self.dtype is None else f', {self.dtype}'})"
