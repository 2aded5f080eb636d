"""`torch.Stream` and `torch.Event`: of an NPU its own, of the CPU and the meta device a queue that is always empty."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from mindtorch_v2._backends.npu import is_available
from mindtorch_v2._device import TYPES, device as Device, placed

_QUEUELESS = ("cpu", "meta")


def _device(device: Any) -> Device:
    if device is None:
        device = "npu" if is_available() else "cpu"
    found = placed(device)
    if found.type not in (*_QUEUELESS, "npu"):
        raise RuntimeError(f"PyTorch is not linked with support for {found.type} devices")
    return found


class _Any(type):
    """Class of `Stream` and `Event`: those of NPUs, which are classes of their own, are instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        loaded = sys.modules.get("mindtorch_v2._backends.npu.streams")  # without it there is no such stream
        return loaded is not None and isinstance(instance, getattr(loaded, cls.__name__))


class Stream(metaclass=_Any):
    """`Stream(device=None, priority=0)`, or one that exists: `Stream(stream_id=, device_index=, device_type=)`.

    On the CPU work is done when a call returns: there is nothing to wait for, and no events. `Stream("npu")` is a `torch.npu.Stream`.
    """

    device: Device
    stream_id: int
    device_index: int
    device_type: int

    def __new__(
        cls,
        device: Any = None,
        priority: int = 0,
        *,
        stream_id: int = 0,
        device_index: int | None = None,
        device_type: int | None = None,
    ) -> Any:
        where = _device(TYPES[device_type] if device is None and device_type is not None else device)
        if where.type == "npu":
            from mindtorch_v2 import npu

            return npu.Stream(where, priority)
        made = object.__new__(cls)
        made.device, made.stream_id, made.device_type = where, stream_id, TYPES.index(where.type)
        made.device_index = -1 if device_index is None and where.index is None else device_index or where.index or 0
        return made

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def is_capturing(self) -> bool:
        """Whether work is recorded instead of done: never."""
        return False

    def synchronize(self) -> None:
        """Wait until all work is done: it is."""

    def native_handle(self) -> NoReturn:
        """RuntimeError: there is none."""
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def record_event(self, event: Any = None) -> NoReturn:
        """RuntimeError: events are of devices with queues."""
        raise _eventless(self.device)

    def wait_event(self, event: Any) -> None:
        """Let later work wait for an event: nothing can be recorded in it."""

    def wait_stream(self, stream: Any) -> NoReturn:
        """RuntimeError: events are of devices with queues."""
        raise _eventless(self.device)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.device_index, self.stream_id) == (other.device, other.device_index, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event(metaclass=_Any):
    """`Event(device=None, enable_timing=False, blocking=False, interprocess=False)`; of the CPU one that cannot be recorded.

    `Event("npu")` is a `torch.npu.Event`.
    """

    device: Device
    event_id = 0

    def __new__(
        cls, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Any:
        where = _device(device)
        if where.type == "npu":
            from mindtorch_v2 import npu

            return npu.Event(enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)
        made = object.__new__(cls)
        made.device, made._timing = where, enable_timing
        return made

    _timing: bool

    def query(self) -> bool:
        """Whether the recorded work is done: nothing was recorded."""
        return True

    def synchronize(self) -> None:
        """Wait until the recorded work is done: nothing was recorded."""

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait for the recorded work: nothing was recorded."""

    def record(self, stream: Any = None) -> NoReturn:
        """RuntimeError: events are of devices with queues."""
        raise _eventless(self.device)

    def elapsed_time(self, other: Any) -> NoReturn:
        """ValueError unless both were made for timing; else RuntimeError."""
        if not (self._timing and other._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise _eventless(self.device)

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return f"torch.Event device_type={self.device.type}, device_index={index}, event_flag={int(self._timing)}, event_id=0"


Stream.__module__ = Event.__module__ = "torch"


def _eventless(device: Device) -> RuntimeError:
    return RuntimeError(f"{device.type} backend doesn't support events.")
