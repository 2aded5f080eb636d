"""Memory that is written to: whether its elements share places among each other, or with what is read."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy import ndarray

from .. import _payload
from .._pending import current
from .._tensor import Tensor
from . import planned
from .operator import Operator


def _check_internal_overlap(target: Tensor) -> None:
    if target._payload.size and _payload.is_expanded(target._payload):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def _shared() -> RuntimeError:
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation."
    )


def check_overlap(op: Operator, target: Tensor, args: tuple) -> None:
    """RuntimeError when elements of the written tensor share memory among each other, or partly with an input.

    Of operators with the tag `apart` no input but the first may be in the memory at all.
    """
    data = current(target)
    if not data.size:
        return
    if "fills" not in op.tags:
        _check_internal_overlap(target)
    elif _payload.is_expanded(data):
        _warn_expanded(op)
    apart = "apart" in op.tags
    if not apart and "pointwise" not in op.tags and "overlap" not in op.tags:
        return
    for index, value in _tensors_of(op, args):
        if value is target and (not apart or index == op.mutates):
            continue
        if _overlaps(data, current(value)) if apart and index != op.mutates else _partly_overlaps(data, current(value)):
            raise _shared()


def check_distinct(op: Operator, out: Tensor, args: tuple) -> None:
    """RuntimeError when the buffer shares memory with an input, or elements share memory among each other."""
    _check_internal_overlap(out)
    if any(value is out or shares_memory(out._payload, value._payload) for _, value in _tensors_of(op, args)):
        raise _shared()


def _tensors_of(op: Operator, args: tuple) -> list[tuple[int, Tensor]]:
    """The tensors among the arguments, those of lists too, each with the number of its parameter."""
    return [
        (index, value)
        for index in op.tensors
        for value in (args[index] if isinstance(args[index], (list, tuple)) else (args[index],))
        if isinstance(value, Tensor)
    ]


def _warn_expanded(op: Operator) -> None:
    """Warn, where PyTorch does, that elements which share memory are filled."""
    if "warns_expanded" in op.tags:
        example = "tensor[indices] = tensor" if any(p.is_list for p in op.params) else "tensor[mask] = scalar"
        warnings.warn(
            f"Use of {op.label}_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also "
            f"applies to advanced indexing e.g. {example}",
            UserWarning,
            stacklevel=5 + planned.ACTIVE,
        )


def _overlaps(a: Any, b: Any) -> bool:
    return bool(a.size and b.size) and _may_overlap(a, b) and _dense(a) and _dense(b)


def _partly_overlaps(a: Any, b: Any) -> bool:
    if a.size == 0 or b.size == 0 or not _may_overlap(a, b):
        return False
    if a.shape == b.shape and _reaching(a) == _reaching(b) and a.dtype == b.dtype:
        if _payload.offset_of(a) == _payload.offset_of(b):
            return False
    return _dense(a) and _dense(b)


def _reaching(a: Any) -> list:
    """The strides that lead from one element to another."""
    return [s for s, n in zip(_payload.stride_of(a), a.shape) if n > 1]


def _may_overlap(a: Any, b: Any) -> bool:
    """Whether the stretches of memory from the first to the last element meet."""
    if a.__class__ is ndarray or b.__class__ is ndarray:
        return a.__class__ is b.__class__ and np.may_share_memory(a, b)
    if a.storage is not b.storage:
        return False
    first, second = (
        (p.offset * p.dtype.itemsize, (p.offset + _payload.extent(p.shape, p.stride)) * p.dtype.itemsize)
        for p in (a, b)
    )
    return first[0] < second[1] and second[0] < first[1]


def shares_memory(a: Any, b: Any) -> bool:
    if isinstance(a, _payload.DevicePayload) and isinstance(b, _payload.DevicePayload):
        return a.storage is b.storage and bool(a.size and b.size) and a.device.type != "meta"
    return a.__class__ is ndarray and b.__class__ is ndarray and a.size and b.size and np.may_share_memory(a, b)


def _dense(a: Any) -> bool:
    """Whether the elements fill one stretch of memory without gaps or repeats."""
    step = 1
    for stride, n in sorted((s, n) for s, n in zip(_payload.stride_of(a), a.shape) if n != 1):
        if stride != step:
            return False
        step *= n
    return True
