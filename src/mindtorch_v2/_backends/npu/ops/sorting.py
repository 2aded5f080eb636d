"""Sorting, counting and membership."""

from __future__ import annotations

import math
from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import (
    aclnnArgsort,
    aclnnBincount,
    aclnnHistc,
    aclnnTopk,
    aclnnUnique2,
    aclnnUniqueDim,
)
from ...._tensor import Tensor, wrap
from ..aclnn import launch, launch_with_shape
from ..creation import empty

_int64 = DTYPES["int64"]


def argsort_stable(out: Any, self: Any, stable: bool, dim: int, descending: bool) -> Any:
    return ops.sort(self, stable=stable, dim=dim, descending=descending)[1]


def argsort(out: Any, self: Any, dim: int, descending: bool) -> None:
    """The places that sort along dim."""
    if self.dtype is DTYPES["bool"]:  # which the function does not take
        self = ops._to_copy(self, dtype=DTYPES["uint8"])
    if out[0].size:
        launch(aclnnArgsort, self._payload, dim, descending, out[0])


def topk(out: Any, self: Any, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    if not self.dim():  # one element is the largest and the smallest
        return ops.clone(self), ops.zeros((), dtype=_int64, device=self.device)
    if out[0].size:
        launch(aclnnTopk, self._payload, k, dim, largest, sorted, out[0], out[1])
    return None


def isin(out: Any, elements: Any, test_elements: Any, assume_unique: bool, invert: bool) -> Any:
    elements, test_elements = (
        t if isinstance(t, Tensor) else ops.scalar_tensor(t, device=_device_of(elements, test_elements))
        for t in (elements, test_elements)
    )
    if not test_elements.numel():
        found = ops.zeros_like(elements, dtype=DTYPES["bool"])
    else:
        found = ops.any(ops.eq(ops.unsqueeze(elements, -1), ops.reshape(test_elements, (-1,))), -1)
    return ops.logical_not(found) if invert else found


def bincount(out: Any, self: Any, weights: Any, minlength: int) -> Any:
    count = max(minlength, int(ops.max(self).item()) + 1 if self.numel() else 0)
    if weights is None:
        kind = _int64
    else:
        kind = weights.dtype if weights.dtype is DTYPES["float32"] else DTYPES["float64"]
        weights = ops._to_copy(weights, dtype=kind)
    made = ops.zeros((count,), dtype=kind, device=self.device)
    if self.numel():
        launch(aclnnBincount, self._payload, None if weights is None else weights._payload, minlength, made._payload)
    return made


def unique2(out: Any, self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple:
    count = self.numel()
    values, counts = (empty((count,), None, kind, self.device) for kind in (self.dtype, _int64))
    inverse = empty(tuple(self.shape), None, _int64, self.device)
    found = 0
    if count:
        found = launch_with_shape(
            aclnnUnique2, 4, self._payload, sorted, return_inverse, return_counts, values, inverse, counts
        )[0]
    none = ops.zeros((0,), dtype=_int64, device=self.device)
    return (
        ops.narrow(wrap(values, self.dtype), 0, 0, found),
        wrap(inverse, _int64) if return_inverse else none,
        ops.narrow(wrap(counts, _int64), 0, 0, found) if return_counts else none,
    )


def _device_of(*values: Any) -> Any:
    return next(v.device for v in values if isinstance(v, Tensor))


def bucketize(out: Any, self: Any, boundaries: Any, out_int32: bool, right: bool) -> Any:
    if not isinstance(self, Tensor):
        self = ops.scalar_tensor(self, dtype=_together(self, boundaries), device=boundaries.device)
    return ops.searchsorted(boundaries, self, out_int32=out_int32, right=right)


def searchsorted_number(
    out: Any, sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: str | None, sorter: Any
) -> Any:
    value = self
    if not isinstance(value, Tensor):
        value = ops.scalar_tensor(value, dtype=_together(value, sorted_sequence), device=sorted_sequence.device)
    return ops.searchsorted(sorted_sequence, value, out_int32=out_int32, right=right, side=side, sorter=sorter)


def _together(value: Any, like: Any) -> Any:
    return like.dtype if isinstance(value, int) or like.dtype.is_floating_point else DTYPES["float32"]


def unique_consecutive(out: Any, self: Any, return_inverse: bool, return_counts: bool, dim: int | None) -> Any:
    """Where an element (or a slice) differs from the one before; the host waits for how many do."""
    rows = ops.reshape(self, (-1,)) if dim is None else ops.movedim(self, dim, 0)
    count = rows.shape[0]
    if not self.numel():
        return NotImplemented
    flat = ops.reshape(rows, (count, -1))
    differs = ops.any(ops.ne(ops.narrow(flat, 0, 1, count - 1), ops.narrow(flat, 0, 0, count - 1)), 1)
    starts = ops.cat([ops.ones((1,), dtype=DTYPES["bool"], device=self.device), differs])
    places = ops.select(ops.nonzero(starts), 1, 0)
    values = ops.index_select(rows, 0, places)
    none = ops.zeros((0,), dtype=_int64, device=self.device)
    inverse = ops.sub(ops.cumsum(starts, 0), 1) if return_inverse else none
    if dim is None and return_inverse:
        inverse = ops.reshape(inverse, tuple(self.shape))
    ends = ops.cat(
        [ops.narrow(places, 0, 1, places.shape[0] - 1), ops.full((1,), count, dtype=_int64, device=self.device)]
    )
    counts = ops.sub(ends, places) if return_counts else none
    return values if dim is None else ops.movedim(ops.contiguous(values), 0, dim), inverse, counts


def unique_dim(out: Any, self: Any, dim: int, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    rows = ops.contiguous(ops.movedim(self, dim, 0))
    count = rows.shape[0]
    if not self.numel():
        return NotImplemented
    values = empty(tuple(rows.shape), None, self.dtype, self.device)
    inverse, counts = (empty((count,), None, _int64, self.device) for _ in range(2))
    shape = launch_with_shape(aclnnUniqueDim, 4, rows._payload, True, True, 0, values, inverse, counts)
    found = ops.movedim(ops.narrow(wrap(values, self.dtype), 0, 0, shape[0]), 0, dim)
    return found, wrap(inverse, _int64), ops.narrow(wrap(counts, _int64), 0, 0, shape[0])


def nanmedian(out: Any, self: Any) -> Any:
    if not self.numel():
        return NotImplemented
    return ops.nanmedian(ops.reshape(self, (-1,)), 0)[0]


def nanmedian_dim(out: Any, self: Any, dim: int, keepdim: bool) -> Any:
    """The middle one of those that are numbers: sorted, NaN come last. NaN where there is none."""
    if not self.numel() or not self.dim():
        return NotImplemented
    values, places = ops.sort(self, stable=True, dim=dim, descending=False)
    numbers = ops.sum(ops.logical_not(ops.isnan(self)), [dim], True) if self.is_floating_point() else None
    if numbers is None:
        shape = [1 if d == dim % self.dim() else n for d, n in enumerate(self.shape)]
        numbers = ops.full(shape, self.shape[dim], dtype=_int64, device=self.device)
    middle = ops.clamp_min(ops.floor_divide(ops.sub(numbers, 1), 2), 0)
    found = ops.gather(values, dim, middle), ops.gather(places, dim, middle)
    return found if keepdim else tuple(ops.squeeze(t, dim) for t in found)


def histc(out: Any, self: Any, bins: int, min: Any, max: Any) -> Any:
    low, high = float(min), float(max)
    if not self.numel():
        return NotImplemented
    if low == high:
        low, high = float(ops.amin(self).item()), float(ops.amax(self).item())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        return NotImplemented  # which the CPU words
    launch(aclnnHistc, ops.contiguous(self)._payload, bins, low, high, out[0])
    return None


_MOST_COMPARED = 1024


def mode(out: Any, self: Any, dim: int, keepdim: bool) -> Any:
    """(the value that is there most often, its last place): each element is compared with each along dim, unless those are too many."""
    if not self.dim() or not self.numel() or self.shape[dim] > _MOST_COMPARED or self.dtype is DTYPES["bool"]:
        return NotImplemented
    x = ops.transpose(self, dim, -1)
    ordered = ops.sort(x, -1, False)[0]
    alike = ops.eq(ops.unsqueeze(ordered, -1), ops.unsqueeze(ordered, -2))
    first = ops.argmax(
        ops.sum(ops._to_copy(alike, dtype=DTYPES["float32"]), [-1]), -1, True
    )  # of the smallest, where several are there as often
    values = ops.gather(ordered, -1, first)
    places = ops.arange(0, x.shape[-1], 1, dtype=DTYPES["int64"], device=self.device)
    last = ops.amax(ops.where(ops.eq(x, values), places, ops.zeros_like(places)), [-1], True)
    found = ops.transpose(values, dim, -1), ops.transpose(last, dim, -1)
    return found if keepdim else tuple(ops.squeeze(one, dim) for one in found)
