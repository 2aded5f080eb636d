"""A plan as a page: the memory over the program's course, what holds its peak, the modules as a tree, the operators."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .._html import escape, page
from .units import count, size

if TYPE_CHECKING:
    from .result import ModuleCost, Plan

_NUMBER = re.compile(r"\.\d+(?=\.|$)")
_POINTS = 1200  # of the course of memory: more than a screen has
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 1150, 260, 70, 24

_SCRIPT = f"""
const data = JSON.parse(document.getElementById("data").textContent), svg = document.getElementById("course"), line = document.getElementById("at"), note = document.getElementById("here");
svg.addEventListener("mousemove", event => {{
  const box = svg.getBoundingClientRect(), places = data.course, each = {_WIDTH - _LEFT} / places.length;
  const index = Math.max(0, Math.min(places.length - 1, Math.floor(((event.clientX - box.left) / box.width * {_WIDTH} - {_LEFT}) / each)));
  const [number, live, name, module, phase] = places[index], at = {_LEFT} + (index + .5) * each;
  line.setAttribute("x1", at); line.setAttribute("x2", at); line.style.display = "";
  note.textContent = "operation " + number + ": " + name + (module ? " in " + module : "") + " (" + phase + "), " + (live / 2 ** 20).toFixed(1) + " MiB alive";
}});
"""


def html(plan: Plan) -> str:
    """The page of a plan."""
    cards = [
        ("parameters", f"{plan.parameters:,}", size(plan.parameter_bytes)),
        ("FLOPs forward", count(plan.flops) or "0", f"{plan.flops:,}"),
        *([("FLOPs backward", count(plan.backward_flops), f"{plan.backward_flops:,}")] if plan.backward_flops else []),
        ("read", size(plan.read), f"{plan.read:,} bytes"),
        ("written", size(plan.written), f"{plan.written:,} bytes"),
        ("peak of live memory", size(plan.peak), _peak_at(plan)),
    ]
    shown = "".join(
        f'<div class="card"><span>{escape(name)}</span><b>{escape(value.strip())}</b><span>{escape(more)}</span></div>'
        for name, value, more in cards
    )
    course = _course(plan)
    body = [
        f'<div class="cards">{shown}</div>',
        "<h2>Live memory over the program's course</h2>",
        _drawing(plan, course),
        '<p class="note" id="here">Point at the drawing. The lower area is parameters and buffers; backward in the other colour.</p>',
        f"<h2>What holds the peak of {size(plan.peak)}</h2>",
        _held(plan),
        *(["<h2>Modules</h2>", _tree(plan)] if plan.modules else []),
        "<h2>Operators</h2>",
        _operators(plan),
    ]
    if plan.without_formula:
        body.append(f'<p class="note">FLOPs not counted of: {escape(", ".join(plan.without_formula))}</p>')
    data = {**plan.as_dict(operations=False), "course": course, "count": len(plan.operations)}
    return page(f"Plan of {plan.name}", "\n".join(body), data, _SCRIPT)


def _peak_at(plan: Plan) -> str:
    at = plan.peak_at
    return "" if at is None else f"at {at.name}" + (f" in {at.module}" if at.module else "") + f" ({at.phase})"


def _course(plan: Plan) -> list[list]:
    """(number, bytes alive, operator, module, phase) of the operations; of each few one with the most where there are many."""
    operations = plan.operations
    step = max(1, -(-len(operations) // _POINTS))
    found = []
    for start in range(0, len(operations), step):
        number = max(range(start, min(start + step, len(operations))), key=lambda i: operations[i].live)
        one = operations[number]
        found.append([number, one.live, one.name, one.module, one.phase])
    return found


def _drawing(plan: Plan, course: list[list]) -> str:
    top = max([plan.peak, 1])
    wide, high = _WIDTH - _LEFT, _HEIGHT - _BOTTOM
    each = wide / max(len(course), 1)

    def down(nbytes: float) -> float:
        return round(high - nbytes / top * (high - 16), 2)

    def area(places: list[tuple[int, float]], colour: str) -> str:
        if not places:
            return ""
        first, last = _LEFT + places[0][0] * each, _LEFT + (places[-1][0] + 1) * each
        steps = " ".join(f"V{down(live)} H{round(_LEFT + (place + 1) * each, 2)}" for place, live in places)
        return f'<path d="M{round(first, 2)} {high} {steps} V{high} H{round(first, 2)} Z" fill="var(--{colour})" opacity=".8" data-to="{round(last, 2)}"/>'

    ahead = [(i, row[1]) for i, row in enumerate(course) if row[4] != "backward"]
    back = [(i, row[1]) for i, row in enumerate(course) if row[4] == "backward"]
    base = min(plan.parameter_bytes + plan.buffer_bytes, top)
    rules = "".join(
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{down(top * part)}" y2="{down(top * part)}" stroke="var(--rule)"/>'
        f'<text class="dim" x="{_LEFT - 6}" y="{down(top * part) + 4}" text-anchor="end">{size(top * part)}</text>'
        for part in (0, 0.25, 0.5, 0.75, 1)
    )
    at = max(range(len(course)), key=lambda i: course[i][1], default=None)
    mark = (
        ""
        if at is None
        else f'<circle cx="{round(_LEFT + (at + 0.5) * each, 2)}" cy="{down(course[at][1])}" r="4" fill="none" stroke="var(--ink)"/>'
    )
    return (
        f'<svg id="course" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="bytes alive by operation">{rules}{area(ahead, "main")}{area(back, "back")}'
        f'<rect x="{_LEFT}" width="{wide}" y="{down(base)}" height="{round(high - down(base), 2)}" fill="var(--base)"/>{mark}'
        f'<line id="at" y1="0" y2="{high}" stroke="var(--ink)" style="display:none"/>'
        f'<text class="dim" x="{_LEFT}" y="{_HEIGHT - 8}">{len(plan.operations)} operations</text></svg>'
    )


def _table(heads: list[str], rows: list[list[str]], text: tuple[int, ...], name: str) -> str:
    def cells(tag: str, row: list[str]) -> str:
        return "".join(f"<{tag}{' class=text' if i in text else ''}>{cell}</{tag}>" for i, cell in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<table id="{name}"><thead><tr>{cells("th", heads)}</tr></thead><tbody>{body}</tbody></table>'


def _bar(share: float, kind: str = "") -> str:
    return f'<span class="bar {kind}" style="width:{share * 5:.2f}em"></span>'


def _held(plan: Plan) -> str:
    """What came with the program a row a kind, what operators made a row for each operator and place, layers together; the largest first."""
    groups: dict[tuple, tuple[int, int, str]] = {}
    for one in plan.held:
        given = one.kind in ("parameter", "buffer", "argument", "captured")
        place = _NUMBER.sub(".*", one.name)
        key = (one.kind, "", "", "") if given else (one.kind, place, str(list(one.shape)), one.dtype)
        number, total, shown = groups.get(key, (0, 0, "" if given else one.name))
        groups[key] = (number + 1, total + one.nbytes, shown if shown == one.name or given else place)
    ordered = [
        (kind, shown, shape, dtype, number, total) for (kind, _, shape, dtype), (number, total, shown) in groups.items()
    ]
    ordered.sort(key=lambda row: -row[-1])
    rows = [
        [
            escape(kind),
            escape(name or "-"),
            escape(shape),
            escape(dtype),
            str(number),
            size(total),
            f"{total / max(plan.peak, 1):.1%}",
            _bar(total / max(plan.peak, 1)),
        ]
        for kind, name, shape, dtype, number, total in ordered[:40]
    ]
    left = sum(row[-1] for row in ordered[40:])
    if left:
        rows.append(
            [
                "all others",
                "",
                "",
                "",
                str(len(ordered) - 40),
                size(left),
                f"{left / max(plan.peak, 1):.1%}",
                _bar(left / max(plan.peak, 1)),
            ]
        )
    return _table(["made by", "in", "shape", "dtype", "number", "bytes", "share", ""], rows, (0, 1, 2, 3, 7), "held")


def _operators(plan: Plan) -> str:
    most = max((o.flops for o in plan.operators), default=0) or 1
    rows = [
        [
            escape(o.name),
            o.phase,
            str(o.calls),
            count(o.flops).strip() or "0",
            size(o.read),
            size(o.written),
            _bar(o.flops / most, "back" if o.phase == "backward" else ""),
        ]
        for o in plan.operators
    ]
    return _table(["operator", "phase", "calls", "FLOPs", "read", "written", ""], rows, (0, 1, 6), "operators")


def _tree(plan: Plan) -> str:
    """The modules as nested `<details>`, the first two levels open."""
    children: dict[str, list[ModuleCost]] = {}
    names = {module.name for module in plan.modules}
    tops: list[ModuleCost] = []
    for module in plan.modules:
        above = module.name
        while above:
            above = above.rpartition(".")[0]
            if above in names:
                break
        if module.name and above in names:
            children.setdefault(above, []).append(module)
        else:
            tops.append(module)
    whole = max(plan.flops + plan.backward_flops, 1)
    heads = ("module", "parameters", "FLOPs forward", "backward", "read", "written", "share of FLOPs")
    head = '<div class="leaf head">' + "".join(f"<span>{h}</span>" for h in heads) + "</div>"
    return f'<div class="tree">{head}{"".join(_branch(module, children, whole, 0) for module in tops)}</div>'


def _branch(module: ModuleCost, children: dict[str, list[ModuleCost]], whole: int, depth: int) -> str:
    share = (module.flops + module.backward_flops) / whole
    times = f" &times;{module.calls}" if module.calls > 1 else ""
    cells: list[Any] = [
        f'{escape(module.name.rpartition(".")[2] or "(root)")} <span class="kind">{escape(module.kind)}{times}</span>',
        f"{module.parameters:,}",
        count(module.flops).strip() or "0",
        count(module.backward_flops).strip() if module.backward_flops else "",
        size(module.read),
        size(module.written),
        f"{_bar(module.flops / whole)}{_bar(module.backward_flops / whole, 'back')} {share:.1%}",
    ]
    row = "".join(f"<span>{cell}</span>" for cell in cells)
    inner = children.get(module.name, [])
    if not inner:
        return f'<div class="leaf" data-module="{escape(module.name)}">{row}</div>'
    below = "".join(_branch(child, children, whole, depth + 1) for child in inner)
    opened = " open" if depth < 2 else ""
    return f'<details{opened} data-module="{escape(module.name)}"><summary>{row}</summary><div style="margin-left:1.2em">{below}</div></details>'
