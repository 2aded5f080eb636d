"""What type checkers read of functions and methods: definitions with the types of parameters and results, one for each overload."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .forms import Function, OperatorRow, safe
from .model import Argument, Op, Return, Type

# Functions of the schema have the names of some types (complex, range), so that the stubs name all of them with an underscore.
_TYPES = {
    "Tensor": "Tensor",
    "Scalar": "_Scalar",
    "int": "_int",
    "SymInt": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "_str",
    "ScalarType": "_dtype",
    "Device": "_Device",
    "Layout": "_layout",
    "MemoryFormat": "_memory_format",
    "Generator": "_Generator",
}
_SPREAD = ("int", "SymInt")  # a lone list of these may be given item by item


@dataclass(frozen=True)
class Definition:
    """`def name(parameters) -> result`; `overloaded`: one of several of this name."""

    name: str
    parameters: str
    result: str
    overloaded: bool = False


@dataclass(frozen=True)
class Results:
    """A class of results with names: a tuple with attributes."""

    name: str
    items: tuple[tuple[str, str], ...]


def results(functions: Iterable[Function]) -> list[Results]:
    """The classes of named results, one for each operator that has them."""
    found = {}
    for op in (op for f in functions for op in f.overloads):
        if op.signature.return_names and len(op.returns) > 1:
            found[_results_name(op)] = tuple((r.name or "", _result_type(r)) for r in op.returns)
    return [Results(name, items) for name, items in sorted(found.items())]


def functions_of(function: Function) -> Iterator[Definition]:
    """The function's overloads, and those of its in-place form."""
    yield from _together(
        definition
        for op in function.overloads
        for definition in _definitions(function.python_name, op, "input", function)
    )
    yield from _together(
        definition
        for op in function.inplaces
        for definition in _definitions(f"{function.name}_", op, "input", None, "Tensor")
    )


def methods_of(function: Function) -> Iterator[Definition]:
    """The methods under each of their names, with their in-place forms."""
    for name in (function.overloads[0].public_name, *function.aliases):
        yield from _together(d for op in function.methods for d in _definitions(name, op, "self", None))
        yield from _together(
            d for op in function.inplaces for d in _definitions(f"{name}_", op, "self", None, "Tensor")
        )


def operator_of(row: OperatorRow) -> Definition:
    """An operator of Python. Whatever it cannot take it leaves to the other operand."""
    return Definition(row.dunder, "self" if row.kind == "unary" else "self, other: Any", "Tensor")


def _together(definitions: Iterable[Definition]) -> list[Definition]:
    """Definitions of one name: marked as overloads where there are several."""
    found = list(dict.fromkeys(definitions))
    several = len(found) > 1
    return [Definition(d.name, d.parameters, d.result, several) for d in found]


def _definitions(name: str, op: Op, first: str, function: Function | None, result: str = "") -> Iterator[Definition]:
    """One operator under a name; a second time where its list of numbers may be given item by item."""
    result = result or ("Tensor" if op.is_inplace else result_of(op))
    if any(keyword.iskeyword(a.name) for a in op.arguments):  # such a parameter can be given by `**` only
        yield Definition(
            name, "self, *args: Any, **kwargs: Any" if first == "self" else "*args: Any, **kwargs: Any", result
        )
        return
    own = _own_parameters(op, first)
    keywords = [f"{_typed(a, op)}{_default(a)}" for a in op.arguments if a.kwarg_only]
    if function is not None and op.has("out") and not op.is_inplace:
        several = len(op.returns) > 1
        keywords.append(f"out: {'_tuple[Tensor, ...]' if several else 'Tensor'} | None = None")
    if (function is not None or op.name.startswith("new_")) and {"dtype", "device"} <= {a.name for a in op.arguments}:
        keywords.append("requires_grad: _bool = False")
    rest = ["**spellings: Any"] if Function.respelled(op) else []
    yield Definition(name, ", ".join([*own, *(["*", *keywords] if keywords else []), *rest]), result)
    positional = [a for a in op.arguments if not a.kwarg_only][first == "self" :]
    if len(positional) == 1 and positional[0].type.list and positional[0].type.base in _SPREAD:
        spread = [*own[: first == "self"], f"*{safe(positional[0].name)}: {_TYPES[positional[0].type.base]}"]
        yield Definition(name, ", ".join([*spread, *keywords, *rest]), result)


def _own_parameters(op: Op, first: str) -> list[str]:
    """The parameters that may be given by position; `self`, which has no type, comes first in a method."""
    positional = [a for a in op.arguments if not a.kwarg_only]
    if first == "self":
        positional.sort(key=lambda a: a.name != "self")
    found = []
    open_ended = False
    for index, a in enumerate(positional):
        if index == 0 and first == "self":
            found.append(safe(a.name))
            continue
        name = first if index == 0 and a.name == "self" else safe(a.name)
        default = _default(a)
        if not default and (open_ended or a.name in Function.respelled(op)):
            default = " = ..."
        open_ended = bool(default)
        found.append(f"{name}: {_type(a, op)}{default}")
    return found


def _typed(a: Argument, op: Op) -> str:
    return f"{safe(a.name)}: {_type(a, op)}"


def _default(a: Argument) -> str:
    """The default where it is a word of Python or a number; of another one only that there is one."""
    if not a.has_default:
        return ""
    text = a.python_default or ""
    text = {"true": "True", "false": "False"}.get(text, text)
    return f" = {text}" if re.fullmatch(r"None|True|False|-?\d+(\.\d+)?", text) and not a.type.list else " = ..."


def _type(a: Argument, op: Op) -> str:
    """The type of what may be given for a parameter. Numbers stand for the tensors of pointwise operators, but for the first one of most."""
    kind = _TYPES.get(a.type.base, "Any")
    if a.is_tensor and {"pointwise", "numbers"} & {*op.tags} and "tensors" not in op.tags:
        if a is not op.arguments[0] or "numbers_first" in op.tags:
            kind = "Tensor | _Number"
    if a.type.list:
        kind = f"_Sequence[{kind}{' | None' if a.type.element_optional else ''}]"
        if a.type.size is not None and a.type.base != "Tensor":
            kind = f"{_TYPES[a.type.base]} | {kind}"
    return f"{kind} | None" if a.type.optional or a.default == "None" else kind


def result_of(op: Op) -> str:
    """The type of what a call gives back."""
    if not op.returns:
        return "None"
    if len(op.returns) == 1:
        return _result_type(op.returns[0])
    if op.signature.return_names:
        return _results_name(op)
    return f"_tuple[{', '.join(map(_result_type, op.returns))}]"


def _result_type(result: Return) -> str:
    return _plain(result.type)


def _plain(kind: Type) -> str:
    name = {"Scalar": "_Number"}.get(kind.base, _TYPES.get(kind.base, "Any"))
    if kind.list:
        return f"_tuple[{name}, ...]"
    return f"{name} | None" if kind.optional else name


def _results_name(op: Op) -> str:
    return f"_{op.name.strip('_')}_{'_'.join(op.signature.return_names)}"
