"""The source of a graph for reading: with the geometry of each tensor, the line of the program, and where values go."""

from __future__ import annotations

import builtins
import keyword
import operator
from typing import Any

from .. import _dtype
from .._device import device
from ..fx.graph_module import GraphModule
from ..fx.node import Node, qualified_name
from ..utils._dtype_abbrs import dtype_abbrs

_INFIX = {operator.mul: "*", operator.add: "+", operator.floordiv: "//", operator.sub: "-"}


def readable(module: GraphModule, name: str = "GraphModule") -> str:
    """The class of a module and those of the graphs below it, as source."""
    lines = [f"class {name}(torch.nn.Module):", *(f"    {line}" if line else "" for line in _forward(module))]
    for below, inner in module.named_children():
        if isinstance(inner, GraphModule):
            lines.extend(f"    {line}" if line else "" for line in readable(inner, below).split("\n"))
    return "\n".join(lines)


def _forward(module: GraphModule) -> list[str]:
    nodes = list(module.graph.nodes)
    names = _variables(nodes)
    last: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                last.setdefault(node, []).append(used)
        if node not in seen and node.op not in ("placeholder", "output"):
            last.setdefault(node, []).append(node)
            seen.add(node)
    parameters, renamed, lines, trace = [], [], [], None
    for node in nodes:
        if node.op == "placeholder":
            kind = _kind(node)
            parameters.append(f'{node.target}: "{kind}"' if kind else str(node.target))
            if names[node] != node.target:
                renamed.append(f"    {names[node]} = {node.target}")
            continue
        if node.op == "output":
            lines.append(f"    return {_shown(node.args[0], names)}")
            continue
        here = node.meta.get("stack_trace", "")
        if here != trace:
            trace = here
            lines.extend(["", f"    # {_comment(here)}"])
        gone = "".join(f"{names[one]} = " for one in last.get(node, ()))
        kind = _kind(node)
        left = f'{names[node]}: "{kind}"' if kind else names[node]
        lines.append(f"    {left} = {_expression(node, names)}" + (f";  {gone}None" if gone else ""))
    if not renamed and lines and not lines[0]:
        del lines[0]
    return [f"def forward({', '.join(['self', *parameters])}):", *renamed, *lines, ""]


def _variables(nodes: list[Node]) -> dict[Node, str]:
    taken = {node.name for node in nodes}
    names = {}
    for node in nodes:
        name = node.name
        if name in vars(builtins) or keyword.iskeyword(name):
            number = 1
            while f"{name}_{number}" in taken:
                number += 1
            name = f"{name}_{number}"
            taken.add(name)
        names[node] = name
    return names


def _comment(trace: str) -> str:
    if not trace:
        return "No stacktrace found for following nodes"
    place, _, line = trace.partition("\n")
    file, number, function = place.removeprefix("File ").split(", ")
    return f"File: {file[1:-1]}:{number.removeprefix('line ')} {function}, code: {line.strip()}"


def _kind(node: Node) -> str:
    """`f32[2, 3]`, `Sym(s0)`, or nothing for what is neither."""
    sizes, value = node.meta.get("sizes"), node.meta.get("val")
    if sizes is not None and value is not None:
        return f"{dtype_abbrs[value.dtype]}[{', '.join(map(str, sizes))}]"
    if node.op == "call_function" and value is not None and not isinstance(value, tuple):
        return f"Sym({value})"
    return ""


def _expression(node: Node, names: dict[Node, str]) -> str:
    if node.op == "get_attr":
        return f"self.{node.target}"
    if node.target is operator.getitem:
        return f"{_shown(node.args[0], names)}[{node.args[1]}]"
    if node.target in _INFIX:
        return f"{_shown(node.args[0], names)} {_INFIX[node.target]} {_shown(node.args[1], names)}"
    given = [_shown(one, names) for one in node.args]
    given += [f"{name} = {_shown(one, names)}" for name, one in node.kwargs.items()]
    return f"{function_name(node.target)}({', '.join(given)})"


def function_name(function: Any) -> str:
    """The name by which a graph shows a function."""
    if getattr(function, "__name__", "") == "wrap_with_set_grad_enabled":
        return "torch.ops.higher_order.wrap_with_set_grad_enabled"
    return qualified_name(function)


def _shown(value: Any, names: dict[Node, str]) -> str:
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, tuple):
        return f"({', '.join(_shown(one, names) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(_shown(one, names) for one in value)}]"
    if isinstance(value, _dtype.dtype):
        return str(value)
    return repr(value) if isinstance(value, str | device) or value is None else str(value)
