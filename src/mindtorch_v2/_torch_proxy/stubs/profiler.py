"""`torch.profiler` without a profiler: blocks run, steps are counted, nothing is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mindtorch_v2._torch_proxy.placeholders import NoOpContext


class profile:
    """A profiler that records nothing; `on_trace_ready` is called when the schedule says that a trace is ready."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End; without a schedule the (empty) trace is ready now."""
        if self.schedule is None and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Count a step."""
        from torch.profiler import ProfilerAction

        if self.schedule is not None and self.schedule(self.step_num) == ProfilerAction.RECORD_AND_SAVE:
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self.step_num += 1

    def events(self) -> list[Any]:
        """No events."""
        return []

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> _EmptyTable:
        """An empty table."""
        return _EmptyTable()

    def export_chrome_trace(self, path: str) -> None:
        """Raises NotImplementedError: there is no trace to write."""
        raise NotImplementedError("torch.profiler records nothing, so there is no trace to export")

    def add_metadata(self, key: str, value: str) -> None:
        """Nothing to add to."""

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class _EmptyTable(list[Any]):
    def table(self, *args: Any, **kwargs: Any) -> str:
        return "(nothing was recorded: mindtorch_v2 has no profiler)\n"

    def total_average(self) -> None:
        return None


class record_function(NoOpContext):
    """Names a block for the profiler."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], Any]:
    """A function from step to action: wait, warm up, record, again and again or `repeat` times."""
    from torch.profiler import ProfilerAction

    def action(step: int) -> Any:
        if step < 0:
            raise AssertionError("Step must be non-negative.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, position = divmod(step, wait + warmup + active)
        if repeat > 0 and cycle >= repeat or position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < wait + warmup + active - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def supported_activities() -> set[Any]:
    """The CPU."""
    from torch.profiler import ProfilerActivity

    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A trace handler; calling it raises, as there is no trace to write."""
    return lambda profiler: profiler.export_chrome_trace(dir_name)


def _default_schedule_fn(step: int) -> Any:
    """Record every step."""
    from torch.profiler import ProfilerAction

    return ProfilerAction.RECORD
