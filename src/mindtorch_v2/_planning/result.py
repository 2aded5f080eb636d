"""A plan, as data and as tables."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from .. import nn
from .page import html
from .recorder import Held, Operation, Recorder
from .units import count, size


@dataclass
class ModuleCost:
    """A module's calls, with all that its children do. `name` is its path; the root's is empty."""

    name: str
    kind: str
    parameters: int
    calls: int = 0
    outputs: list = field(default_factory=list)
    """(shape, dtype) of each tensor of the first call's result."""
    flops: int = 0
    backward_flops: int = 0
    read: int = 0
    written: int = 0


@dataclass
class OperatorCost:
    """All calls of one operator in one phase."""

    name: str
    phase: str
    calls: int = 0
    flops: int = 0
    read: int = 0
    written: int = 0


@dataclass
class Plan:
    """What a call costs. Memory in bytes; FLOPs count a multiplication and an addition apart."""

    name: str
    parameters: int
    parameter_bytes: int
    buffer_bytes: int
    flops: int
    """Of the forward pass."""
    backward_flops: int
    read: int
    written: int
    peak: int
    """The most that was alive at once: parameters, buffers, arguments, results and saved tensors."""
    peak_at: Operation | None
    """The operation with which the peak was reached."""
    outputs: list
    """(shape, dtype) of each tensor of the result."""
    operations: list[Operation]
    """Every call of an operator, in order."""
    operators: list[OperatorCost]
    """The same by operator, the dearest first."""
    modules: list[ModuleCost]
    held: list[Held]
    """The storages alive at the peak, the largest first."""
    without_formula: list[str]
    """Operators whose FLOPs are not known: registered from outside of the schema."""

    def as_dict(self, operations: bool = True) -> dict[str, Any]:
        """As plain data. operations: with the list of all operator calls."""
        found = asdict(self)
        if not operations:
            del found["operations"]
        return found

    def to_json(self, indent: int | None = 2, operations: bool = False) -> str:
        """As JSON; with every call of an operator if `operations`."""
        return json.dumps(self.as_dict(operations), indent=indent)

    def to_html(self) -> str:
        """As a page that stands alone: the memory over the program's course, what holds its peak, the tree of modules, the operators."""
        return html(self)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Plan of {self.name}: {count(self.flops)}FLOPs, peak {size(self.peak)}>"

    def table(self, depth: int = 2, rows: int = 12) -> str:
        """Totals; modules down to `depth` dots in their names; the `rows` dearest operators; the `rows` largest storages at the peak."""
        parts = [f"Plan of {self.name}", _grid(self._totals())]
        modules = [m for m in self.modules if m.name.count(".") < depth or m.name == ""]
        if modules:
            head = ["module", "class", "result", "parameters", "FLOPs", "read", "written"]
            body = [_module_row(m) for m in modules]
            parts.append(_grid([head, *body], right=(3, 4, 5, 6)))
        head = ["operator", "phase", "calls", "FLOPs", "read", "written"]
        body = [[o.name, o.phase, str(o.calls), count(o.flops), size(o.read), size(o.written)] for o in self.operators]
        parts.append(_grid([head, *body[:rows], *_more(len(body) - rows)], right=(2, 3, 4, 5)))
        head = ["held at the peak", "by", "in", "shape", "dtype"]
        body = _held_rows(self.held)
        parts.append(_grid([head, *body[:rows], *_more(len(body) - rows)], right=(0,)))
        if self.without_formula:
            parts.append(f"FLOPs not counted of: {', '.join(self.without_formula)}")
        return "\n\n".join(parts)

    def _totals(self) -> list[list[str]]:
        rows = [
            ["parameters", f"{self.parameters:,}", size(self.parameter_bytes)],
            ["buffers", "", size(self.buffer_bytes)],
            ["FLOPs forward", f"{self.flops:,}", count(self.flops)],
        ]
        if self.backward_flops:
            rows.append(["FLOPs backward", f"{self.backward_flops:,}", count(self.backward_flops)])
        rows += [["read", f"{self.read:,}", size(self.read)], ["written", f"{self.written:,}", size(self.written)]]
        where = "" if self.peak_at is None else f"with {self.peak_at.name} in {self.peak_at.module or 'the root'}"
        return [*rows, ["peak of live memory", f"{self.peak:,}", f"{size(self.peak)}  {where}".rstrip()]]


