"""Devices, memory, streams and events of NPUs: CANN's runtime behind Python calls that raise.

Note [Current device]
ACL binds a device to a thread. A thread that has none gets device 0 with its first call, and `set_device` binds another one. A call that names a device, a
stream or an event binds that device for its duration, so code between calls always sees the device that the thread chose.

Note [Fork]
Neither CANN's handles nor its threads exist in a forked child. There every call raises; releasing things is a no-op, since they belong to the parent.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..._determinism import LISTENERS, SETTINGS
from . import acl_loader
from ._virtual_memory import VirtualMemory
from .acl_loader import Libraries
from .errors import CannNotFound, NpuError, NpuOutOfMemory, SymbolNotFound

__all__ = [
    "D2D",
    "D2H",
    "H2D",
    "H2H",
    "CannNotFound",
    "NpuError",
    "NpuOutOfMemory",
    "Runtime",
    "SymbolNotFound",
    "device_count",
    "get_runtime",
    "in_bad_fork",
    "is_initialized",
    "unavailable_reason",
]

H2H, H2D, D2H, D2D = range(4)

FORKED = "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' start method"
_FINALIZED = "the NPU runtime was finalized: the program is ending"
_REPEATED = frozenset({100002, 207015})
_UNINITIALIZED = 100001


class Runtime(VirtualMemory):
    """An initialised CANN runtime. Made by `get_runtime`; addresses and handles are plain ints. NpuError when a call fails."""

    def __init__(self, libraries: Libraries) -> None:
        self.libraries = libraries
        self.ffi = libraries.ffi
        self.symbol = libraries.symbol
        self.has = libraries.has
        self._dead = ""
        self._thread = threading.local()
        self._lock = threading.RLock()
        self._names: dict[int, str] | None = None
        self._used_devices: set[int] = set()
        self._pinned: set[int] = set()  # the addresses of pinned memory that is lent
        self.reported: set[tuple[int, str]] = (
            set()
        )  # failures of kernels, which devices keep: codes and messages that were raised
        super().__init__()
        self._memory: dict[int, int] = {}
        self._streams: dict[int, int] = {}
        self._events: dict[int, int] = {}
        self._closing: list[Callable[[], None]] = []
        self._count: int | None = None
        status = self.symbol("aclInit")(self.ffi.NULL)
        if status not in _REPEATED:  # another library of the process may have been first
            self.check("aclInit", status)
        LISTENERS.append(self.set_deterministic)
        if SETTINGS.wanted:
            self.set_deterministic(True)

    @property
    def lib(self) -> Libraries:
        """The opened libraries."""
        return self.libraries

    # calls and errors

    def call(self, name: str, *args: Any, detail: str = "") -> None:
        """Call a function that returns a status; NpuError for any but success."""
        if self._dead:
            raise RuntimeError(self._dead)
        status = self.symbol(name)(*args)
        if status:
            raise NpuError.of(self, name, status, detail)

    def check(self, operation: str, status: int, detail: str = "") -> None:
        """Raise for a status that is not success."""
        if status:
            raise NpuError.of(self, operation, status, detail)

    def error_name(self, code: int) -> str:
        """The name of a status code, or nothing."""
        if self._names is None:
            self._names = self.libraries.error_names()
        return self._names.get(code, "")

    def recent_error(self) -> str:
        """CANN's message of this thread's last failure, which this call takes; empty when there is none."""
        text = self.symbol("aclGetRecentErrMsg")()
        return "" if text == self.ffi.NULL else self.ffi.string(text).decode(errors="replace").strip()

    @property
    def alive(self) -> bool:
        """False in a forked child and after `finalize`."""
        return not self._dead

    def _releasable(self) -> bool:
        # At the end of the program, and in a child, things are released whose memory went already.
        return not self._dead

    # devices

    def device_count(self) -> int:
        """The number of devices."""
        if self._count is None:
            self._count = _count(self.libraries)
        return self._count

    def set_device(self, device: int) -> None:
        """Make a device the thread's current one. RuntimeError when there is no such device."""
        if self._dead:
            raise RuntimeError(self._dead)
        if getattr(self._thread, "device", None) == device:
            return
        if not 0 <= device < self.device_count():
            raise RuntimeError(f"NPU error: invalid device ordinal {device}; there are {self.device_count()} devices")
        self.call("aclrtSetDevice", device)
        self._thread.device = device
        if device not in self._used_devices:
            self._used_devices.add(device)
            if SETTINGS.wanted:
                option = self.libraries.constant("ACL_OPT_DETERMINISTIC")
                self.call("aclrtCtxSetSysParamOpt", option, 1, detail="ACL_OPT_DETERMINISTIC")

    def current_device(self) -> int:
        """The thread's current device: 0 until it chooses one."""
        device = getattr(self._thread, "device", None)
        if device is None:
            self.set_device(0)
            return 0
        return device

    @contextlib.contextmanager
    def on(self, device: int | None) -> Iterator[None]:
        """Make a device the thread's current one for a while; None leaves it as it is."""
        before = self.current_device()
        if device is None or device == before:
            yield
            return
        self.set_device(device)
        try:
            yield
        finally:
            self.set_device(before)

    def synchronize_device(self, device: int) -> None:
        """Wait for all work of a device. NpuError for a failure of a kernel that ran since the last wait."""
        with self.on(device):
            self.call("aclrtSynchronizeDevice")

    def set_deterministic(self, mode: bool) -> None:
        """Ask CANN for kernels that give the same bits each time, or no longer: for the process, and for the devices that are in use."""
        if self._dead:
            return
        option = self.libraries.constant("ACL_OPT_DETERMINISTIC")
        self.call("aclrtSetSysParamOpt", option, int(mode), detail="ACL_OPT_DETERMINISTIC")
        for device in sorted(self._used_devices):
            with self.on(device):
                self.call("aclrtCtxSetSysParamOpt", option, int(mode), detail="ACL_OPT_DETERMINISTIC")

    def soc_name(self) -> str:
        """The chip: `Ascend910B1`, ...; empty when CANN does not know it."""
        self.current_device()
        text = self.symbol("aclrtGetSocName")()
        return "" if text == self.ffi.NULL else self.ffi.string(text).decode()

    def device_info(self, device: int, attribute: str) -> int | None:
        """A property: aicore_cores, vector_cores, cube_cores, l2_cache_size; None when this CANN cannot say it."""
        new, old = _DEVICE_INFO[attribute]
        value = self.ffi.new("int64_t *")
        with self.on(device):
            for name, constant in (("aclrtGetDeviceInfo", new), ("aclGetDeviceCapability", old)):
                if constant and self.has(name):
                    status = self.symbol(name)(device, self.libraries.constant(constant), value)
                    if status == 0:
                        return int(value[0])
                    self.recent_error()  # not wanted: the next error must not show it
        return None

    def can_access_peer(self, device: int, peer: int) -> bool:
        """Whether a device can reach the memory of another one."""
        found = self.ffi.new("int32_t *")
        with self.on(device):
            self.call("aclrtDeviceCanAccessPeer", found, device, peer)
        return bool(found[0])

    def enable_peer_access(self, device: int, peer: int) -> None:
        """Let `device` reach the memory of `peer`."""
        with self.on(device):
            self.call("aclrtDeviceEnablePeerAccess", peer, 0, detail=f"from device {device} to device {peer}")

    def disable_peer_access(self, device: int, peer: int) -> None:
        """The reverse of `enable_peer_access`."""
        with self.on(device):
            self.call("aclrtDeviceDisablePeerAccess", peer, detail=f"from device {device} to device {peer}")

    def stream_priority_range(self) -> tuple[int, int]:
        """(least, greatest) priority; (0, 0) where this CANN cannot say."""
        if not self.has("aclrtDeviceGetStreamPriorityRange"):
            return 0, 0
        self.current_device()
        least, greatest = self.ffi.new("int32_t *"), self.ffi.new("int32_t *")
        self.call("aclrtDeviceGetStreamPriorityRange", least, greatest)
        return int(least[0]), int(greatest[0])

    # memory

    def malloc(self, device: int, nbytes: int) -> int:
        """The address of new device memory. NpuOutOfMemory when there is not enough."""
        cell = self.ffi.new("void **")
        with self.on(device):
            self.call("aclrtMalloc", cell, nbytes, 0, detail=f"{nbytes} bytes on npu:{device}")
        address = self._int(cell[0])
        self._memory[address] = device
        return address

    def free(self, device: int, address: int) -> None:
        """Give device memory back. CANN does not wait for work that still uses it: the caller must have."""
        if self._releasable():
            with self.on(device):
                self.call("aclrtFree", self._pointer(address))
            self._memory.pop(address, None)

    def malloc_host(self, nbytes: int) -> int:
        """The address of new pinned host memory."""
        cell = self.ffi.new("void **")
        with self.on(None):
            self.call("aclrtMallocHost", cell, nbytes, detail=f"{nbytes} bytes of pinned memory")
        address = self._int(cell[0])
        self._pinned.add(address)
        return address

    def free_host(self, address: int) -> None:
        """Give pinned memory back."""
        if self._releasable():
            with self.on(None):
                self.call("aclrtFreeHost", self._pointer(address))
            self._pinned.discard(address)

    def mem_get_info(self, device: int) -> tuple[int, int]:
        """(free, total) bytes of a device."""
        free, total = self.ffi.new("size_t *"), self.ffi.new("size_t *")
        with self.on(device):
            self.call("aclrtGetMemInfo", self.libraries.constant("ACL_HBM_MEM"), free, total)
            if not total[0]:  # a chip without HBM
                self.call("aclrtGetMemInfo", self.libraries.constant("ACL_DDR_MEM"), free, total)
        return int(free[0]), int(total[0])

    def memcpy(self, dst: int, src: int, nbytes: int, kind: int) -> None:
        """Copy, and wait until it is done. It does not wait for streams."""
        if nbytes:
            with self.on(None):
                self.call("aclrtMemcpy", self._pointer(dst), nbytes, self._pointer(src), nbytes, kind)

    def memcpy_async(self, dst: int, src: int, nbytes: int, kind: int, stream: int) -> None:
        """Copy on a stream; with pageable host memory CANN waits all the same. Both buffers must outlive the copy."""
        if nbytes:
            with self.on(self._streams.get(stream)):
                target, source = self._pointer(dst), self._pointer(src)
                self.call("aclrtMemcpyAsync", target, nbytes, source, nbytes, kind, self._stream(stream))

    def memset(self, dst: int, value: int, nbytes: int) -> None:
        """Fill device memory with a byte, and wait."""
        if nbytes:
            with self.on(None):
                self.call("aclrtMemset", self._pointer(dst), nbytes, value, nbytes)

    def memset_async(self, dst: int, value: int, nbytes: int, stream: int) -> None:
        """Fill device memory with a byte, on a stream."""
        if nbytes:
            with self.on(self._streams.get(stream)):
                self.call("aclrtMemsetAsync", self._pointer(dst), nbytes, value, nbytes, self._stream(stream))

    # streams

    def create_stream(self, device: int, priority: int = 0) -> int:
        """The handle of a new stream of a device. Priorities from 0, the greatest, to 7."""
        cell = self.ffi.new("aclrtStream *")
        flags = self.libraries.constant("ACL_STREAM_FAST_LAUNCH") | self.libraries.constant("ACL_STREAM_FAST_SYNC")
        with self.on(device):
            self.call("aclrtCreateStreamWithConfig", cell, priority, flags)
        handle = self._int(cell[0])
        self._streams[handle] = device
        return handle

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream when its work is done."""
        if self._releasable():
            with self.on(self._streams.pop(stream, None)):
                self.call("aclrtDestroyStream", self._stream(stream))

    def synchronize_stream(self, stream: int) -> None:
        """Wait for a stream's work. NpuError for a failure of a kernel on it."""
        with self.on(self._streams.get(stream)):
            self.call("aclrtSynchronizeStream", self._stream(stream))

    def query_stream(self, stream: int) -> bool:
        """Whether a stream's work is done."""
        status = self.ffi.new("aclrtStreamStatus *")
        with self.on(self._streams.get(stream)):
            self.call("aclrtStreamQuery", self._stream(stream), status)
        return status[0] == self.libraries.constant("ACL_STREAM_STATUS_COMPLETE")

    # events

    def create_event(self, timing: bool = False, device: int | None = None) -> int:
        """The handle of a new event of a device (the current one); `timing`: its time can be asked for."""
        constant = self.libraries.constant
        flags = constant("ACL_EVENT_SYNC") | constant("ACL_EVENT_CAPTURE_STREAM_PROGRESS")
        if timing:
            flags |= constant("ACL_EVENT_TIME_LINE")
        cell = self.ffi.new("aclrtEvent *")
        with self.on(device):
            self.call("aclrtCreateEventExWithFlag", cell, flags)
            handle = self._int(cell[0])
            self._events[handle] = self.current_device()
        return handle

    def destroy_event(self, event: int) -> None:
        """Destroy an event."""
        if self._releasable():
            with self.on(self._events.pop(event, None)):
                self.call("aclrtDestroyEvent", self._event(event))

    def record_event(self, event: int, stream: int) -> None:
        """Let the event stand for the work that is on a stream now."""
        with self.on(self._streams.get(stream)):
            self.call("aclrtRecordEvent", self._event(event), self._stream(stream))

    def query_event(self, event: int) -> bool:
        """Whether the recorded work is done; true of an event that was never recorded."""
        status = self.ffi.new("aclrtEventRecordedStatus *")
        with self.on(self._events.get(event)):
            self.call("aclrtQueryEventStatus", self._event(event), status)
        return status[0] == self.libraries.constant("ACL_EVENT_RECORDED_STATUS_COMPLETE")

    def synchronize_event(self, event: int) -> None:
        """Wait for the recorded work."""
        with self.on(self._events.get(event)):
            self.call("aclrtSynchronizeEvent", self._event(event))

    def stream_wait_event(self, stream: int, event: int) -> None:
        """Let later work of a stream wait for the recorded work."""
        with self.on(self._streams.get(stream)):
            self.call("aclrtStreamWaitEvent", self._stream(stream), self._event(event))

    def elapsed_ms(self, start: int, end: int) -> float:
        """Milliseconds between two recorded events that were made with `timing`."""
        cell = self.ffi.new("float *")
        with self.on(self._events.get(start)):
            self.call("aclrtEventElapsedTime", cell, self._event(start), self._event(end))
        return float(cell[0])

    # the end

    def on_finalize(self, function: Callable[[], None]) -> None:
        """Call a function before the runtime ends; the last registered is the first."""
        self._closing.append(function)

    def finalize(self) -> None:
        """Wait for the devices, release what is left, and end CANN. Later calls raise RuntimeError; releasing does nothing."""
        with self._lock:
            if self._dead:
                return
            try:
                # Each step runs, whatever another one raises; the last pushed is the first.
                with contextlib.ExitStack() as steps:
                    steps.callback(self._end)
                    steps.callback(self._release_rest)
                    for function in self._closing:
                        steps.callback(function)
                    for device in sorted(self._used_devices):
                        steps.callback(self._last_wait, device, frozenset(self.reported))
            finally:
                self._dead = _FINALIZED

    def _end(self) -> None:
        """Reset the devices and end CANN, but where arrays still lie in pinned memory, which would go: the end of the process gives it back."""
        if self._pinned:
            gc.collect()
        if self._pinned:
            return
        with contextlib.ExitStack() as steps:
            steps.callback(self.call, "aclFinalize")
            for device in sorted(self._used_devices):
                steps.callback(self.call, "aclrtResetDevice", device)

    def _last_wait(self, device: int, reported: frozenset[tuple[int, str]]) -> None:
        """Wait for a device at the end: a failure that nobody has seen yet must show."""
        try:
            self.synchronize_device(device)
        except NpuError as error:
            if (error.code, error.recent) not in reported:
                raise

    def _release_rest(self) -> None:
        """Release what tensors, streams and events hold that live to the end; allocators have given back what nobody holds."""
        with contextlib.ExitStack() as steps:
            steps.callback(self.release_mapped)
            for address, device in list(self._memory.items()):
                steps.callback(self.free, device, address)
            for event in list(self._events):
                steps.callback(self.destroy_event, event)
            for stream in list(self._streams):
                steps.callback(self.destroy_stream, stream)

    def abandon(self) -> None:
        """Make every call raise, see Note [Fork]."""
        self._dead = FORKED
        self._lock = threading.RLock()

    # conversions

    def _pointer(self, address: int) -> Any:
        return self.ffi.cast("void *", address)

    def _stream(self, handle: int) -> Any:
        return self.ffi.cast("aclrtStream", handle)

    def _event(self, handle: int) -> Any:
        return self.ffi.cast("aclrtEvent", handle)

    def _int(self, pointer: Any) -> int:
        return int(self.ffi.cast("uintptr_t", pointer))


