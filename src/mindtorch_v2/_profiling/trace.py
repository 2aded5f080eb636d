"""A recording as events, and as a trace of Chrome's format (https://ui.perfetto.dev opens it)."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
from typing import Any

from ..autograd.profiler_util import FunctionEvent
from . import details
from .recording import ANNOTATION, BACKWARD, MEMORY, MODULE, Range, Recording


def events(recording: Recording, first: int = 0) -> list[FunctionEvent]:
    """The ranges as events, modules left out. first: the number of the first one."""
    memory = _with_children(recording)
    made = []
    for one in recording.ranges:
        if one.kind == MODULE:
            continue
        on_cpu, on_device = memory[one.number]
        inputs = one.inputs or []
        shapes = [shape for shape, _, _, _ in inputs]
        made.append(
            FunctionEvent(
                id=first + one.number,
                name=one.name,
                trace_name=one.name.replace("ProfilerStep*", "ProfilerStep#"),
                thread=recording.thread,
                fwd_thread=recording.thread if one.scope == BACKWARD else 0,
                start_us=one.start / 1000,
                end_us=one.end / 1000,
                overload_name=one.overload,
                input_shapes=[[] if shape and isinstance(shape[0], list) else shape for shape in shapes],
                structured_input_shapes=shapes,
                structured_input_strides=[stride for _, stride, _, _ in inputs],
                input_dtypes=[kind for _, _, kind, _ in inputs],
                concrete_inputs=[value for _, _, _, value in inputs],
                stack=details.lines(one.stack),
                scope=one.scope,
                sequence_nr=one.sequence,
                flops=one.flops or None,
                cpu_memory_usage=on_cpu,
                device_memory_usage=on_device,
                is_user_annotation=one.kind == ANNOTATION,
                activity_type=one.kind,
                module_hierarchy=one.module,
            )
        )
    return made


def _with_children(recording: Recording) -> list[tuple[int, int]]:
    """(bytes on the CPU, bytes on a device) of each range with the ranges within it."""
    sums = [[one.allocated, one.on_device] for one in recording.ranges]
    around: list[Range] = []
    order: list[tuple[Range, Range]] = []
    for one in recording.ranges:
        while around and one.start >= around[-1].end:
            around.pop()
        if around:
            order.append((one, around[-1]))
        if one.kind != MEMORY:
            around.append(one)
    for one, parent in reversed(order):
        for place in (0, 1):
            sums[parent.number][place] += sums[one.number][place]
    return [(cpu, device) for cpu, device in sums]


def write(recordings: list[Recording], path: str, metadata: dict[str, Any], settings: dict[str, int]) -> None:
    """Write a trace; compressed where the path ends in `.gz`."""
    rows: list[dict[str, Any]] = []
    for recording in recordings:
        rows += _rows(recording)
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [],
        **settings,
        "host_name": socket.gethostname(),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 0,
        **metadata,
        "traceEvents": rows,
        "traceName": path,
    }
    opened = gzip.open(path, "wt", encoding="utf-8") if path.endswith(".gz") else open(path, "w", encoding="utf-8")
    with opened as f:
        json.dump(trace, f)


def _rows(recording: Recording) -> list[dict[str, Any]]:
    pid, tid, base = os.getpid(), recording.thread, recording.epoch / 1000

    def row(phase: str, name: str, at: float, **rest: Any) -> dict[str, Any]:
        return {"ph": phase, "name": name, "pid": pid, "tid": tid, "ts": round(base + at / 1000, 3), **rest}

    rows = [
        row("M", "process_name", 0, args={"name": os.path.basename(sys.executable)}),
        row("M", "process_labels", 0, args={"labels": "CPU"}),
        row("M", "thread_name", 0, args={"name": f"thread {tid}"}),
    ]
    linked: dict[int, Range] = {}
    total = 0
    for one in recording.ranges:
        if one.kind == MEMORY:
            total += one.allocated
            given = {
                "Bytes": one.allocated,
                "Total Allocated": total,
                "Device Type": 0,
                "Device Id": -1,
                "Ev Idx": one.number,
            }
            rows.append(row("i", one.name, one.start, cat=one.kind, s="t", args=given))
            continue
        total += one.allocated
        rows.append(
            row(
                "X",
                one.name,
                one.start,
                cat=one.kind,
                dur=(one.end - one.start) / 1000,
                args=_arguments(one, recording),
            )
        )
        origin = recording.forward.get(one.sequence)
        if one.scope == BACKWARD and origin is not None and one.sequence not in linked:
            linked[one.sequence] = one
            flow = {"cat": "fwdbwd", "id": len(linked)}
            rows.append(row("s", "fwdbwd", origin.start, **flow))
            rows.append(row("f", "fwdbwd", one.start, bp="e", **flow))
    return rows


def _arguments(one: Range, recording: Recording) -> dict[str, Any]:
    given: dict[str, Any] = {"External id": one.number + 1, "Ev Idx": one.number}
    if one.sequence >= 0:
        given["Sequence number"] = one.sequence
        given["Fwd thread id"] = recording.thread if one.scope == BACKWARD else 0
    if one.inputs is not None:
        given["Input Dims"] = [shape for shape, _, _, _ in one.inputs]
        given["Input Strides"] = [stride for _, stride, _, _ in one.inputs]
        given["Input type"] = [kind for _, _, kind, _ in one.inputs]
        given["Concrete Inputs"] = ["" if value is None else str(value) for _, _, _, value in one.inputs]
    if one.module:
        given["Module Hierarchy"] = one.module
    if one.stack:
        given["Call stack"] = ";\n".join(reversed(details.lines(one.stack)))
    if one.flops:
        given["flops"] = one.flops
    if one.allocated:
        given["Self bytes allocated"] = one.allocated
    return given
