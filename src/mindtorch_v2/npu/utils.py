"""Devices: what they are, which one is current, how they reach each other. `torch.npu` shows these names, `torch.npu.utils` has them."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._backends.npu import is_available, runtime as _runtime
from .._backends.npu.errors import NpuError
from .._backends.npu.runtime import device_count, is_initialized
from .._backends.npu.streams import StreamContext, current_stream, default_stream, set_stream, stream
from .._device import decorate as _decorate, device as _device, placed as _placed
from .._state import run_recorded

if TYPE_CHECKING:
    from .._device import DeviceLike

__all__ = [
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "disable_peer_access",
    "enable_peer_access",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_soc_name",
    "get_sync_debug_mode",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "set_device",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "stream_priority_range",
    "synchronize",
]

# ------------------------------------------------------------------------------------------------------------------ the runtime


def init() -> None:
    """Initialise CANN; the first use of a device does the same. RuntimeError without an NPU, and in a forked child."""
    _runtime.get_runtime()


def _lazy_init() -> None:
    init()


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had initialised CANN, so that it cannot use NPUs."""
    return _runtime.in_bad_fork()


def _index(device: DeviceLike | None, optional: bool = False) -> int:
    """The index that a device argument means; the current one for None and `npu`. It initialises nothing.

    optional: -1 for None and for negative indices.
    """
    if device is None:
        return -1 if optional else _current()
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            return -1 if optional else _current()
        return device
    if not isinstance(device, (str, _device)):
        raise TypeError(f"expected a torch.device, a string or an int for an NPU, but got {type(device).__name__}")
    where = _placed(device)
    if where.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {where}")
    return _current() if where.index is None else where.index


def _current() -> int:
    # Before the runtime is there, no thread can have chosen another device.
    return _runtime.get_runtime().current_device() if _runtime.is_initialized() else 0


