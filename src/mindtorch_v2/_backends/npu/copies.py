"""Copies: within a device, between devices, and between device and host.

Copies within a device run on its current stream. Those that the host takes part in wait for that stream first, so they see what was queued before; with pinned memory and
`non_blocking` they are queued too, and the host memory is kept until they have passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..._memory import address
from ..._payload import contiguous_strides
from . import aclnn
from .payload import NpuPayload, extent_bytes
from .runtime import get_runtime
from .streams import current_stream

H2D, D2H, D2D = 1, 2, 3
_peers: dict[tuple[int, int], bool] = {}
_pending: list[tuple[int, Any]] = []  # events behind queued copies, and the host memory that they read


def copy(target: Any, source: Any, non_blocking: bool = False) -> None:
    """Elements of one payload into another of the same shape, on any of CPU and NPUs, with conversion of the dtype."""
    if isinstance(target, ndarray):
        np.copyto(target, to_host(source), casting="unsafe")
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


def _as_real(payload: NpuPayload) -> NpuPayload:
    """Complex numbers as pairs of real ones, over the same memory."""
    shape, stride = (*payload.shape, 2), (*(2 * step for step in payload.stride), 1)
    return NpuPayload(shape, stride, payload.dtype.to_real(), 2 * payload.offset, payload.storage)


def copy_bytes(target: Any, source: Any, nbytes: int) -> None:
    """The first bytes of one storage into another one."""
    if not nbytes:
        return
    runtime = get_runtime()
    index = source.device.index
    stream = current_stream(index).handle
    with aclnn.on_device(runtime, index):
        if target.device.index == index:
            runtime.memcpy_async(target.data_ptr(), source.data_ptr(), nbytes, D2D, stream)
            return
        runtime.synchronize_stream(stream)
        runtime.synchronize_stream(current_stream(target.device.index).handle)
        if _connected(runtime, index, target.device.index):
            runtime.memcpy(target.data_ptr(), source.data_ptr(), nbytes, D2D)
            return
    upload(
        target, 0, bytes_of(source, 0, nbytes)
    )  # devices that do not reach each other: through the host, which was asked for


def _connected(runtime: Any, source: int, target: int) -> bool:
    """Whether the devices reach each other's memory; access is opened with the first copy."""
    pair = (source, target)
    if pair not in _peers:
        _peers[pair] = runtime.can_access_peer(source, target)
        if _peers[pair]:
            runtime.enable_peer_access(source, target)
    return _peers[pair]


def upload(storage: Any, start: int, content: ndarray) -> None:
    """Bytes of the host into a storage, from byte `start` on."""
    content = np.ascontiguousarray(content)
    if not content.nbytes:
        return
    runtime = get_runtime()
    index = storage.device.index
    with aclnn.on_device(runtime, index):
        runtime.synchronize_stream(current_stream(index).handle)
        runtime.memcpy(storage.data_ptr() + start, address(content), content.nbytes, H2D)


def bytes_of(storage: Any, start: int = 0, nbytes: int | None = None) -> ndarray:
    """Bytes of a storage, on the host."""
    nbytes = storage.nbytes() - start if nbytes is None else nbytes
    found = np.empty(nbytes, np.uint8)
    if nbytes:
        runtime = get_runtime()
        index = storage.device.index
        with aclnn.on_device(runtime, index):
            runtime.synchronize_stream(current_stream(index).handle)
            runtime.memcpy(address(found), storage.data_ptr() + start, nbytes, D2H)
    return found


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
    runtime = get_runtime()
    index = place.device.index
    stream = current_stream(index).handle
    with aclnn.on_device(runtime, index):
        runtime.memcpy_async(place.address, address(source), source.nbytes, H2D, stream)
        event = runtime.create_event()
        runtime.record_event(event, stream)
    _pending.append((event, source))
    while _pending and (len(_pending) > 256 or runtime.query_event(_pending[0][0])):
        done, _ = _pending.pop(0)
        runtime.synchronize_event(done)
        runtime.destroy_event(done)


def _is_pinned(array: ndarray) -> bool:
    from .pinned import is_pinned_array

    return is_pinned_array(array)


def _contiguous_like(payload: Any, where: Any) -> NpuPayload:
    from .creation import empty

    return empty(tuple(payload.shape), contiguous_strides(payload.shape), payload.dtype, where)
