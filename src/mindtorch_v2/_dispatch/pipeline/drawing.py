"""What `Pipeline.explain(html=...)` writes: the steps of each flush as a graph, from above to below."""

from __future__ import annotations

from typing import Any

from ..._html import escape, page
from .report import place_of

_WIDE, _GAP, _LINE, _SHOWN = 430, 34, 15, 14


def page_of(plans: list[tuple]) -> str:
    """The page of plans as `History.with_pending` gives them."""
    body, data = [], []
    saved = operators = passes = 0
    for number, (kind, steps, sources) in enumerate(plans, 1):
        described = [_describe(step) for step in steps]
        reads = sources or [()] * len(steps)
        saved += sum(one["saved"] for one in described)
        operators += sum(map(len, steps))
        passes += len(steps)
        body.append(f"<h2>{kind} {number}: {sum(map(len, steps))} operators in {len(steps)} steps</h2>")
        body.append(f'<div class="scroll">{_graph(described, reads)}</div>')
        data.append({"kind": kind, "steps": [{**one, "reads": list(read)} for one, read in zip(described, reads)]})
    cards = [("operators", operators), ("steps", passes), ("bytes never written to memory", saved)]
    head = "".join(f'<div class="card"><span>{name}</span><b>{value:,}</b></div>' for name, value in cards)
    return page("Steps of a pipeline", f'<div class="cards">{head}</div>' + "\n".join(body), {"plans": data})


def _describe(step: list) -> dict[str, Any]:
    operators = [
        {
            "name": op.full_name,
            "results": [[list(shape), str(dtype)] for shape, dtype in geometry],
            "written": written,
            "saved": saved,
            "at": place_of(code, place),
        }
        for op, geometry, code, place, written, saved, _ in step
    ]
    return {
        "operators": operators,
        "one_pass": len(step) > 1,
        "written": sum(one["written"] for one in operators),
        "saved": sum(one["saved"] for one in operators),
    }


def _graph(steps: list[dict], reads: list) -> str:
    """Boxes in rows, each row below those that it reads, and lines between them."""
    row_of: list[int] = []
    for read in reads:
        row_of.append(1 + max((row_of[source] for source in read), default=-1))
    rows: list[list[int]] = [[] for _ in range(max(row_of, default=-1) + 1)]
    for number, row in enumerate(row_of):
        rows[row].append(number)
    corner: dict[int, tuple[int, int]] = {}
    tall = {number: _LINE * (min(len(step["operators"]), _SHOWN + 1) + 1) + 12 for number, step in enumerate(steps)}
    y = 4
    for row in rows:
        for place, number in enumerate(row):
            corner[number] = (4 + place * (_WIDE + 24), y)
        y += max(tall[number] for number in row) + _GAP
    wide = max((len(row) for row in rows), default=1) * (_WIDE + 24)
    lines = []
    for number, read in enumerate(reads):
        x2, y2 = corner[number][0] + _WIDE // 2, corner[number][1]
        for source in read:
            x1, y1 = corner[source][0] + _WIDE // 2, corner[source][1] + tall[source]
            middle = (y1 + y2) // 2
            lines.append(
                f'<path d="M{x1} {y1} C{x1} {middle} {x2} {middle} {x2} {y2}" fill="none" stroke="var(--dim)" data-edge="{source}-{number}"/>'
            )
    boxes = [_box(number, step, *corner[number], tall[number]) for number, step in enumerate(steps)]
    return f'<svg width="{wide}" height="{y}" viewBox="0 0 {wide} {y}">{"".join(lines)}{"".join(boxes)}</svg>'


def _box(number: int, step: dict, x: int, y: int, tall: int) -> str:
    operators = step["operators"]
    what = f"one pass over blocks, {len(operators)} operators" if step["one_pass"] else "one operator"
    lines = [
        f'<text x="{x + 8}" y="{y + 16}" font-weight="600">{number}: {what}; {step["written"]:,} bytes written</text>'
    ]
    for place, one in enumerate(operators[:_SHOWN], 1):
        shown = ", ".join(f"{shape} {dtype.removeprefix('torch.')}" for shape, dtype in one["results"]) or "in place"
        fate = "" if one["written"] or not step["one_pass"] else " (not materialised)"
        at = y + 16 + place * _LINE
        lines.append(
            f'<text x="{x + 8}" y="{at}"><title>{escape(one["at"])}</title>{escape(one["name"])} <tspan class="dim">{escape(shown + fate)}</tspan></text>'
        )
    if len(operators) > _SHOWN:
        lines.append(
            f'<text class="dim" x="{x + 8}" y="{y + 16 + (_SHOWN + 1) * _LINE}">and {len(operators) - _SHOWN} more</text>'
        )
    stroke = "var(--main)" if step["one_pass"] else "var(--rule)"
    return f'<g data-step="{number}"><rect x="{x}" y="{y}" width="{_WIDE}" height="{tall}" rx="5" fill="var(--card)" stroke="{stroke}"/>{"".join(lines)}</g>'
