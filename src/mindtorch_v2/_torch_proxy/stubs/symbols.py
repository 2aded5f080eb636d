"""Symbolic numbers: there are none, so every number is what it is."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_REASON = "there are no symbolic shapes"


class SymInt(metaclass=ImportOnly):
    """A symbolic integer; for type tests only."""

    _because = _REASON
    _error = NotImplementedError


class SymFloat(metaclass=ImportOnly):
    """A symbolic float; for type tests only."""

    _because = _REASON
    _error = NotImplementedError


class SymBool(metaclass=ImportOnly):
    """A symbolic truth value; for type tests only."""

    _because = _REASON
    _error = NotImplementedError


for _class in (SymInt, SymFloat, SymBool):
    _class.__module__ = "torch"


def sym_int(a: Any) -> int:
    """`a` as an integer, rounded towards zero."""
    return math.floor(a) if a >= 0 else math.ceil(a)


def sym_float(a: Any) -> float:
    """`a` as a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; a float if one of them is."""
    largest = builtins.max(a, b)
    return float(largest) if isinstance(a, float) or isinstance(b, float) else largest


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float if one of them is."""
    smallest = builtins.min(a, b)
    return float(smallest) if isinstance(a, float) or isinstance(b, float) else smallest


def sym_not(a: Any) -> bool:
    """The negation of a truth value."""
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` if `b` holds, otherwise `f`."""
    return t if b else f


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum of numbers."""
    return builtins.sum(args)


def guard_or_false(a: Any) -> bool:
    """The truth of `a`, which is always known."""
    return bool(a)


def guard_or_true(a: Any) -> bool:
    """The truth of `a`, which is always known."""
    return bool(a)


def guard_bool(a: Any) -> bool:
    """The truth of `a`."""
    return bool(a)


def guard_size_oblivious(expr: Any) -> bool:
    """The truth of `expr`."""
    return bool(expr)


def statically_known_true(x: Any) -> bool:
    """Whether `x` holds."""
    return bool(x)


def statically_known_false(x: Any) -> bool:
    """Whether `x` does not hold."""
    return not x


def is_concrete_int(a: Any) -> bool:
    """Whether `a` is an integer."""
    return isinstance(a, int)


def is_concrete_float(a: Any) -> bool:
    """Whether `a` is a float."""
    return isinstance(a, float)


def is_concrete_bool(a: Any) -> bool:
    """Whether `a` is a truth value."""
    return isinstance(a, bool)


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two numbers or two lists of numbers are equal."""
    if isinstance(x, tuple | list) and isinstance(y, tuple | list):
        return len(x) == len(y) and all(a == b for a, b in zip(x, y, strict=True))
    return bool(x == y)


def sym_and(*args: Any) -> bool:
    """Whether all hold."""
    return all(args)


def sym_or(*args: Any) -> bool:
    """Whether one holds."""
    return any(args)


def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return math.sqrt(a)


def sym_fresh_size(expr: Any) -> NoReturn:
    """NotImplementedError: sizes are numbers."""
    raise NotImplementedError("There is no symbolic size: every size is a number")
