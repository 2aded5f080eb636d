"""Slips of authors that leave a schema readable, and would make something else of it than was meant."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .aclnn import kind_of, takes
from .model import Expression, Kernel, Location, Op, Prototype
from .problems import Problem
from .rules import Rule

VIEW = "view"


def of_entry(op: Op, rules: dict[str, Rule]) -> Iterator[Problem]:
    """All of them, of one operator."""
    yield from _check_view(op, rules)
    yield from _check_inplace(op)


def _problem(op: Op, field: str, message: str) -> Problem:
    return Problem(op.location_of(field), op.full_name, message)


def _check_view(op: Op, rules: dict[str, Rule]) -> Iterator[Problem]:
    """What has a rule and no kernel is a view, so its rule must be that of one; and a view has no kernel."""
    rule = None if op.meta is None else rules.get(op.meta.function)
    own = op.base is None and not {"missing", "kernels"} & op.locations.keys()
    if own and op.is_view and not op.is_sparse_only and rule is not None and rule.flops is not None:
        message = f"needs 'kernels' or a 'block': an entry without them is a view, and rule '{rule.name}', which costs something, makes none"
        yield _problem(op, "meta", message)
    if op.base is None and VIEW in op.tags and not op.is_view:
        place = "tags.view" if "tags.view" in op.locations else "tags"
        has = "kernels" if op.kernels else "a composite"
        yield _problem(op, place, f"is tagged '{VIEW}' but has {has}; a view has a rule alone")


def _check_inplace(op: Op) -> Iterator[Problem]:
    """An in-place form of a function of torch is a method, unless the entry says that it is a function too."""
    has, written = set(op.variants), op.signature.argument("self")
    if written is None or not written.is_tensor_like or op.is_inplace:
        return  # which is said already
    if "inplace" in has and "method" not in has and op.namespace == "torch" and "inplace_function" not in op.tags:
        place = "variants.inplace" if "variants.inplace" in op.locations else "variants"
        yield _problem(op, place, "'inplace' gives a method, so it needs 'method'; or the tag 'inplace_function'")


def owners(ops: Iterable[Op]) -> Iterator[Problem]:
    """A Python operator belongs to one function, whose overloads it calls."""
    first: dict[str, Op] = {}
    for op in ops:
        for name in op.operators:
            other = first.setdefault(name, op)
            if (other.namespace, other.name) != (op.namespace, op.name):
                place = f"operators.{name}" if f"operators.{name}" in op.locations else "operators"
                where = other.location_of("operators")
                yield _problem(op, place, f"'{name}' is the operator of {other.full_name} already, at {where}")


_LITERALS = {bool: "bool", int: "int", float: "float", str: "str"}
_TAKEN = {
    "tensor": (),
    "tensors": (),
    "scalar": (bool, int, float),
    "int": (bool, int),
    "uint": (bool, int),
    "bool": (bool, int),
    "float": (bool, int, float),
    "text": (str,),
}
"""Which of Python's literals can be passed for a C parameter of a kind; kinds that are not here take what is made of lists and names."""


def literals(op: Op, kernel: Kernel, prototype: Prototype) -> Iterator[Problem]:
    """A number in the place of a tensor, or a tensor in that of a number, is a slip in the order of C parameters."""
    assert kernel.call is not None
    for parameter, expression in zip(prototype.inputs, kernel.call.args):
        kind = kind_of(parameter.type)
        value = _literal(expression)
        if kind is None or kind not in _TAKEN or value is None or isinstance(value, _TAKEN[kind]):
            continue
        likely = [a.python_name for a in op.arguments if takes(kind, a.type) and a.python_name not in kernel.call.names]
        hint = f"; did you mean '{likely[0]}'?" if likely else ""
        message = f"{expression.text} is a {_LITERALS[type(value)]}, the C parameter '{parameter.name}' a {parameter.type}{hint}"
        yield Problem(_at(op, expression), op.full_name, message)


def _at(op: Op, expression: Expression) -> Location:
    return expression.location or op.location


def _literal(expression: Expression) -> bool | int | float | str | None:
    """The number or text that an expression is, or None."""
    try:
        value = ast.literal_eval(expression.text)
    except (ValueError, SyntaxError):
        return None
    return value if type(value) in _LITERALS else None
