"""One argument of a case made unusual, whatever the rule: another layout, another dtype, no elements, no dimensions, a negative dimension.

Strategies draw what their rules are about; this sees to it that every rule meets every kind of tensor. Values stay as they were drawn, so
that indices remain indices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .generic import DIM_NAMES
from .operands import Operand, contiguous, span
from .picking import Picker
from .table import Row

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "complex64",
    "complex128",
)


def vary(pick: Picker, row: Row, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with one of them changed."""
    tensors = [name for name, value in arguments.items() if isinstance(value, Operand)]
    lists = [name for name, value in arguments.items() if isinstance(value, list) and _are_tensors(value)]
    dims = [p.name for p in row.parameters if p.name in arguments and is_dim(p.name, arguments[p.name])]
    if dims and pick.chance(3):
        name = pick.choice(dims)
        first = next((arguments[t] for t in tensors), None)
        return {**arguments, name: _dim(pick, arguments[name], max(first.ndim, 1) if first else 1)}
    if len(tensors) > 1 and pick.chance(8):
        return {**arguments, **{name: _converted(pick, arguments[name]) for name in tensors}}
    names = tensors + lists
    if not names:
        return arguments
    name = pick.choice(names)
    value = arguments[name]
    if isinstance(value, list):
        place = pick.integer(0, len(value) - 1)
        changed: Any = [*value[:place], _changed(pick, row, value[place]), *value[place + 1 :]]
    else:
        changed = _changed(pick, row, value)
    return {**arguments, name: changed}


def is_dim(name: str, value: Any) -> bool:
    """Whether an argument is one dimension."""
    return name in DIM_NAMES and type(value) is int


def _are_tensors(values: list) -> bool:
    return bool(values) and all(isinstance(value, Operand) for value in values)


def _dim(pick: Picker, dim: int, ndim: int) -> int:
    negative = dim - ndim if 0 <= dim < ndim else dim
    return pick.choice((negative, -1, ndim, -ndim - 1))


def _changed(pick: Picker, row: Row, operand: Operand) -> Operand:
    change: Callable[[Picker, Operand], Operand] = pick.choice(
        (_strided, _permuted, _expanded, _moved, _converted, _converted, _converted, _emptied, _reduced)
    )
    return change(pick, operand)


def elements(operand: Operand) -> list:
    """The elements in the order of a contiguous tensor."""
    return [
        operand.values[operand.offset + sum(i * step for i, step in zip(place, operand.stride))]
        for place in itertools.product(*(range(size) for size in operand.shape))
    ]


def laid_out(operand: Operand, stride: tuple[int, ...], offset: int = 0) -> Operand:
    """The same elements in another layout; where the layout lets places share memory, the first element counts."""
    values = list(operand.values[:1] or (0,)) * span(operand.shape, stride, offset)
    found = elements(operand)
    places = list(itertools.product(*(range(size) for size in operand.shape)))
    for value, place in zip(reversed(found), reversed(places)):
        values[offset + sum(i * step for i, step in zip(place, stride))] = value
    return replace(operand, values=tuple(values), stride=stride, offset=offset)


def _strided(pick: Picker, operand: Operand) -> Operand:
    return laid_out(operand, tuple(2 * step for step in contiguous(operand.shape)))


def _permuted(pick: Picker, operand: Operand) -> Operand:
    order = pick.shuffled(range(operand.ndim))
    inner = contiguous([operand.shape[d] for d in order])
    return laid_out(operand, tuple(inner[order.index(d)] for d in range(operand.ndim)))


def _expanded(pick: Picker, operand: Operand) -> Operand:
    wide = [d for d, size in enumerate(operand.shape) if size > 1]
    if not wide:
        return operand
    dim = pick.choice(wide)
    inner = contiguous([1 if d == dim else size for d, size in enumerate(operand.shape)])
    return laid_out(operand, tuple(0 if d == dim else step for d, step in enumerate(inner)))


def _moved(pick: Picker, operand: Operand) -> Operand:
    return laid_out(operand, contiguous(operand.shape), pick.integer(1, 3))


def _converted(pick: Picker, operand: Operand) -> Operand:
    return as_dtype(operand, pick.choice(DTYPES))


def as_dtype(operand: Operand, dtype: str) -> Operand:
    """The same elements in another dtype."""
    return replace(operand, dtype=dtype, values=tuple(converted(value, dtype) for value in operand.values))


def converted(value: Any, dtype: str) -> Any:
    """A number as a value of a dtype: the nearest that it has."""
    if dtype.startswith("complex"):
        return complex(value)
    real = value.real if isinstance(value, complex) else value
    if dtype == "bool":
        return bool(real)
    if "int" not in dtype:
        return float(real)
    whole = int(real) if math.isfinite(real) else 0
    if dtype == "int8":
        return max(-128, min(whole, 127))
    if dtype.startswith("u"):
        return min(abs(whole), 255) if dtype == "uint8" else abs(whole)
    return whole


def _emptied(pick: Picker, operand: Operand) -> Operand:
    shape = list(operand.shape) or [1]
    shape[pick.integer(0, len(shape) - 1)] = 0
    return Operand((), operand.dtype, tuple(shape), contiguous(shape))


def _reduced(pick: Picker, operand: Operand) -> Operand:
    return Operand(tuple(operand.values[:1] or (converted(0, operand.dtype),)), operand.dtype, (), ())
