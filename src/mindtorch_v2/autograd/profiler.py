"""`torch.autograd.profiler`: records what a thread does, operators and their derivatives, with times; most programs use `torch.profiler`, which is made of it."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any

from .._imports import outside
from .._state import TLS

if TYPE_CHECKING:
    from .._profiling.recording import Recording
    from .profiler_util import EventList, FunctionEvent, FunctionEventAvg

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]


def __getattr__(name: str) -> Any:
    if name in ("EventList", "FunctionEvent", "FunctionEventAvg", "DeviceType", "MEMORY_EVENT_NAME"):
        from . import profiler_util

        return getattr(profiler_util, name)
    if name == "_is_profiler_enabled":
        return TLS.profiler is not None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class record_function(ContextDecorator):
    """Names a block, or as a decorator the calls of a function, for the profiler that is on; without one it does nothing."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self.run_callbacks_on_exit = True
        self.record: Any = None

    def _recreate_cm(self) -> record_function:
        return type(self)(self.name, self.args)

    def __enter__(self) -> record_function:
        profiler = TLS.profiler
        if profiler is not None:
            self.record = (profiler, profiler.open(self.name))
        return self

    def __exit__(self, *exc: object) -> None:
        if self.record is not None:
            profiler, about = self.record
            self.record = None
            profiler.close(about)


class _RecordFunctionFast(record_function):
    """`record_function` of code that compilers write; the values of arguments are not kept."""

    def __init__(self, name: str, input_values: Any = None, keyword_values: Any = None) -> None:
        super().__init__(name)


class profile:
    """Records the operators that this thread runs in its block.

    record_shapes: the shapes of arguments. with_flops: floating-point operations. profile_memory: the memory that operators take and give back.
    with_stack: the lines that called them, and modules. with_modules: the modules whose forward called them. `enabled=False` records nothing.

    Times count what the thread computes and waits for, not what the profiler itself takes nor the time that other processes have the processor. A profiler within another one takes over until it ends.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        self.enabled = enabled
        if not enabled:
            return
        if use_cuda:
            warnings.warn(
                "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead.",
                FutureWarning,
                stacklevel=2,
            )
            use_device = "cuda"
        if use_device is not None:
            if use_device == "cuda":
                warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
            elif use_device != "npu":
                warnings.warn(f"The {use_device} is not a valid device option.", stacklevel=2)
        self.use_device = None
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.use_cpu, self.acc_events = use_cpu, acc_events
        self.experimental_config = experimental_config
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        self.entered = False
        self.recordings: list[Recording] = []
        self._events: EventList | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def _prepare_trace(self) -> None:
        self.entered = True
        made = self.custom_trace_id_callback
        self.trace_id = made() if made is not None else os.urandom(16).hex().upper()

    def _start_trace(self) -> None:
        from .._profiling.recording import Options, Recording

        self.entered = True
        if not self.acc_events:
            self.recordings = []
        self._events = None
        recording = Recording(
            Options(self.record_shapes, self.profile_memory, self.with_stack, self.with_modules, self.with_flops)
        )
        self.recordings.append(recording)
        recording.start()

    def __exit__(self, *exc: object) -> None:
        if self.enabled and self.recordings:
            self.recordings[-1].stop()

    @property
    def function_events(self) -> EventList:
        """The events. AssertionError before the end of the block."""
        if self._events is None:
            from .._profiling import trace
            from .profiler_util import EventList

            if not self.recordings or self.recordings[-1].stopped is None:
                raise AssertionError("Expected profiling results")
            self._events = EventList(
                use_device=self.use_device, profile_memory=self.profile_memory, with_flops=self.with_flops
            )
            for recording in self.recordings:
                part = EventList(trace.events(recording, len(self._events)))
                part._build_tree()
                self._events += part
            self._events._tree_built = True
        return self._events

    def __repr__(self) -> str:
        return repr(self.function_events) if self._is_done() else "<unfinished torch.autograd.profile>"

    def __str__(self) -> str:
        return str(self.function_events) if self._is_done() else "<unfinished torch.autograd.profile>"

    def _is_done(self) -> bool:
        return self.enabled and bool(self.recordings) and self.recordings[-1].stopped is not None

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The events as a table; see `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        group_by_module: bool = False,
    ) -> EventList:
        """The events of equal names added up; see `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, group_by_module
        )

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each without its children."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str, metadata: dict[str, str] | None = None) -> None:
        """Write a trace for Perfetto and Chrome's viewer, compressed where the path ends in `.gz`. metadata: JSON texts by key."""
        from .._profiling import trace

        json = outside("json")

        if not self._is_done():
            raise AssertionError("Expected profiling results")
        settings = {
            name: int(getattr(self, name))
            for name in ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
        }
        extra = {key: json.loads(value) for key, value in (metadata or {}).items()}
        trace.write(self.recordings, path, {"trace_id": self.trace_id, **extra}, settings)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of events for flame graphs; see `EventList.export_stacks`. AssertionError without `with_stack`."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Stop recording operators for a while, or go on."""
        if self.recordings and any(getattr(activity, "name", "") == "CPU" for activity in activities):
            self.recordings[-1].toggle(enabled)


class _Tool:
    """Marks a block for a tool of a vendor's, which is not there: it says so when the block begins."""

    _why = ""
    _error: type[Exception] = RuntimeError

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> Any:
        if self.enabled:
            raise self._error(self._why)
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class emit_nvtx(_Tool):
    """Ranges for NVIDIA's tools. Raises AssertionError when it is entered: there is no CUDA."""

    _why = "Torch not compiled with CUDA enabled"
    _error = AssertionError


class emit_itt(_Tool):
    """Ranges for Intel's tools. Raises RuntimeError when it is entered: they are not there."""

    _why = "ITT functions not installed: torch.autograd.profiler.emit_itt is not implemented"


def load_nvprof(path: str) -> EventList:
    """Raises NotImplementedError: files of NVIDIA's profiler are not read."""
    raise NotImplementedError(f"torch.autograd.profiler.load_nvprof: {path} cannot be read, there is no CUDA")


def parse_nvprof_trace(path: str) -> EventList:
    """Raises NotImplementedError: files of NVIDIA's profiler are not read."""
    return load_nvprof(path)


class EnforceUnique:
    """Raises RuntimeError when a key is seen for the second time."""

    def __init__(self) -> None:
        self.seen: set[tuple] = set()

    def see(self, *key: Any) -> None:
        """Note a key."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps by who counts them (a profiler, optimizers); the step of the program is the largest count."""

    _current_step = 0
    _step_dict: dict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Let a requester count from the step of the program on."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a requester; the step of the program."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        newest = max(cls._step_dict.values())
        if newest > cls._current_step + 1:
            warnings.warn(
                f"Profiler step count has increased more than 1 - current_step = {cls._current_step} step dict =  {cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(cls._current_step, newest)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The step of the program."""
        return cls._current_step
