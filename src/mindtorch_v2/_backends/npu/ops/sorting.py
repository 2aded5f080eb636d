"""Sorting, counting and membership."""

from __future__ import annotations

from typing import Any

from ...._dispatch import ops
from ...._dtype import DTYPES
from ...._generated.npu.functions import aclnnArgsort, aclnnBincount, aclnnTopk, aclnnUnique2
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
        launch(aclnnArgsort, self._data, dim, descending, out[0])


def topk(out: Any, self: Any, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    if not self.dim():  # one element is the largest and the smallest
        return ops.clone(self), ops.zeros((), dtype=_int64, device=self.device)
    if out[0].size:
        launch(aclnnTopk, self._data, k, dim, largest, sorted, out[0], out[1])
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
        launch(aclnnBincount, self._data, None if weights is None else weights._data, minlength, made._data)
    return made


def unique2(out: Any, self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple:
    count = self.numel()
    values, counts = (empty((count,), None, kind, self.device) for kind in (self.dtype, _int64))
    inverse = empty(tuple(self.shape), None, _int64, self.device)
    found = 0
    if count:
        found = launch_with_shape(
            aclnnUnique2, 4, self._data, sorted, return_inverse, return_counts, values, inverse, counts
        )[0]
    none = ops.zeros((0,), dtype=_int64, device=self.device)
    return (
        ops.narrow(wrap(values, self.dtype), 0, 0, found),
        wrap(inverse, _int64) if return_inverse else none,
        ops.narrow(wrap(counts, _int64), 0, 0, found) if return_counts else none,
    )


def _device_of(*values: Any) -> Any:
    return next(v.device for v in values if isinstance(v, Tensor))