_DEVICE_INFO = {
    "aicore_cores": ("ACL_DEV_ATTR_AICORE_CORE_NUM", "ACL_DEVICE_INFO_AI_CORE_NUM"),
    "cube_cores": ("ACL_DEV_ATTR_CUBE_CORE_NUM", ""),
    "vector_cores": ("ACL_DEV_ATTR_VECTOR_CORE_NUM", "ACL_DEVICE_INFO_VECTOR_CORE_NUM"),
    "l2_cache_size": ("ACL_DEV_ATTR_L2_CACHE_SIZE", "ACL_DEVICE_INFO_L2_SIZE"),
}
"""Names of a property: for aclrtGetDeviceInfo, and for aclGetDeviceCapability of older versions."""

_runtime: Runtime | None = None
_forked = False
_touched = False
_lock = threading.Lock()


def _count(libraries: Libraries) -> int:
    global _touched
    cell = libraries.ffi.new("uint32_t *")
    status = libraries.symbol("aclrtGetDeviceCount")(cell)
    if status == _UNINITIALIZED:
        _touched = True  # from here on a forked child cannot use it, see Note [Fork]
        libraries.symbol("aclInit")(libraries.ffi.NULL)
        status = libraries.symbol("aclrtGetDeviceCount")(cell)
    return 0 if status else int(cell[0])