def _checked(device: DeviceLike | None) -> int:
    """The index of a device that exists. RuntimeError without an NPU, AssertionError for another index, as PyTorch's."""
    _runtime.get_runtime()
    index = _index(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return index


# ---------------------------------------------------------------------------------------------------------------------- devices


def current_device() -> int:
    """The index of this thread's current device."""
    return _runtime.get_runtime().current_device()


def set_device(device: DeviceLike) -> None:
    """Make a device this thread's current one; a negative index changes nothing. RuntimeError when there is no such device."""
    index = _index(device, optional=True)
    if index >= 0:
        _runtime.get_runtime().set_device(index)


def synchronize(device: DeviceLike | None = None) -> None:
    """Wait for all work of a device (the current one). NpuError for a failure of it."""
    run_recorded()
    runtime = _runtime.get_runtime()
    runtime.synchronize_device(_index(device))


class device(contextlib.ContextDecorator):
    """Makes a device this thread's current one for a while: `with npu.device(1):`. None and negative indices change nothing. Also a decorator."""

    def __init__(self, device: DeviceLike | None) -> None:
        self.idx = _index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.prev_idx >= 0:
            set_device(self.prev_idx)

    def __call__(self, func: Any) -> Any:
        return _decorate(func, lambda: device(self.idx))


class device_of(device):
    """Makes the device of a tensor (or storage) the current one for a while; for those of other devices nothing changes."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == "npu" else -1)


def _get_device_name(device: DeviceLike | None = None) -> str:
    _checked(device)
    return _runtime.get_runtime().soc_name()


def get_device_name(device: DeviceLike | None = None) -> str:
    """The name of the chip: `Ascend910B1`, ..."""
    return _get_device_name(device)


def get_soc_name() -> str:
    """The name of the chip, as CANN gives it."""
    return _runtime.get_runtime().soc_name()


def _get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    _checked(device)
    text = os.environ.get(_CAPABILITY, "")
    if not text:
        return 0, 0
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if match is None:
        raise ValueError(f"{_CAPABILITY} must be two numbers like 8.0, got '{text}'")
    return int(match[1]), int(match[2])


def get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    """What TORCH_NPU_DEVICE_CAPABILITY says (`8.0`), for programs that ask; else (0, 0): NPUs have no such number. `get_device_name` tells chips apart."""
    return _get_device_capability(device)


_CAPABILITY = "TORCH_NPU_DEVICE_CAPABILITY"


@dataclass(frozen=True)
class _NpuDeviceProperties:
    """What CANN says of a device; None for what this version of it does not say."""

    name: str
    total_memory: int
    multi_processor_count: int | None
    cube_core_num: int | None
    vector_core_num: int | None
    L2_cache_size: int | None
    major: int = 0
    minor: int = 0


def get_device_properties(device: DeviceLike | None = None) -> _NpuDeviceProperties:
    """Name, memory in bytes, and numbers of cores of a device."""
    index = _checked(device)
    runtime = _runtime.get_runtime()
    return _NpuDeviceProperties(
        name=_get_device_name(index),
        total_memory=runtime.mem_get_info(index)[1],
        multi_processor_count=runtime.device_info(index, "aicore_cores"),
        cube_core_num=runtime.device_info(index, "cube_cores"),
        vector_core_num=runtime.device_info(index, "vector_cores"),
        L2_cache_size=runtime.device_info(index, "l2_cache_size"),
    )


_BF16_CHIPS = re.compile(r"Ascend(910B\d|910_\d|950)")  # a bare Ascend910B is older hardware


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the chip computes in bfloat16: from 910B1 on, not 910A and 310P. False without an NPU."""
    return is_available() and _BF16_CHIPS.match(_runtime.get_runtime().soc_name()) is not None


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether a device can reach the memory of another one. False, with a warning, where CANN cannot say."""
    if not is_available():
        warnings.warn("npu.can_device_access_peer: no NPU is available, so CANN cannot say", UserWarning, stacklevel=2)
        return False
    index, peer = _checked(device), _checked(peer_device)
    if index == peer:
        return False
    try:
        return _runtime.get_runtime().can_access_peer(index, peer)
    except NpuError as error:
        warnings.warn(f"npu.can_device_access_peer: CANN cannot say: {error}", UserWarning, stacklevel=2)
        return False


def enable_peer_access(peer_device: DeviceLike, device: DeviceLike | None = None) -> None:
    """Let a device (the current one) reach the memory of another one. RuntimeError without an NPU, NpuError when CANN refuses."""
    index, peer = _checked(device), _checked(peer_device)
    _runtime.get_runtime().enable_peer_access(index, peer)


def disable_peer_access(peer_device: DeviceLike, device: DeviceLike | None = None) -> None:
    """The reverse of `enable_peer_access`."""
    index, peer = _checked(device), _checked(peer_device)
    _runtime.get_runtime().disable_peer_access(index, peer)


def stream_priority_range() -> tuple[int, int]:
    """(least, greatest) priority of streams; (0, 0) where CANN cannot say, and without an NPU."""
    return _runtime.get_runtime().stream_priority_range() if is_available() else (0, 0)


def ipc_collect() -> None:
    """Give back what processes shared: nothing is shared between processes on NPUs."""


# ---------------------------------------------------------------------------------------------------------- waits that nobody asked for


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Warn (1, "warn") of calls that wait for a device without being asked to, `item` and copies to the host among them, or raise (2, "error"); 0, "default": neither.

    TypeError for another type, ValueError and RuntimeError for other words and numbers, as `torch.cuda`'s.
    """
    from .._backends.npu import transfers

    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_MODES.index(debug_mode)
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be an int or a str, not {type(debug_mode).__name__}")
    if not 0 <= debug_mode < len(_SYNC_MODES):
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    transfers.waiting.mode = debug_mode


def get_sync_debug_mode() -> int:
    """What `set_sync_debug_mode` set: 0, 1 or 2."""
    from .._backends.npu import transfers

    return transfers.waiting.mode


_SYNC_MODES = ("default", "warn", "error")