def summarise(
    recorder: Recorder, name: str, root: Any, owned: list, costs: dict[str, ModuleCost], outputs: list
) -> Plan:
    """The plan of a finished run."""
    operations = recorder.operations
    operators: dict[tuple[str, str], OperatorCost] = {}
    for operation in operations:
        key = (operation.phase, operation.name)
        total = operators.setdefault(key, OperatorCost(operation.name, operation.phase))
        total.calls += 1
        total.flops += operation.flops
        total.read += operation.read
        total.written += operation.written
        for module in _around(operation.module, costs):
            module.flops += operation.flops if operation.phase == "forward" else 0
            module.backward_flops += operation.flops if operation.phase == "backward" else 0
            module.read += operation.read
            module.written += operation.written
    parameters = [tensor for kind, _, tensor in owned if kind == "parameter"]
    at_peak = recorder.at_peak()
    return Plan(
        name=name,
        parameters=sum(p.numel() for p in parameters),
        parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
        buffer_bytes=sum(b.numel() * b.element_size() for kind, _, b in owned if kind == "buffer"),
        flops=sum(o.flops for o in operations if o.phase == "forward"),
        backward_flops=sum(o.flops for o in operations if o.phase == "backward"),
        read=sum(o.read for o in operations),
        written=sum(o.written for o in operations),
        peak=recorder.peak,
        peak_at=operations[recorder.peak_operation] if recorder.peak_operation >= 0 else None,
        outputs=outputs,
        operations=operations,
        operators=sorted(operators.values(), key=lambda o: (-o.flops, -o.written, o.name)),
        modules=_in_tree_order(costs, root),
        held=at_peak,
        without_formula=sorted(recorder.unknown),
    )


def _around(name: str, costs: dict[str, ModuleCost]) -> list[ModuleCost]:
    """A module and all those that it is part of."""
    found = []
    while name:
        if name in costs:
            found.append(costs[name])
        name = name.rpartition(".")[0]
    return [*found, costs[""]] if "" in costs else found


def _in_tree_order(costs: dict[str, ModuleCost], root: nn.Module | None) -> list[ModuleCost]:
    if root is None:
        return list(costs.values())
    order = {name: place for place, (name, _) in enumerate(root.named_modules())}
    return sorted(costs.values(), key=lambda cost: order.get(cost.name, len(order)))


# Text


def _module_row(module: ModuleCost) -> list[str]:
    shapes = ", ".join(str(list(shape)) for shape, _ in module.outputs[:2]) + (
        ", ..." if len(module.outputs) > 2 else ""
    )
    flops = count(module.flops) + (f"+ {count(module.backward_flops)}" if module.backward_flops else "")
    return [
        module.name or "(root)",
        module.kind,
        shapes,
        f"{module.parameters:,}",
        flops,
        size(module.read),
        size(module.written),
    ]


def _held_rows(held: list[Held]) -> list[list[str]]:
    """What was there from the beginning in a row a kind; the results of operators one by one."""
    rows: list[tuple[int, list[str]]] = []
    for kind in ("parameter", "buffer", "argument", "captured"):
        found = [h for h in held if h.kind == kind]
        total = sum(h.nbytes for h in found)
        if found:
            rows.append(
                (
                    total,
                    [size(total), f"{len(found)} {kind}{'s' * (len(found) > 1 and kind != 'captured')}", "-", "", ""],
                )
            )
    made = [h for h in held if h.kind not in ("parameter", "buffer", "argument", "captured")]
    rows += [(h.nbytes, [size(h.nbytes), h.kind, h.name or "-", str(list(h.shape)), h.dtype]) for h in made]
    return [row for _, row in sorted(rows, key=lambda row: -row[0])]


def _more(left: int) -> list[list[str]]:
    return [[f"... {left} more"]] if left > 0 else []


def _grid(rows: list[list[str]], right: tuple[int, ...] = ()) -> str:
    columns = max(len(row) for row in rows)
    full = [row for row in rows if len(row) == columns]
    widths = [max(len(row[i]) for row in full) for i in range(columns)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(widths[i]) if i in right and len(row) == columns else text.ljust(widths[i])
            for i, text in enumerate(row)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
