"""Views, from the geometry that a rule computed: the same on every device, since each payload has `as_strided`."""

from __future__ import annotations

from typing import Any

from numpy import ndarray

from ... import _memory, _payload
from ..._dtype import unsupported
from ..._rules.spec import ViewSpec


def apply(payload: Any, spec: ViewSpec) -> Any:
    """The view of a payload that a ViewSpec describes. RuntimeError when it does not fit in the storage."""
    if spec.dtype is None:
        return _payload.as_strided(payload, tuple(spec.shape), tuple(spec.stride), spec.offset)
    return _as_dtype(payload, spec)


def _as_dtype(payload: Any, spec: ViewSpec) -> Any:
    """A view of the same memory in elements of another type; the spec counts in those."""
    assert spec.dtype is not None
    shape, stride = tuple(spec.shape), tuple(spec.stride)
    if spec.dtype.np is None and _payload.device_of(payload).type == "cpu":
        raise RuntimeError(unsupported(spec.dtype))
    if payload.__class__ is ndarray:
        byte_offset = _memory.address(payload) - _memory.root_address(payload) if payload.size else 0
        offset = byte_offset // spec.dtype.itemsize + spec.offset
        return _memory.view_of_root(_memory.root_bytes(payload), shape, stride, offset, spec.dtype.np)
    byte_offset = payload.offset * payload.dtype.itemsize
    offset = byte_offset // spec.dtype.itemsize + spec.offset
    return payload.__class__(shape, stride, spec.dtype, offset, payload.storage)
