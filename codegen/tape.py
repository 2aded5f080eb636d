"""Derivatives as the templates print them: node classes and the functions that record them."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .forms import safe
from .model import Argument, Derivative, Op, Schema


def _local(name: str) -> str:
    return {"self": "self_", "out": "out_"}.get(name, safe(name))


@dataclass(frozen=True)
class Tape:
    """The node class and the record function of one operator."""

    op: Op

    @property
    def printed(self) -> str:
        """The node's name without its number, in PyTorch's spelling, in which a letter after a digit is large."""
        return "".join(word.title() for word in self.op.name.strip("_").split("_")) + "Backward"

    @cached_property
    def inputs(self) -> list[Argument]:
        """Differentiable inputs, in signature order: one edge each, or one per tensor of a list."""
        wanted = {name for d in self.op.derivatives for name in d.inputs}
        return [a for a in self.op.arguments if a.name in wanted]

    @property
    def parameters(self) -> str:
        return ", ".join(_local(a.name) for a in self.op.arguments)

    def edge(self, name: str) -> str:
        return f"edge_{safe(name)}"

    @property
    def edge_lines(self) -> list[str]:
        lines = []
        for a in self.inputs:
            if a.type.list:
                lines.append(f"{self.edge(a.name)} = [edge(t) for t in {_local(a.name)}]")
            else:
                lines.append(f"{self.edge(a.name)} = edge({_local(a.name)})")
        return lines

    @property
    def no_edges(self) -> str:
        parts = []
        for a in self.inputs:
            if a.type.list:
                parts.append(f"not any({self.edge(a.name)})")
            else:
                parts.append(f"{self.edge(a.name)} is None")
        return " and ".join(parts)

    @property
    def edges(self) -> str:
        parts = [f"*{self.edge(a.name)}" if a.type.list else self.edge(a.name) for a in self.inputs]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    @property
    def has_list(self) -> bool:
        return any(a.type.list for a in self.inputs)

    # What is saved

    def _needed_by(self, users: list[Derivative]) -> list[str]:
        """The inputs of which one must have an edge for something to be saved; none when it always is."""
        names = list(dict.fromkeys(name for d in users for name in d.inputs))
        return [] if set(names) == {a.name for a in self.inputs} else names

    def _needed(self, users: list[Derivative]) -> str | None:
        """The condition under which something is saved; None when it always is."""
        names = self._needed_by(users)
        if not names:
            return None
        parts = []
        for name in names:
            argument = self.op.signature.argument(name)
            is_list = argument is not None and argument.type.list
            parts.append(f"any({self.edge(name)})" if is_list else f"{self.edge(name)} is not None")
        return " or ".join(parts)

    @cached_property
    def saved(self) -> list[tuple[str, str]]:
        """(local name, expression) of the saved tensors."""
        found = []
        for a in self.op.arguments:
            users = [d for d in self.op.derivatives if a.name in d.saved_inputs]
            if not users:
                continue
            condition = self._needed(users)
            kept = f"keep({_local(a.name)})"
            found.append((_local(a.name), kept if condition is None else f"{kept} if {condition} else None"))
        for number in sorted({n for d in self.op.derivatives for n in d.saved_results}):
            users = [d for d in self.op.derivatives if number in d.saved_results]
            condition = self._needed(users)
            out = "out" if self.single_output else f"out[{number}]"
            kept = f"keep_output({out}{'' if self.single_output else f', {number}'})"
            found.append((f"result{number}", kept if condition is None else f"{kept} if {condition} else None"))
        return found

    @cached_property
    def consts(self) -> list[tuple[str, str]]:
        """(local name, expression) of what is no tensor."""
        found = []
        for a in self.op.arguments:
            if any(a.name in d.scalars for d in self.op.derivatives):
                found.append((_local(a.name), _local(a.name)))
        attributes = dict.fromkeys(pair for d in self.op.derivatives for pair in d.saved_attributes)
        for name, attribute in attributes:
            number = self._result_number(name)
            if number is not None:
                out = "out" if self.single_output else f"out[{number}]"
                found.append((f"result{number}_{attribute}", f"{out}.{attribute}"))
                continue
            argument = self.op.signature.argument(name)
            local = _local(name)
            if argument is not None and argument.type.list:
                found.append((f"{safe(name)}_{attribute}", f"[t.{attribute} for t in {local}]"))
            else:
                found.append((f"{safe(name)}_{attribute}", f'getattr({local}, "{attribute}", None)'))
        if self.has_list:
            for a in self.inputs:
                if a.type.list:
                    found.append((f"{safe(a.name)}_count", f"len({_local(a.name)})"))
        return found

    @staticmethod
    def names(pairs: list[tuple[str, str]]) -> str:
        """The target of an unpacking assignment."""
        return f"({', '.join(name for name, _ in pairs)}{',' if len(pairs) == 1 else ''})"

    @property
    def single_output(self) -> bool:
        return len(self.op.returns) == 1 and not self.op.returns[0].type.list

    @property
    def differentiable(self) -> tuple[int, ...] | None:
        """Numbers of the outputs that gradients come from; None for all."""
        if self.single_output:
            return None
        uses_all = any({"grads", "given"} & set(d.names) for d in self.op.derivatives)
        return None if uses_all else (0,)

    def _result_number(self, name: str) -> int | None:
        if name == "result":
            return 0
        if name.startswith("result") and name[6:].isdigit():
            return int(name[6:])
        names = self.op.signature.return_names
        if name in names and self.op.signature.argument(name) is None:
            return names.index(name)
        return None

    @cached_property
    def layout(self) -> str | None:
        """What edges, saved tensors and constants are made of, by parameter number: the arguments of `recorder`.

        None where the Python function is needed.
        """
        order = {a.name: i for i, a in enumerate(self.op.arguments)}
        edges = {a.name: i for i, a in enumerate(self.inputs)}
        saved, consts = [], []
        for a in self.op.arguments:
            users = [d for d in self.op.derivatives if a.name in d.saved_inputs]
            if users:
                saved.append((order[a.name], tuple(edges[name] for name in self._needed_by(users))))
        for number in sorted({n for d in self.op.derivatives for n in d.saved_results}):
            users = [d for d in self.op.derivatives if number in d.saved_results]
            saved.append((-1 - number, tuple(edges[name] for name in self._needed_by(users))))
        for a in self.op.arguments:
            if any(a.name in d.scalars for d in self.op.derivatives):
                consts.append((order[a.name], None))
        for name, attribute in dict.fromkeys(pair for d in self.op.derivatives for pair in d.saved_attributes):
            number = self._result_number(name)
            consts.append((order[name] if number is None else -1 - number, attribute))
        consts += [(order[a.name], 0) for a in self.inputs if a.type.list]
        if max(len(order), len(saved), len(consts)) > 16:
            return None
        outputs = "" if self.single_output else ", 1" if self.differentiable is None else ", 2"
        inputs = tuple(order[a.name] for a in self.inputs)
        return f"{len(order)}, {inputs}, {tuple(saved)}, {tuple(consts)}{outputs}"

    # Formulas

    def uses(self, name: str) -> bool:
        """Whether a formula reads a local name of `apply`."""
        return any(re.search(rf"\b{name}\b", step["formula"]) for step in self.steps)

    def formula(self, d: Derivative) -> str:
        """The formula over the local names of `apply`."""

        def replace(name: str, attribute: str | None) -> str | None:
            if name == "needs":
                return f"({', '.join(self._has_edge(n) for n in d.inputs)},)"
            if name in ("grad", "grads", "given"):
                return None
            number = self._result_number(name)
            if attribute is not None and (name, attribute) in d.saved_attributes:
                return f"result{number}_{attribute}" if number is not None else f"{safe(name)}_{attribute}"
            suffix = "" if attribute is None else f".{attribute}"
            if number is not None:
                return f"result{number}{suffix}"
            if self.op.signature.argument(name) is not None:
                return _local(name) + suffix
            return None

        return " ".join(d.rewritten(replace).split())

    def _has_edge(self, name: str) -> str:
        argument = self.op.signature.argument(name)
        assert argument is not None
        start = self._start(name)
        if argument.type.list:
            return f"any(edges[{start} : {start} + {safe(name)}_count])"
        return f"edges[{start}] is not None"

    def _start(self, name: str) -> str:
        position = 0
        lists = []
        for a in self.inputs:
            if a.name == name:
                break
            if a.type.list:
                lists.append(f"{safe(a.name)}_count")
            else:
                position += 1
        return " + ".join([str(position), *lists]) if lists else str(position)

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """One per derivative: condition, target names, formula."""
        steps = []
        for d in self.op.derivatives:
            condition = " or ".join(self._has_edge(n) for n in d.inputs)
            steps.append(
                {"condition": condition, "targets": [f"of_{safe(n)}" for n in d.inputs], "formula": self.formula(d)}
            )
        return steps

    @property
    def result(self) -> str:
        parts = []
        for a in self.inputs:
            name = f"of_{safe(a.name)}"
            parts.append(f"*({name} or [None] * {safe(a.name)}_count)" if a.type.list else name)
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    @property
    def only_conditional(self) -> bool:
        """A single input: the node exists only when it is wanted."""
        return len(self.inputs) == 1 and not self.inputs[0].type.list


def module(ops: list[Op], schema: Schema) -> dict[str, Any]:
    """Context of an autograd module."""
    tapes = [Tape(op) for op in ops if op.derivatives]
    functions = {name for tape in tapes for d in tape.op.derivatives for name in d.functions}
    formulas = sorted(functions & set(schema.formulas))
    known = set(schema.functions)
    operators = sorted(name for name in functions - set(formulas) if name in known)
    outer = sorted(name for name in functions - set(formulas) - known if name in schema.library)
    unknown = [
        name for name in functions if name not in (*formulas, *operators, *outer) and not hasattr(builtins, name)
    ]
    if unknown:
        raise ValueError(f"formulas use unknown functions: {unknown}")
    mine = [name for name in formulas if f"formulas.{name}" in schema.own]
    sources = [
        ("mindtorch_v2._autograd.formulas", [name for name in formulas if name not in mine]),
        (f"{schema.package}.formulas", mine),
    ]
    made = [("mindtorch_v2._generated.functions", outer), (f"{schema.product}.functions", operators)]
    return {
        "tapes": _named(tapes),
        "formulas": [(home, names) for home, names in sources if names],
        "operators": [(home, names) for home, names in made if names],
    }


def _named(tapes: list[Tape]) -> list[tuple[Tape, str, str]]:
    """(tape, class, printed name). Overloads are numbered in their order unless the entry names the node."""
    counts: Counter[str] = Counter()
    printed = []
    for tape in tapes:
        if tape.op.node is not None:
            printed.append(tape.op.node)
        else:
            printed.append(f"{tape.printed}{counts[tape.printed]}")
            counts[tape.printed] += 1
    shared = {name for name, count in Counter(printed).items() if count > 1}
    return [
        (tape, f"{name}_of_{tape.op.identifier}" if name in shared else name, name)
        for tape, name in zip(tapes, printed, strict=True)
    ]
