"""Bytes between storages, and between a storage and the host.

Copies within a device run on its current stream. Those that the host takes part in wait for that stream first, so they see what was queued before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from ..._memory import address
from ..._warnings import warn_of_call, warn_once
from . import _late
from .errors import NpuError
from .runtime import D2D, D2H, H2D, get_runtime
from .streams import current_stream


class _Waiting:
    """What calls that wait for a device without being asked to do: 0 nothing, 1 warn, 2 raise. See `torch.npu.set_sync_debug_mode`."""

    mode = 0

    def tell(self) -> None:
        """Say that the host waits now."""
        if self.mode == 2:
            raise RuntimeError("called a synchronizing NPU operation")
        if self.mode:
            warn_of_call("called a synchronizing NPU operation")


waiting = _Waiting()
_peers: dict[tuple[int, int], bool] = {}


def copy_bytes(target: Any, source: Any, nbytes: int) -> None:
    """The first bytes of one storage into another one."""
    if not nbytes:
        return
    _late.settle()
    runtime = get_runtime()
    index = source.device.index
    stream = current_stream(index).handle
    with runtime.on(index):
        if target.device.index == index:
            runtime.memcpy_async(target.data_ptr(), source.data_ptr(), nbytes, D2D, stream)
            return
        runtime.synchronize_stream(stream)
        runtime.synchronize_stream(current_stream(target.device.index).handle)
        if _connected(runtime, index, target.device.index):
            runtime.memcpy(target.data_ptr(), source.data_ptr(), nbytes, D2D)
            return
    # Devices that do not reach each other: through the host, which was asked for.
    upload(target, 0, bytes_of(source, 0, nbytes))


def _connected(runtime: Any, source: int, target: int) -> bool:
    """Whether the devices reach each other's memory: access is opened with the first copy, both ways. Where CANN cannot open it, copies go through the host."""
    pair = (min(source, target), max(source, target))
    if pair not in _peers:
        try:
            _peers[pair] = all(runtime.can_access_peer(a, b) for a, b in (pair, pair[::-1]))
            for a, b in (pair, pair[::-1]) if _peers[pair] else ():
                runtime.enable_peer_access(a, b)
        except NpuError as error:
            _peers[pair] = False
            warn_once(
                f"npu:{source} and npu:{target} do not reach each other's memory, and copies go through the host: {error}"
            )
    return _peers[pair]


def upload(storage: Any, start: int, content: ndarray) -> None:
    """Bytes of the host into a storage, from byte `start` on."""
    content = np.ascontiguousarray(content)
    if not content.nbytes:
        return
    _late.settle()
    waiting.tell()
    runtime = get_runtime()
    index = storage.device.index
    with runtime.on(index):
        runtime.synchronize_stream(current_stream(index).handle)
        runtime.memcpy(storage.data_ptr() + start, address(content), content.nbytes, H2D)


def bytes_of(storage: Any, start: int = 0, nbytes: int | None = None) -> ndarray:
    """Bytes of a storage, on the host."""
    nbytes = storage.nbytes() - start if nbytes is None else nbytes
    found = np.empty(nbytes, np.uint8)
    if nbytes:
        _late.settle()
        waiting.tell()
        runtime = get_runtime()
        index = storage.device.index
        with runtime.on(index):
            runtime.synchronize_stream(current_stream(index).handle)
            runtime.memcpy(address(found), storage.data_ptr() + start, nbytes, D2H)
    return found
