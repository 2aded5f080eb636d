"""The profiler that programs use: a schedule of steps around what `autograd.profiler` records."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from ..autograd.profiler import KinetoStepTracker, profile as _Backend, record_function
from ..autograd.profiler_util import EventList

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_STEP = "ProfilerStep"
_warned: set[str] = set()


class ProfilerActivity(Enum):
    """What can be recorded. There is the CPU alone; the numbers are PyTorch's."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a schedule says of a step. DEVICE_STOPPED is none of a program's."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class RecordScope(Enum):
    """What a range is of."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class _ExperimentalConfig:
    """Settings of PyTorch's recorder. `capture_overload_names` and `trace_only` mean something here; TypeError for a name that PyTorch has not."""

    _DEFAULTS: dict[str, Any] = {
        "profiler_metrics": (),
        "profiler_measure_per_kernel": False,
        "verbose": False,
        "performance_events": (),
        "enable_cuda_sync_events": False,
        "adjust_profiler_step": False,
        "disable_external_correlation": False,
        "profile_all_threads": False,
        "capture_overload_names": False,
        "record_python_gc_info": False,
        "expose_kineto_event_metadata": False,
        "custom_profiler_config": "",
        "adjust_timestamps": False,
        "trace_only": False,
    }
    capture_overload_names: bool
    trace_only: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(self._DEFAULTS, args)), **kwargs}
        unknown = given.keys() - self._DEFAULTS.keys()
        if unknown or len(args) > len(self._DEFAULTS):
            raise TypeError(f"__init__(): incompatible constructor arguments: {sorted(unknown)}")
        self.__dict__.update(self._DEFAULTS, **given)


def kineto_available() -> bool:
    """Whether traces can be recorded."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded: the CPU."""
    return {ProfilerActivity.CPU}


class ExecutionTraceObserver:
    """PyTorch's record of every operator with its arguments, for replaying. Raises NotImplementedError: there is none; `export_chrome_trace` writes a trace."""

    def __init__(self) -> None:
        raise NotImplementedError("torch.profiler.ExecutionTraceObserver is not implemented: traces cannot be replayed")


