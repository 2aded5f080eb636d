"""`torch.autograd.profiler`: `record_function` blocks, which nothing records here, and the classes that hold what profilers record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class record_function:
    """Names a block for a profiler. There is none, so it only marks the place."""

    def __init__(self, name: str, args: str | None = None):
        self.name = name

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, function: Callable) -> Callable:
        return function


class profile:
    """PyTorch's profiler: not implemented, and it says so when it is started."""

    def __init__(self, *args: Any, enabled: bool = True, **kwargs: Any):
        self.enabled = enabled

    def __enter__(self) -> profile:
        if self.enabled:
            raise NotImplementedError("torch.autograd.profiler.profile is not implemented")
        return self

    def __exit__(self, *exc: object) -> None:
        pass


class EventList(list):
    """What a profiler has recorded: nothing, here. Programs look at its methods and their arguments."""

    def __init__(
        self, *args: Any, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False
    ):
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table: the empty string, of no events. Raises NotImplementedError for events of the program's own."""
        return self._of_nothing("")

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """The events of equal names added up. Raises NotImplementedError for events of the program's own."""
        return self._of_nothing(EventList())

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for Chrome's viewer: an empty list. Raises NotImplementedError for events of the program's own."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self._of_nothing("[]"))

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events."""
        return sum(event.self_cpu_time_total for event in self)

    def __str__(self) -> str:
        return self.table()

    def _of_nothing(self, value: Any) -> Any:
        if self:
            raise NotImplementedError(
                "torch.autograd.profiler.EventList: there is no profiler, and no table of other events"
            )
        return value


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


class FunctionEvent:
    """One event of a profiler. Raises NotImplementedError: nothing records events."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("torch.autograd.profiler.FunctionEvent: there is no profiler")


def load_nvprof(path: str) -> EventList:
    """Raises NotImplementedError: files of NVIDIA's profiler are not read."""
    raise NotImplementedError(f"torch.autograd.profiler.load_nvprof: {path} cannot be read, there is no CUDA")


def parse_nvprof_trace(path: str) -> EventList:
    """Raises NotImplementedError: files of NVIDIA's profiler are not read."""
    return load_nvprof(path)