_found: int | None = None


def device_count() -> int:
    """The number of NPUs, 0 without CANN or without a device. It opens CANN's libraries when they are found, and does not initialise them."""
    global _found
    if _runtime is not None:
        return _runtime.device_count()
    if _found is None:
        if not (acl_loader.EMULATOR.exists() if acl_loader.emulated() else acl_loader.find_cann()):
            return 0  # asked again: an environment may be set later
        try:
            _found = _count(acl_loader.load())
        except (CannNotFound, SymbolNotFound):
            return 0
    return _found


def unavailable_reason() -> str:
    """Why there is no NPU to use, or nothing."""
    try:
        acl_loader.load()
    except CannNotFound as error:
        return f"no NPU is available: {error}"
    if device_count() == 0:
        driver = acl_loader.find_driver()
        found = f"the Ascend driver is at {driver}" if driver else "the Ascend driver was not found"
        return f"no NPU is available: CANN was found in {acl_loader.load().home} but reports no device; {found}"
    return ""


def is_initialized() -> bool:
    """Whether the runtime runs in this process."""
    return _runtime is not None and _runtime.alive


def in_bad_fork() -> bool:
    """Whether this is a forked child of a process that had initialised the runtime."""
    return _forked


def get_runtime() -> Runtime:
    """The runtime, initialised with the first call. RuntimeError, with the reason, when there is no NPU, and in a forked child."""
    global _runtime
    runtime = _runtime
    if runtime is not None and not runtime._dead:
        return runtime
    if _forked:
        raise RuntimeError(FORKED)
    with _lock:
        if _runtime is None:
            libraries = acl_loader.load()
            if device_count() == 0:
                raise RuntimeError(unavailable_reason())
            _runtime = Runtime(libraries)
            atexit.register(_runtime.finalize)
        if not _runtime.alive:
            raise RuntimeError(_runtime._dead)
        return _runtime


def _after_fork() -> None:
    global _forked, _lock
    _lock = threading.Lock()
    if _runtime is not None:
        _runtime.abandon()
    if _runtime is not None or _touched:
        _forked = True


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
