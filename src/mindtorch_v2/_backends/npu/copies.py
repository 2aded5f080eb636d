"""Elements from payload to payload, with conversion and broadcasting: within a device, between devices, and between device and host.

With pinned memory and `non_blocking` a copy between device and host is queued, and the host memory is kept until it has passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..._memory import address
from ..._payload import contiguous_strides
from . import _late, aclnn
from .payload import NpuPayload, extent_bytes
from .runtime import D2H, H2D, get_runtime
from .streams import current_stream
from .transfers import bytes_of, copy_bytes, upload

_pending: list[tuple[int, Any]] = []  # events behind queued copies, and the host memory that they read


def copy(target: Any, source: Any, non_blocking: bool = False) -> None:
    """Elements of one payload into another of the same shape, on any of CPU and NPUs, with conversion of the dtype."""
    if isinstance(target, ndarray):
        if not (non_blocking and _queue_download(target, source)):
            np.copyto(target, np.broadcast_to(to_host(source), target.shape), casting="unsafe")
    elif isinstance(source, ndarray):
        _from_host(target, source, non_blocking)
    elif target.device == source.device:
        copy_on_device(target, source)
    else:
        near = _contiguous_like(source, source.device)
        copy_on_device(near, source)
        far = _contiguous_like(source, target.device)
        copy_bytes(far.storage, near.storage, near.storage.nbytes())
        copy_on_device(target, far)


def copy_on_device(target: NpuPayload, source: NpuPayload) -> None:
    """Elements on one device, with conversion and broadcasting."""
    from ..._generated.npu.functions import aclnnInplaceCopy

    if not target.size:
        return
    if target.dtype.is_complex and source.dtype is target.dtype:
        # aclnnInplaceCopy wants complex targets contiguous; as pairs of real numbers they may be strided.
        target, source = _as_real(target), _as_real(source)
    elif target.dtype.is_complex and not target.is_contiguous:
        near = _contiguous_like(target, target.device)
        aclnn.launch(aclnnInplaceCopy, near, source)
        target, source = _as_real(target), _as_real(near)
    aclnn.launch(aclnnInplaceCopy, target, source)


def start(result: NpuPayload, source: NpuPayload) -> NpuPayload:
    """The result as a copy of what a function changes in place; nothing to copy when it is that tensor itself."""
    if result is not source:
        copy_on_device(result, source)
    return result


def _as_real(payload: NpuPayload) -> NpuPayload:
    """Complex numbers as pairs of real ones, over the same memory."""
    shape, stride = (*payload.shape, 2), (*(2 * step for step in payload.stride), 1)
    return NpuPayload(shape, stride, payload.dtype.to_real(), 2 * payload.offset, payload.storage)


def to_host(payload: Any) -> ndarray:
    """A payload as an array with the same strides; contiguous when its elements lie too far apart for that to be worth it."""
    if isinstance(payload, ndarray):
        return payload
    kind = payload.dtype.np
    item = payload.dtype.itemsize
    if not payload.size:
        return np.empty(payload.shape, kind)
    span = extent_bytes(payload)
    if span > 2 * payload.size * item:
        near = _contiguous_like(payload, payload.device)
        copy_on_device(near, payload)
        payload, span = near, extent_bytes(near)
    content = bytes_of(payload.storage, payload.offset * item, span)
    return np.ndarray(payload.shape, kind, content, 0, tuple(step * item for step in payload.stride))


def _from_host(target: NpuPayload, source: ndarray, non_blocking: bool) -> None:
    """An array into a payload: as it is where the layouts agree, else through a contiguous tensor of the device."""
    if not target.size:
        return
    source = np.broadcast_to(source, target.shape)
    kind = target.dtype.np
    if source.dtype != kind or not source.flags.c_contiguous:
        source = np.ascontiguousarray(source, kind).reshape(source.shape)
        non_blocking = False  # the new array is pageable
    place = target if target.is_contiguous else _contiguous_like(target, target.device)
    if non_blocking and _is_pinned(source):
        _queue_upload(place, source)
    else:
        upload(place.storage, place.offset * target.dtype.itemsize, source)
    if place is not target:
        copy_on_device(target, place)


def _queue_upload(place: NpuPayload, source: ndarray) -> None:
    _queue(place, source, H2D)


def _queue_download(target: ndarray, source: Any) -> bool:
    """Whether the elements were put on their way to the host: into pinned memory, just as they lie on the device."""
    if (
        isinstance(source, ndarray)
        or not source.size
        or source.dtype.np != target.dtype
        or target.shape != tuple(source.shape)
    ):
        return False
    if not target.flags.c_contiguous or not _is_pinned(target):
        return False
    near = source if source.is_contiguous else _contiguous_like(source, source.device)
    if near is not source:
        copy_on_device(near, source)
    _queue(near, target, D2H)
    return True


def _queue(place: NpuPayload, host: ndarray, kind: int) -> None:
    """A copy between a contiguous payload and pinned memory on the current stream, behind what is there; the host's memory is kept until it has passed."""
    _late.settle()
    runtime = get_runtime()
    index = place.device.index
    stream = current_stream(index).handle
    there, here = place.address, address(host)
    with runtime.on(index):
        runtime.memcpy_async(*((there, here) if kind == H2D else (here, there)), host.nbytes, kind, stream)
        event = runtime.create_event()
        runtime.record_event(event, stream)
    if _drain not in runtime._closing:
        runtime.on_finalize(_drain)
    _pending.append((event, host))
    while _pending and (len(_pending) > 256 or runtime.query_event(_pending[0][0])):
        done, _ = _pending.pop(0)
        runtime.synchronize_event(done)
        runtime.destroy_event(done)


def _drain() -> None:
    """Wait for all queued copies, and let go of the host's memory."""
    runtime = get_runtime()
    while _pending:
        event, _ = _pending.pop(0)
        runtime.synchronize_event(event)
        runtime.destroy_event(event)


def _is_pinned(array: ndarray) -> bool:
    from .pinned import is_pinned

    return is_pinned(array)


def _contiguous_like(payload: Any, where: Any) -> NpuPayload:
    from .creation import empty

    return empty(tuple(payload.shape), contiguous_strides(payload.shape), payload.dtype, where)
