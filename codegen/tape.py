"""Derivatives as the templates print them: node classes and the functions that record them."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .forms import safe
from .model import Argument, Derivative, Op, Schema


def _local(name: str) -> str:
    return {"self": "self_", "out": "out_"}.get(name, safe(name))


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if parts else ""


@dataclass(frozen=True)
class Tape:
    """The node class of one operator, and what is recorded of its calls."""

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

    # What is saved

    def _saved_inputs(self) -> Iterator[tuple[Argument, list[str]]]:
        """The arguments that formulas read, each with what `_needed_by` says of it."""
        for a in self.op.arguments:
            users = [d for d in self.op.derivatives if a.name in d.saved_inputs]
            if users:
                yield a, self._needed_by(users)

    def _saved_results(self) -> Iterator[tuple[int, list[str]]]:
        """The numbers of the results that formulas read, each with what `_needed_by` says of it."""
        for number in sorted({n for d in self.op.derivatives for n in d.saved_results}):
            yield number, self._needed_by([d for d in self.op.derivatives if number in d.saved_results])

    def _needed_by(self, users: list[Derivative]) -> list[str]:
        """The inputs of which one must have an edge for something to be saved; none when it always is."""
        names = list(dict.fromkeys(name for d in users for name in d.inputs))
        return [] if set(names) == {a.name for a in self.inputs} else names

    @cached_property
    def _scalars(self) -> list[Argument]:
        """The arguments that are no tensors and that formulas read."""
        return [a for a in self.op.arguments if any(a.name in d.scalars for d in self.op.derivatives)]

    @cached_property
    def _attributes(self) -> list[tuple[str, str]]:
        """The attributes of arguments and results that formulas read without the rest of them, once each."""
        return list(dict.fromkeys(pair for d in self.op.derivatives for pair in d.saved_attributes))

    @cached_property
    def saved(self) -> str:
        """The target of the assignment that unpacks the saved tensors; empty where there are none."""
        names = [_local(a.name) for a, _ in self._saved_inputs()]
        return _tuple(names + [f"result{number}" for number, _ in self._saved_results()])

    @cached_property
    def consts(self) -> str:
        """The target of the assignment that unpacks what is no tensor; empty where there is nothing."""
        names = [_local(a.name) for a in self._scalars]
        names += [self._local_attribute(name, attribute) for name, attribute in self._attributes]
        return _tuple(names + [f"{safe(a.name)}_count" for a in self.inputs if a.type.list])

    def _local_attribute(self, name: str, attribute: str) -> str:
        number = self._result_number(name)
        return f"{safe(name) if number is None else f'result{number}'}_{attribute}"

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
    def layout(self) -> str:
        """What edges, saved tensors and constants are made of, by parameter number: the arguments of `recorder`."""
        order = {a.name: i for i, a in enumerate(self.op.arguments)}
        edges = {a.name: i for i, a in enumerate(self.inputs)}
        saved = [(order[a.name], tuple(edges[n] for n in needed)) for a, needed in self._saved_inputs()]
        saved += [(-1 - number, tuple(edges[n] for n in needed)) for number, needed in self._saved_results()]
        consts: list[tuple[int, Any]] = [(order[a.name], None) for a in self._scalars]
        for name, attribute in self._attributes:
            number = self._result_number(name)
            consts.append((order[name] if number is None else -1 - number, attribute))
        consts += [(order[a.name], 0) for a in self.inputs if a.type.list]
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
                return self._local_attribute(name, attribute)
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
        return _tuple(parts)

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
