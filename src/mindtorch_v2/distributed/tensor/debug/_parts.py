"""Showing which rank has which part of a tensor."""

from __future__ import annotations

import itertools
from typing import Any

from .._api import DTensor
from .._spec import local_part


def visualize_sharding(dtensor: DTensor, header: str = "", use_rich: bool = False) -> None:
    """Print, on the mesh's first rank, a table of a tensor of one or two dimensions: the ranks that have each part.

    Raises:
        RuntimeError: for a tensor of more dimensions.
    """
    if dtensor.numel() == 0:
        return
    if len(dtensor.shape) >= 3:
        raise RuntimeError("visualize sharding supports only 1D or 2D DTensor")
    mesh = dtensor.device_mesh
    place = mesh.get_coordinate()
    if place is None or any(place):
        return
    if header:
        print(header)
    parts: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for where in itertools.product(*(range(size) for size in mesh.shape)):
        shape, offset = local_part(dtensor.shape, mesh.shape, dtensor.placements, where)
        if 0 not in shape:
            ends = tuple((start, start + size - 1) for start, size in zip(offset, shape))
            parts.setdefault(ends, []).append(int(mesh.mesh[where]))
    print(_table(parts, str(mesh.device_type)))


def _table(parts: dict[tuple[tuple[int, int], ...], list[int]], device: str) -> str:
    rows = sorted({ends[0] if len(ends) > 1 else (0, 0) for ends in parts})
    columns = sorted({ends[-1] for ends in parts})
    lines: list[list[str]] = [["", *(f"Col {first}-{last}" for first, last in columns)]]
    for row in rows:
        line = [f"Row {row[0]}-{row[1]}"]
        for column in columns:
            ranks: Any = parts.get((row, column)) or parts.get((column,), [])
            line.append(", ".join(f"{device}:{rank}" for rank in ranks))
        lines.append(line)
    widths = [max(len(line[number]) for line in lines) for number in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