class _KinetoProfile:
    """The profiler without a schedule: `start`, `stop`, and what was recorded."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = _activities(activities)
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules = with_flops, with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.profiler: _Backend | None = None
        self.use_device: str | None = None
        self.preset_metadata: dict[str, str] = {}
        self._trace_metadata: dict[str, str] = {}

    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """End."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Make ready what records."""
        if self.profiler is not None and not self.acc_events:
            _warn_once(
                "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be reported. "
                "To keep events across cycles, set acc_events=True."
            )
        if self.profiler is None or not self.acc_events:
            self.profiler = _Backend(
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                experimental_config=self.experimental_config,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
            )
        self.profiler._prepare_trace()

    def start_trace(self) -> None:
        """Record from now on."""
        self._trace_metadata = dict(self.preset_metadata)
        self._of("starting")._start_trace()

    def stop_trace(self) -> None:
        """Record no more."""
        self._of("stopping").__exit__(None, None, None)

    def _of(self, what: str) -> _Backend:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {what}")
        return self.profiler

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write a trace of the last cycle for https://ui.perfetto.dev and Chrome's viewer; compressed where the path ends in `.gz`."""
        self._of("exporting chrome trace").export_chrome_trace(os.fspath(path), self._trace_metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of events for flame graphs. AssertionError without `with_stack`."""
        self._of("exporting stacks").export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Stop recording operators for a while, or go on."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        group_by_module: bool = False,
    ) -> EventList:
        """The events of equal names added up: `.table(sort_by="self_cpu_time_total", row_limit=10)` shows them.

        By shapes (`record_shapes`), by the innermost lines (`with_stack`), by overload, by module (`with_modules`), if asked for.
        """
        return self._of("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, group_by_module
        )

    def events(self) -> EventList:
        """The events one by one."""
        profiler = self._of("accessing events")
        if self.experimental_config is not None and self.experimental_config.trace_only:
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. Use export_chrome_trace() instead."
            )
        return profiler.function_events

    def add_metadata(self, key: str, value: str) -> None:
        """Let the trace have a text under a key."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Let the trace have a value, given as JSON, under a key."""
        self._trace_metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """`add_metadata_json` for traces that have not begun."""
        self.preset_metadata[key] = value


def _activities(given: Iterable[Any] | None) -> set[ProfilerActivity]:
    if given is None:
        return supported_activities()
    found: set[ProfilerActivity] = set()
    for item in given:
        found.update(item if isinstance(item, dict) else (item,))
    return found


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, stacklevel=3)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A function from step to action: wait, warm up, record, again and again or `repeat` times.

    skip_first: steps before all of it. skip_first_wait: not 0 lets the first cycle do without waiting. AssertionError for negative numbers and `active` 0.
    """

    def schedule_fn(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        cycle, position = divmod(step - skip_first + (wait if skip_first_wait else 0), wait + warmup + active)
        if 0 < repeat <= cycle or position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < wait + warmup + active - 1 else ProfilerAction.RECORD_AND_SAVE

    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    return schedule_fn


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Record every step."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[_KinetoProfile], None]:
    """An `on_trace_ready` that writes traces to a folder: `<worker>.<time>.pt.trace.json`, with `.gz` if asked for. RuntimeError when it cannot be made."""

    def handler_fn(prof: _KinetoProfile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        file = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, file))

    return handler_fn


_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile(_KinetoProfile):
    """`with profile() as prof:` records the operators that this thread runs; then `print(prof.key_averages().table(sort_by="self_cpu_time_total"))`.

    schedule: which steps are recorded (see `schedule`), where the program calls `step` after each. on_trace_ready: called with the profiler when a cycle is recorded.
    record_shapes, profile_memory, with_flops, with_stack, with_modules: what is recorded beside times. acc_events: keep the events of all cycles.

    Times count what the thread computes and waits for, not what the profiler itself takes nor the time that other processes have the processor. AssertionError when no activity is asked for.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.step_rec_fn: record_function | None = None
        self.current_action = self._scheduled(0)
        KinetoStepTracker.init_step_count(_STEP)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        KinetoStepTracker.erase_step_count(_STEP)

    def start(self) -> None:
        """Begin with the first step."""
        self._transit_action(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End; what is recorded is ready."""
        self._end_step()
        self._transit_action(self.current_action, None)

    def step(self) -> None:
        """The next step begins. ValueError for a schedule that says DEVICE_STOPPED."""
        self._end_step()
        before, self.current_action = self.current_action, self._scheduled(self.step_num + 1)
        self.step_num += 1
        self._transit_action(before, self.current_action)
        self._begin_step()

    def _scheduled(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if action == ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be returned by a user-provided schedule"
            )
        return action

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"{_STEP}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _transit_action(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """Go from what one step asks for to what the next does; None for the end."""
        if before == ProfilerAction.RECORD_AND_SAVE or (before == ProfilerAction.RECORD and now is None):
            self.stop_trace()
            self._trace_ready()
            before = ProfilerAction.NONE
        elif before == ProfilerAction.RECORD and now not in _RECORDS:
            warnings.warn(f"Incorrect schedule: RECORD followed by {now.name if now else None}", stacklevel=3)
            self.stop_trace()
            before = ProfilerAction.WARMUP  # an incorrect schedule goes on with the profiler that it has
        elif before == ProfilerAction.WARMUP and now not in (ProfilerAction.WARMUP, *_RECORDS):
            if now is not None:
                warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
            self.start_trace()
            self.stop_trace()
        if before == ProfilerAction.NONE and now not in (ProfilerAction.NONE, None):
            self.prepare_trace()
        if before in (ProfilerAction.NONE, ProfilerAction.WARMUP) and now in _RECORDS:
            self.start_trace()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Let a function give the ids of traces, once a cycle."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The id of the trace; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id
