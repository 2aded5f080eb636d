"""What the allocator shows of itself: segments and blocks, and the history of its actions, in the form that PyTorch's memory visualiser reads."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ._blocks import Block, Segment
from ._expandable import ExpandableSegment

POOL_ID = (0, 0)
_DEPTH = 64


class Snapshot(dict):
    """A snapshot by the names of PyTorch's (`segments`, `device_traces`, ...), and by numbers and in loops the list of its segments, as torch_npu gives it."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__("segments")[key] if isinstance(key, (int, slice)) else super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(super().__getitem__("segments"))

    def __reduce__(self) -> tuple:
        return dict, (dict(self.items()),)  # for the visualiser, which has no such class


class History:
    """The last `max_entries` actions; with `stacks`, where each came from in Python."""

    def __init__(self, max_entries: int | None, stacks: bool) -> None:
        self.entries: deque[dict[str, Any]] = deque(maxlen=max_entries)
        self.stacks = stacks

    def frames(self) -> list[dict[str, Any]]:
        """The stack of the caller of the allocator, innermost first."""
        if not self.stacks:
            return []
        frame, found = sys._getframe(1), []
        while frame is not None and len(found) < _DEPTH:
            code = frame.f_code
            found.append({"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
            frame = frame.f_back  # type: ignore[assignment]
        return found

    def add(self, action: str, address: int, size: int, stream: int, frames: list | None = None, **more: Any) -> None:
        """Append one action; `frames` are taken from here where they are not given."""
        self.entries.append(
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": stream,
                "time_us": time.time_ns() // 1000,
                "frames": self.frames() if frames is None else frames,
                "pool_id": POOL_ID,
                **more,
            }
        )


def describe_block(block: Block) -> dict[str, Any]:
    """One block."""
    made: dict[str, Any] = {
        "address": block.address,
        "size": block.size,
        "requested_size": 0 if block.cached else block.requested,
        "state": block.state,
        "frames": [],
    }
    if not block.cached and block.frames is not None:
        made["frames"] = block.frames
        made["history"] = [{"addr": block.address, "real_size": block.requested, "frames": block.frames}]
    return made


def describe_segment(segment: Segment, device: int) -> list[dict[str, Any]]:
    """One segment with its blocks; an expandable one is, as in PyTorch, one for each range that memory is behind."""
    if not isinstance(segment, ExpandableSegment):
        return [_described(segment, device, list(segment.blocks()))]
    ranges: list[list[Block]] = [[]]
    for block in segment.blocks():
        if segment.has_memory(block):
            ranges[-1].append(block)
        else:
            ranges.append([])
    return [_described(segment, device, found) for found in ranges if found]


def _described(segment: Segment, device: int, parts: list[Block]) -> dict[str, Any]:
    blocks = [describe_block(block) for block in parts]
    return {
        "device": device,
        "address": parts[0].address,
        "total_size": sum(block.size for block in parts),
        "allocated_size": sum(b["size"] for b in blocks if b["state"] == "active_allocated"),
        "active_size": sum(b["size"] for b in blocks if b["state"] != "inactive"),
        "requested_size": sum(b["requested_size"] for b in blocks),
        "stream": segment.stream,
        "segment_pool_id": POOL_ID,
        "segment_type": "small" if segment.small else "large",
        "is_expandable": isinstance(segment, ExpandableSegment),
        "frames": segment.frames or [],
        "blocks": blocks,
    }


def describe(segments: Iterable[Segment], device: int, history: History | None, settings: dict) -> dict[str, Any]:
    """The whole snapshot of one device. `device_traces` has an entry per device up to this one, as the visualiser counts them."""
    traces: list[list] = [[] for _ in range(device + 1)]
    if history is not None:
        traces[device] = list(history.entries)
    made = {
        "segments": [
            one for segment in sorted(segments, key=lambda s: s.address) for one in describe_segment(segment, device)
        ],
        "device_traces": traces,
        "allocator_settings": settings,
        "external_annotations": [],
        "device": device,
        "allocator": "npu",
    }
    return Snapshot(made)
