"""What a profiler has recorded, as data: events, averages of events, and the tables and files that are made of them."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict, namedtuple
from enum import IntEnum
from typing import Any

from .._profiling.table import Table, format_time

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg"]

Kernel = namedtuple("Kernel", ["name", "device", "duration"])
MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"
_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]


class DeviceType(IntEnum):
    """Where an event ran; the numbers are PyTorch's."""

    (
        CPU,
        CUDA,
        MKLDNN,
        OPENGL,
        OPENCL,
        IDEEP,
        HIP,
        FPGA,
        MAIA,
        XLA,
        Vulkan,
        Metal,
        XPU,
        MPS,
        Meta,
        HPU,
        VE,
        Lazy,
        IPU,
        MTIA,
        PrivateUse1,
    ) = range(21)


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """The length."""
        return self.end - self.start


class StringTable(defaultdict):
    """Names by themselves: mangled names of C++ have no other form here."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


def _attr_formatter(name: str) -> Any:
    return property(lambda self: format_time(getattr(self, name)))


def _deprecated(old: str, new: str) -> Any:
    """A property of CUDA's by its old name, which gives that of any device."""

    def value(self: Any) -> Any:
        warnings.warn(f"`{old}` is deprecated, please use `{new}` instead.", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(value)


class FormattedTimesMixin:
    """Times as text (`cpu_time_str`, ...) and by call, of what has totals and `count`."""

    is_average = False

    count: int
    cpu_time_total: float
    device_time_total: float
    cpu_time_str = _attr_formatter("cpu_time")
    device_time_str = _attr_formatter("device_time")
    cpu_time_total_str = _attr_formatter("cpu_time_total")
    device_time_total_str = _attr_formatter("device_time_total")
    self_cpu_time_total_str = _attr_formatter("self_cpu_time_total")
    self_device_time_total_str = _attr_formatter("self_device_time_total")
    cuda_time = _deprecated("cuda_time", "device_time")

    @property
    def cpu_time(self) -> float:
        """Microseconds a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds a call on the device."""
        return self.device_time_total / self.count if self.count else 0.0


_FIELDS: dict[str, Any] = {
    "overload_name": "",
    "fwd_thread": None,
    "input_shapes": None,
    "stack": None,
    "scope": 0,
    "use_device": None,
    "cpu_memory_usage": 0,
    "device_memory_usage": 0,
    "is_async": False,
    "is_remote": False,
    "sequence_nr": -1,
    "node_id": -1,
    "device_type": DeviceType.CPU,
    "device_index": 0,
    "device_resource_id": None,
    "is_legacy": False,
    "flops": None,
    "trace_name": None,
    "concrete_inputs": None,
    "kwinputs": None,
    "is_user_annotation": False,
    "is_python_function": False,
    "activity_type": None,
    "external_id": 0,
    "linked_correlation_id": 0,
    "structured_input_shapes": None,
    "structured_input_strides": None,
    "input_dtypes": None,
    "module_hierarchy": "",
}


class FunctionEvent(FormattedTimesMixin):
    """One range: an operator, the backward of one, or a block of the program's.

    name, thread, `time_range` in microseconds since the recording began; `cpu_parent` and `cpu_children`; `input_shapes`, `stack`, `flops`, `cpu_memory_usage` (with
    that of the children) where they were asked for; `module_hierarchy`, the module whose forward called it; `sequence_nr`, which an operator and its derivative share.
    """

    overload_name: str
    input_shapes: Any
    stack: Any
    flops: Any
    trace_name: str | None
    use_device: str | None
    cpu_memory_usage: int
    device_memory_usage: int
    is_async: bool
    is_remote: bool
    is_legacy: bool
    is_user_annotation: bool
    sequence_nr: int
    node_id: int
    device_type: Any
    device_resource_id: Any
    scope: int
    concrete_inputs: Any
    structured_input_shapes: Any
    structured_input_strides: Any
    input_dtypes: Any
    activity_type: str | None
    module_hierarchy: str

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float, **fields: Any) -> None:
        unknown = fields.keys() - _FIELDS.keys()
        if unknown:
            raise TypeError(f"FunctionEvent.__init__() got an unexpected keyword argument '{min(unknown)}'")
        self.__dict__.update(_FIELDS, **fields)
        self.id, self.name, self.thread = id, name, thread
        self.time_range = Interval(start_us, end_us)
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        if self.device_resource_id is None:
            self.device_resource_id = thread
        self.self_cpu_percent: Any = -1
        self.total_cpu_percent: Any = -1

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add what ran on a device."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add an event that began and ended within this one, and in none of its other children."""
        if not isinstance(child, FunctionEvent):
            raise AssertionError("Expected child to be a FunctionEvent")
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Say within which event this one ran."""
        if not isinstance(parent, FunctionEvent):
            raise AssertionError("Expected parent to be a FunctionEvent")
        self.cpu_parent = parent

    def _without_children(self, total: str) -> Any:
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return getattr(self, total) - sum(getattr(child, total) for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self._without_children("cpu_memory_usage")

    @property
    def self_device_memory_usage(self) -> int:
        return self._without_children("device_memory_usage")

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        return self._without_children("cpu_time_total")

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        own = sum(kernel.duration for kernel in self.kernels)
        return own if self.is_legacy else own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.device_time_total
        return self._without_children("device_time_total")

    cuda_time_total = _deprecated("cuda_time_total", "device_time_total")
    self_cuda_time_total = _deprecated("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _deprecated("self_cuda_memory_usage", "self_device_memory_usage")

    @property
    def key(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type} "
            f"node_id={self.node_id} cpu_time={self.cpu_time_str} start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {self.use_device}_time={self.device_time_str} name={self.name} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{self.use_device}_memory_usage={self.device_memory_usage} is_async={self.is_async} is_remote={self.is_remote} "
            f"seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_SUMS = (
    "cpu_time_total",
    "device_time_total",
    "self_cpu_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "device_memory_usage",
    "self_cpu_memory_usage",
    "self_device_memory_usage",
    "count",
)
_OF_FIRST = (
    "key",
    "node_id",
    "is_async",
    "is_remote",
    "cpu_parent",
    "cpu_children",
    "overload_name",
    "input_shapes",
    "stack",
    "scope",
    "device_type",
    "is_legacy",
    "use_device",
    "is_user_annotation",
    "module_hierarchy",
)


class FunctionEventAvg(FormattedTimesMixin):
    """Events of one key: sums of their times, memory, FLOPs and calls; `cpu_time` is the time of a call."""

    is_average = True
    self_cpu_time_total: float
    self_device_time_total: float
    self_cpu_memory_usage: int
    self_device_memory_usage: int
    cpu_memory_usage: int
    device_memory_usage: int
    module_hierarchy: str

    def __init__(self) -> None:
        self.key: str | None = None
        self.node_id, self.is_async, self.is_remote, self.is_legacy = 0, False, False, False
        self.is_user_annotation = False
        self.use_device: str | None = None
        self.input_shapes = self.overload_name = self.stack = self.scope = self.cpu_children = self.cpu_parent = None
        self.module_hierarchy = ""
        self.device_type: Any = DeviceType.CPU
        self.flops = 0
        self.__dict__.update(dict.fromkeys(_SUMS, 0))

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or events, of the same key. Raises AssertionError for another one."""
        if self.key is None:
            for name in _OF_FIRST:
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """Events, or averages of events."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._use_device = kwargs.pop("use_device", None)
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)
        self._tree_built = False

    def _build_tree(self) -> None:
        """Find parents and children by thread and time."""
        by_thread: dict[Any, list[FunctionEvent]] = defaultdict(list)
        for event in self:
            if not event.is_async and event.device_type == DeviceType.CPU:
                by_thread[event.thread, event.node_id].append(event)
        for events in by_thread.values():
            events.sort(key=lambda event: (event.time_range.start, -event.time_range.end, event.id))
            around: list[FunctionEvent] = []
            for event in events:
                while around and (
                    event.time_range.start >= around[-1].time_range.end
                    or event.time_range.end > around[-1].time_range.end
                ):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)
        self._tree_built = True

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each without its children: microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def __str__(self) -> str:
        return self.table()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table.

        sort_by: an attribute (`cpu_time_total`, `self_cpu_time_total`, `cpu_memory_usage`, `count`, ...), the largest first. row_limit: -1 for all.
        top_level_events_only: those within no other. time_unit: "us", "ms" or "s"; None for what suits each number.
        """
        return Table(self, time_unit).text(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        group_by_module: bool = False,
    ) -> EventList:
        """Events of one name added up: by shapes, by the innermost lines, by overload, or by the module that called them too, if asked for."""
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        groups: dict[tuple, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            groups[
                event.key,
                event.node_id,
                event.device_type,
                event.is_legacy,
                event.is_user_annotation,
                event.overload_name if group_by_overload_name else "",
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack or ())[:group_by_stack_n],
                event.module_hierarchy if group_by_module else "",
            ].add(event)
        averages: Any = EventList(
            groups.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for one in averages:
            one.stack = list(one.stack or ())[:group_by_stack_n]
            if not group_by_input_shapes:
                one.input_shapes = ""
            if not group_by_overload_name:
                one.overload_name = ""
            if not group_by_module:
                one.module_hierarchy = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """All events added up, as one of the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total.add(event)
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a list for Chrome's viewer (a profiler's own `export_chrome_trace` writes more)."""
        rows = [
            {
                "name": event.trace_name,
                "ph": "X",
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "tid": event.thread,
                "pid": "CPU functions",
                "args": {},
            }
            for event in self
            if event.trace_name is not None
        ]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(rows, f)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can write."""
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line for each event with a stack, `outermost;...;innermost value`, as programs that draw flame graphs read. ValueError for an unknown metric."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {_METRICS}")
        spelt = str.maketrans(" ;\t\n", "____")
        name = metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        with open(path, "w", encoding="utf-8") as f:
            for event in self:
                value = int(getattr(event, name))
                if event.stack and value > 0:
                    f.write(";".join(entry.translate(spelt) for entry in reversed(event.stack)) + f" {value}\n")
