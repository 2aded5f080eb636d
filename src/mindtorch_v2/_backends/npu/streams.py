"""Streams and events of NPUs.

Note [Stream pool]
Streams come from a pool of 32 for each device and priority, and live as long as the process, as PyTorch's do: what the allocator keeps for
a stream never belongs to another one that got the same handle. From the 33rd on they are shared in turn.

Note [Retired events]
CANN's events must outlive the work that waits for them. One that nobody holds any more is destroyed when the streams that it concerns have done
their work; until then it waits in a list that later events look through.
"""

from __future__ import annotations

import collections
import functools
import itertools
import threading
from typing import Any

from ... import _forks
from ..._device import decorate, device as Device
from ..._state import run_recorded
from .runtime import get_runtime

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "device_index",
    "set_stream",
    "stream",
]

POOL_SIZE = 32

_lock = _forks.lock()
_ids = itertools.count(1)
_defaults: dict[int, Stream] = {}
_by_id: dict[tuple[int, int], tuple[int, int]] = {}
_pools: dict[tuple[int, int], list[tuple[int, int]]] = {}
_turns: dict[tuple[int, int], int] = {}
_thread = threading.local()


def device_index(device: Any = None) -> int:
    """The index that a device argument means: None and `npu` the current one.

    ValueError for a device of another type, TypeError for something else.
    """
    if device is None:
        return get_runtime().current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return get_runtime().current_device() if device < 0 else device
    if not isinstance(device, (str, Device)):
        raise TypeError(f"expected a torch.device, a string or an int for an NPU, but got {type(device).__name__}")
    where = Device(device)
    if where.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {where}")
    return get_runtime().current_device() if where.index is None else where.index


class Stream:
    """A queue of work of a device: `Stream(device=None, priority=0)`. Work on different streams may run at once.

    priority: lower numbers are more urgent, in `npu.stream_priority_range()`; what lies outside counts as its nearer end. As a context manager it is
    the current stream. `Stream(stream_id=, device_index=)` is one that exists.
    """

    __slots__ = ("handle", "device", "stream_id", "priority", "_before", "__weakref__")

    handle: int
    device: Device
    stream_id: int
    priority: int

    def __init__(
        self,
        device: Any = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: Any = None,
    ) -> None:
        if stream_id is not None:
            index = get_runtime().current_device() if device_index is None else device_index
            known = _by_id.get((index, stream_id))
            if known is None:
                raise RuntimeError(f"npu:{index} has no stream with the id {stream_id}")
            handle, priority = known
        else:
            index = globals()["device_index"](device)
            priority = _priority(priority)
            stream_id, handle = _from_pool(index, priority)
        self._set(handle, index, stream_id, priority)

    def _set(self, handle: int, index: int, stream_id: int, priority: int) -> Stream:
        self.handle = handle
        self.device = Device("npu", index)
        self.stream_id = stream_id
        self.priority = priority
        self._before: list[StreamContext] = []
        return self

    @property
    def npu_stream(self) -> int:
        """The handle, by torch_npu's name."""
        return self.handle

    @property
    def device_index(self) -> int:
        """The device's index."""
        return self.device.index  # type: ignore[return-value]

    @property
    def device_type(self) -> str:
        """`npu`."""
        return self.device.type

    def wait_event(self, event: Event) -> None:
        """Let later work of this stream wait for an event; this call does not wait. Nothing happens for an event that was never recorded."""
        run_recorded()
        if event._handle:
            get_runtime().stream_wait_event(self.handle, event._handle)
            event._concerns.add(self.handle)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream wait for the work that is on another one now."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event (a new one) on this stream, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done."""
        run_recorded()
        return get_runtime().query_stream(self.handle)

    def synchronize(self) -> None:
        """Wait until all work is done. NpuError for a failure of it."""
        run_recorded()
        get_runtime().synchronize_stream(self.handle)

    def __enter__(self) -> Stream:
        context = StreamContext(self)
        context.__enter__()
        self._before.append(context)
        return self

    def __exit__(self, *exc: object) -> None:
        self._before.pop().__exit__(*exc)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.handle == other.handle and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.handle, self.device))

    def __repr__(self) -> str:
        return f"<torch.npu.Stream device={self.device} npu_stream={self.handle:#x}>"


