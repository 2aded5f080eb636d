"""The table of a list of events, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..autograd.profiler_util import EventList


def format_time(time_us: float) -> str:
    """Microseconds in the unit that suits them."""
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if time_us >= limit:
            return f"{time_us / limit:.3f}{unit}"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    return f"{time_us * 100.0 / total_time_us:.2f}%" if total_time_us else "NaN"


def _format_memory(nbytes: float) -> str:
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(nbytes) >= 1 << power:
            return f"{nbytes / (1 << power):.2f} {unit}"
    return f"{nbytes} B"


class Table:
    """The text of a list of events."""

    WIDTH = 12
    UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}

    def __init__(self, events: EventList, unit: str | None) -> None:
        self.all = events
        self.unit = unit

    def time(self, us: float) -> str:
        if self.unit in self.UNITS:
            return f"{us / self.UNITS[self.unit]:.3f}{self.unit}"
        return format_time(us)

    def text(
        self,
        sort_by: str | None,
        row_limit: int,
        source_width: int | None,
        name_width: int | None,
        shapes_width: int | None,
        header: str | None,
        top_only: bool,
    ) -> str:
        events: list = list(self.all)
        if not events:
            return ""
        if sort_by is not None:
            for device in ("cuda", "xpu", "privateuse1"):
                sort_by = sort_by.replace(device, "device")
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        total = sum(event.self_cpu_time_total for event in events)
        self.total = total
        columns = self.columns(events, name_width, shapes_width, source_width)
        pattern = "  ".join(f"{{:{side}{width}}}" for _, width, side, _ in columns) + "  "
        rule = "  ".join("-" * width for _, width, _, _ in columns) + "  "
        across = "=" * (sum(width for _, width, _, _ in columns) + 2 * len(columns) - 2)
        lines = [] if header is None else [across, header]
        if top_only:
            lines += [across, "This report only display top-level ops statistics"]
        lines += [rule, pattern.format(*(name for name, *_ in columns)), rule]
        shown = 0
        for event in events:
            if shown == row_limit:
                break
            if top_only and event.cpu_parent is not None:
                continue
            shown += 1
            event.self_cpu_percent = _format_time_share(event.self_cpu_time_total, total)
            event.total_cpu_percent = 0 if event.is_async else _format_time_share(event.cpu_time_total, total)
            lines.append(pattern.format(*(value(event) for *_, value in columns)))
            if columns[-1][0] == "Source Location":
                blank = [""] * (len(columns) - 1)
                lines += [pattern.format(*blank, _tail(line, columns[-1][1])) for line in event.stack[1:]]
                lines.append(pattern.format(*blank, ""))
        lines += [rule, f"Self CPU time total: {self.time(total)}"]
        return "\n".join(lines) + "\n"

    def columns(self, events: list, name_width: int | None, shapes_width: int | None, source_width: int | None) -> list:
        """(heading, width, side, text of an event) of each column."""

        def fit(texts: Iterable[Any], limit: int | None) -> int:
            width = max(len(str(text)) for text in texts) + 4
            return width if limit is None else min(width, limit)

        def cut(text: str) -> str:
            return text if name_width is None or len(text) < name_width - 3 else text[: name_width - 3] + "..."

        wide = fit((event.key for event in events), name_width)
        found: list = [("Name", wide, ">", lambda e: cut(e.key))]
        averaged = events[0].is_average
        if averaged and any(event.overload_name for event in events):
            found.append(("Overload Name", wide, ">", lambda e: cut(e.overload_name)))
        if averaged and any(event.module_hierarchy for event in events):
            modules = fit((event.module_hierarchy for event in events), shapes_width)
            found.append(("Module", modules, ">", lambda e: _tail(e.module_hierarchy, modules)))
        rest = [
            ("Self CPU %", lambda e: e.self_cpu_percent),
            ("Self CPU", lambda e: self.time(e.self_cpu_time_total)),
            ("CPU total %", lambda e: e.total_cpu_percent),
            ("CPU total", lambda e: self.time(e.cpu_time_total)),
            ("CPU time avg", lambda e: self.time(e.cpu_time)),
        ]
        if self.all._profile_memory:
            rest += [
                ("CPU Mem", lambda e: _format_memory(e.cpu_memory_usage)),
                ("Self CPU Mem", lambda e: _format_memory(e.self_cpu_memory_usage)),
            ]
            if any(event.device_memory_usage for event in events):
                name = (self.all._use_device or "npu").upper()
                rest += [
                    (f"{name} Mem", lambda e: _format_memory(e.device_memory_usage)),
                    (f"Self {name} Mem", lambda e: _format_memory(e.self_device_memory_usage)),
                ]
        rest.append(("# of Calls", lambda e: e.count))
        if any(event.node_id != -1 for event in events):
            rest.append(("Node ID", lambda e: e.node_id))
        found += [(heading, self.WIDTH, ">", value) for heading, value in rest]
        if any(event.input_shapes for event in events):
            shapes = fit((event.input_shapes for event in events), shapes_width)
            found.append(("Input Shapes", shapes, ">", lambda e: str(e.input_shapes)[:shapes]))
        counts = [event.flops for event in events if event.flops and event.flops > 0]
        if self.all._with_flops and counts:
            power = min(int(math.log10(min(counts)) / 3), 5)
            found.append(
                (
                    f"Total {'KMGTP'[power - 1] if power else ''}FLOPs",
                    self.WIDTH,
                    ">",
                    lambda e: f"{e.flops / 10 ** (3 * power):8.3f}" if e.flops else "--",
                )
            )
        stacks = [line for event in events for line in event.stack or ()]
        if stacks:
            wide_source = fit(stacks, source_width)
            found.append(
                ("Source Location", wide_source, "<", lambda e: _tail(e.stack[0], wide_source) if e.stack else "")
            )
        return found


def _tail(text: str, width: int) -> str:
    """The end of a text, with dots before it where it does not fit."""
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]