class Event:
    """A point in a stream's work that others can wait for.

    enable_timing: `elapsed_time` can be asked for. blocking: accepted (waiting never spins). It belongs to the device of the stream that it is first
    recorded on.
    """

    __slots__ = ("_handle", "_timing", "_index", "_concerns", "__weakref__")

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        if interprocess:
            raise RuntimeError("events between processes are not supported on NPUs")
        self._handle = 0
        self._timing = enable_timing
        self._index = -1
        self._concerns: set[int] = set()

    @property
    def device(self) -> Device | None:
        """The device, or None before the first `record`."""
        return Device("npu", self._index) if self._handle else None

    @property
    def npu_event(self) -> int:
        """The handle; 0 before the first `record`."""
        return self._handle

    @property
    def event_id(self) -> int:
        """The handle; 0 before the first `record`."""
        return self._handle

    def record(self, stream: Stream | None = None) -> None:
        """Let the event stand for the work that is on a stream (the current one) now. RuntimeError for a stream of another device than before."""
        run_recorded()
        stream = current_stream() if stream is None else stream
        runtime = get_runtime()
        if not self._handle:
            _sweep()
            self._handle = runtime.create_event(self._timing, stream.device_index)
            self._index = stream.device_index
        elif self._index != stream.device_index:
            raise RuntimeError(
                f"Event device {self._index} does not match recording stream's device {stream.device_index}."
            )
        runtime.record_event(self._handle, stream.handle)
        self._concerns.add(stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream (the current one) wait for the event; this call does not wait."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether the recorded work is done; true of an event that was never recorded."""
        return not self._handle or get_runtime().query_event(self._handle)

    def synchronize(self) -> None:
        """Wait until the recorded work is done."""
        if self._handle:
            get_runtime().synchronize_event(self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to a later one. ValueError unless both were made for timing, recorded, and are done."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._handle and end_event._handle):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return get_runtime().elapsed_ms(self._handle, end_event._handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            _retired.append((self._handle, frozenset(self._concerns)))

    def __repr__(self) -> str:
        state = "uninitialized" if not self._handle else hex(self._handle)
        return f"<torch.npu.Event {state}>"


_retired: collections.deque[tuple[int, frozenset[int]]] = collections.deque()


def _sweep() -> None:
    """Destroy retired events whose streams have done their work, see Note [Retired events]."""
    runtime = get_runtime()
    idle: dict[int, bool] = {}
    for _ in range(len(_retired)):
        try:
            handle, streams = _retired.popleft()
        except IndexError:  # another thread was first
            return
        for stream in streams - idle.keys():
            idle[stream] = runtime.query_stream(stream)
        if all(idle[stream] for stream in streams):
            runtime.destroy_event(handle)
        else:
            _retired.append((handle, streams))


def _priority(priority: int) -> int:
    least, greatest = get_runtime().stream_priority_range()
    return min(max(priority, greatest), least)


def _from_pool(index: int, priority: int) -> tuple[int, int]:
    """(id, handle) of the next stream of a pool, see Note [Stream pool]."""
    key = (index, priority)
    with _lock:
        pool = _pools.setdefault(key, [])
        if len(pool) < POOL_SIZE:
            handle = get_runtime().create_stream(index, priority)
            made = (next(_ids), handle)
            pool.append(made)
            _by_id[index, made[0]] = (handle, priority)
            return made
        turn = _turns.get(key, 0)
        _turns[key] = (turn + 1) % POOL_SIZE
        return pool[turn]


def default_stream(device: Any = None) -> Stream:
    """The stream that a device's work goes to until another one is chosen."""
    index = device_index(device)
    found = _defaults.get(index)
    if found is None:
        with _lock:
            found = _defaults.get(index)
            if found is None:
                handle = get_runtime().create_stream(index)
                found = Stream.__new__(Stream)._set(handle, index, 0, 0)
                _by_id[index, 0] = (handle, 0)
                _defaults[index] = found
    return found


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on a device goes to."""
    index = device if device.__class__ is int and device >= 0 else device_index(device)
    try:
        return _thread.streams[index]
    except (AttributeError, KeyError):
        found = default_stream(index)
        chosen().setdefault(index, found)  # where launches of the extension look
        return found


def chosen() -> dict[int, Stream]:
    """This thread's streams by device."""
    if not hasattr(_thread, "streams"):
        _thread.streams = {}
    return _thread.streams


def set_stream(stream: Stream | None) -> None:
    """Make a stream this thread's current one on its device, and that device the current one. Better use `stream` as a context manager. None: nothing."""
    if stream is None:
        return
    get_runtime().set_device(stream.device_index)
    _choose(stream)


def _choose(stream: Stream) -> None:
    run_recorded()  # on the stream that was the current one
    chosen()[stream.device_index] = stream


class StreamContext:
    """Makes a stream, and its device, current for a while. None changes nothing. Also a decorator."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._device = get_runtime().current_device()
        self._previous = current_stream(self.stream.device_index)
        set_stream(self.stream)

    def __exit__(self, *exc: object) -> None:
        if self.stream is None:
            return
        _choose(self._previous)
        get_runtime().set_device(self._device)

    def __call__(self, function: Any) -> Any:
        return decorate(function, functools.partial(StreamContext, self.stream))


def stream(stream: Stream | None) -> StreamContext:
    """A context in which a stream is the current one."""
    return StreamContext(stream)
