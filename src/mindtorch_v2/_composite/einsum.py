"""einsum: pairs of operands are contracted with one batched product each.

Operands are brought to a common order of labels, label by label: those of both that stay (batch), those of one alone (free) and those that
are summed. A label that occurs in one operand only and not in the result is summed before the product.

Which operators that takes depends on the equation and the shapes alone: it is planned once for each, and then run.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor

_ELLIPSIS = "."
"""Labels of an ellipsis are written '.0', '.1', ... from the last one on."""


def einsum(equation: str, tensors: Sequence[Tensor], path: Sequence[int] | None = None) -> Tensor:
    """Sums of products of the operands in Einstein's notation, from left to right or along `path` (pairs of operand numbers).

    RuntimeError when the equation does not fit the operands.
    """
    values = list(tensors)
    if not values:
        raise RuntimeError("einsum(): must provide at least one operand")
    for function, first, second, args in _plan(equation, tuple([x.shape for x in values]), path and tuple(path)):
        one = values[first]
        values.append(function(one, *args) if second is None else function(one, values[second], *args))
    return values[-1]


class _Term(NamedTuple):
    """A value while it is planned: its number, its labels, and its shape."""

    number: int
    names: list[str]
    shape: list[int]


class _Steps:
    """Operators on values by number: the operands first, then the results of the steps."""

    def __init__(self, operands: int):
        self.count = operands
        self.steps: list[tuple[Callable, int, int | None, tuple]] = []

    def _add(self, function: Callable, first: int, second: int | None, *args: Any) -> int:
        self.steps.append((function, first, second, args))
        self.count += 1
        return self.count - 1

    def sum(self, term: _Term, kept: set[str]) -> _Term:
        """Summed over the labels that are not kept."""
        summed = tuple(d for d, name in enumerate(term.names) if name not in kept)
        if not summed:
            return term
        left = [d for d, name in enumerate(term.names) if name in kept]
        number = self._add(F.sum, term.number, None, summed)
        return _Term(number, [term.names[d] for d in left], [term.shape[d] for d in left])

    def diagonal(self, term: _Term, first: int, second: int) -> _Term:
        left = [d for d in range(len(term.names)) if d not in (first, second)]
        number = self._add(F.diagonal, term.number, None, 0, first, second)
        names = [term.names[d] for d in left] + [term.names[first]]
        return _Term(number, names, [term.shape[d] for d in left] + [term.shape[first]])

    def permute(self, term: _Term, names: list[str], always: bool = False) -> _Term:
        if term.names == names and not always:
            return term
        order = tuple(term.names.index(name) for name in names)
        return _Term(self._add(F.permute, term.number, None, order), names, [term.shape[d] for d in order])

    def squeeze(self, term: _Term, name: str) -> _Term:
        """Without a label of size 1."""
        at = term.names.index(name)
        number = self._add(F.squeeze, term.number, None, at)
        return _Term(number, term.names[:at] + term.names[at + 1 :], term.shape[:at] + term.shape[at + 1 :])

    def shaped(self, term: _Term, function: Callable, shape: list[int]) -> _Term:
        """`function` is expand or reshape; the labels stay."""
        if term.shape == shape:
            return term
        return _Term(self._add(function, term.number, None, tuple(shape)), term.names, shape)

    def product(self, function: Callable, a: _Term, b: _Term, names: list[str], shape: list[int]) -> _Term:
        return _Term(self._add(function, a.number, b.number), names, shape)


@functools.lru_cache(256)
def _plan(equation: str, shapes: tuple[tuple[int, ...], ...], path: tuple[int, ...] | None) -> tuple[tuple, ...]:
    """(operator, number of its first value, of its second one or None, further arguments) of each step."""
    labels, output = _parse(equation, [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    for place, (names, shape) in enumerate(zip(labels, shapes, strict=True)):
        own: dict[str, int] = {}
        for name, size in zip(names, shape, strict=True):
            if own.setdefault(name, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {name} is repeated for operand {place} but the sizes don't match, {size} != {own[name]}"
                )
            if sizes.get(name, 1) != 1 and size not in (1, sizes[name]):
                if name.startswith(_ELLIPSIS):
                    raise RuntimeError(
                        f"einsum(): dimension {[n for n in names if n.startswith(_ELLIPSIS)].index(name)} covered by ellipsis in operand {place}has "
                        f"size {size} which does not broadcast with previously seen ellipsis with size {sizes[name]} for the respective dimension"
                    )
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand "
                    f"{place} which does not broadcast with previously seen size {sizes[name]}"
                )
            sizes[name] = max(sizes.get(name, 1), size) if size else 0
    steps = _Steps(len(shapes))
    terms = [
        _diagonal(steps, _Term(place, list(names), list(shape)))
        for place, (names, shape) in enumerate(zip(labels, shapes, strict=True))
    ]
    for first, second in _order(len(terms), path):
        a, b = terms[first], terms[second]
        for place in sorted((first, second), reverse=True):
            del terms[place]
        kept = set(output).union(*(term.names for term in terms))
        terms.append(_contract(steps, a, b, kept))
    result = steps.sum(terms[0], set(output))
    result = steps.permute(result, output, always=result.number < len(shapes))  # never an operand itself
    steps.shaped(result, F.expand, [sizes[name] for name in output])
    return tuple(steps.steps)


def _parse(equation: str, dims: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    _check_letters(equation)
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) < len(dims):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(parts) > len(dims):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    labels = [_labels(part, ndim, place) for place, (part, ndim) in enumerate(zip(parts, dims, strict=True))]
    hidden = max((sum(n.startswith(_ELLIPSIS) for n in names) for names in labels), default=0)
    dots = [f"{_ELLIPSIS}{i}" for i in range(hidden - 1, -1, -1)]
    if not arrow:
        counts: dict[str, int] = {}
        for names in labels:
            for name in names:
                if not name.startswith(_ELLIPSIS):
                    counts[name] = counts.get(name, 0) + 1
        return labels, dots + sorted(name for name, count in counts.items() if count == 1)
    output: list[str] = []
    before, ellipsis, after = right.partition("...")
    output += before
    if ellipsis:
        output += dots
    output += after
    known = {name for names in labels for name in names}
    for name in output:
        if output.count(name) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
        if name not in known:
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
    return labels, output


def _check_letters(equation: str) -> None:
    """RuntimeError for what is neither a letter nor three dots once for each operand, by the place in the equation."""
    arrow = equation.find("->")
    at = place = 0
    dotted = False
    while at < len(equation):
        letter = equation[at]
        in_result = 0 <= arrow < at
        if at == arrow:
            dotted = False
            at += 1
        elif letter == "." and in_result and (dotted or equation[at : at + 3] != "..."):
            which = "but an ellipsis (...) was already found" if dotted else "that is not part of any ellipsis (...)"
            raise RuntimeError(f"einsum(): found '.' for output {which}")
        elif letter == "." and (dotted or equation[at : at + 3] != "..."):
            which = "for which an ellipsis was already found" if dotted else "that is not part of any ellipsis"
            raise RuntimeError(f"einsum(): found '.' for operand {place} {which}")
        elif letter == ".":
            dotted = True
            at += 2
        elif letter == "," and not in_result:
            place += 1
            dotted = False
        elif letter != " " and not (letter.isascii() and letter.isalpha()):
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {at} in the equation string, subscripts must be in [a-zA-Z]"
            )
        at += 1


def _labels(part: str, ndim: int, place: int) -> list[str]:
    before, ellipsis, after = part.partition("...")
    written = [*before, *after]
    hidden = ndim - len(written)
    if hidden < 0 or (hidden and not ellipsis):
        which = "is more than" if ellipsis else "does not match"
        tail = "" if ellipsis else " and no ellipsis was given"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(written)}) {which} the number of dimensions ({ndim}) for "
            f"operand {place}{tail}"
        )
    return [*before, *[f"{_ELLIPSIS}{i}" for i in range(hidden - 1, -1, -1)], *after]


def _diagonal(steps: _Steps, term: _Term) -> _Term:
    """Repeated labels of one operand select its diagonal."""
    while len(set(term.names)) != len(term.names):
        names = term.names
        name = next(n for n in names if names.count(n) > 1)
        first = names.index(name)
        second = names.index(name, first + 1)
        term = steps.diagonal(term, first, second)
    return term


def _order(count: int, path: Sequence[int] | None) -> list[tuple[int, int]]:
    """Pairs of places; a result is appended at the end."""
    if path is not None:
        if len(path) != 2 * (count - 1):
            raise RuntimeError(
                f"einsum(): expected contraction path given in path parameter to have size {2 * (count - 1)}"
            )
        return [(path[2 * i], path[2 * i + 1]) for i in range(count - 1)]
    if count < 2:
        return []
    # left to right: the last result stands behind the operands that are left
    return [(0, 1)] + [(left - 1, 0) for left in range(count - 1, 1, -1)]


def _contract(steps: _Steps, a: _Term, b: _Term, kept: set[str]) -> _Term:
    """The product of two terms, summed over the labels that nobody needs any more."""
    x = steps.sum(a, kept | set(b.names))
    y = steps.sum(b, kept | set(x.names))
    # A label of size 1 on one side broadcasts: it is none of the contraction there.
    for name in [n for n in x.names if n in y.names and n not in kept]:
        if x.shape[x.names.index(name)] != y.shape[y.names.index(name)]:
            x = steps.sum(x, set(x.names) - {name})
            y = steps.sum(y, set(y.names) - {name})
    summed = [n for n in x.names if n in y.names and n not in kept]
    if summed:  # a label of size 1 on one side stays on the other alone
        for name in [n for n in x.names if n in y.names and n in kept]:
            if x.shape[x.names.index(name)] == 1:
                x = steps.squeeze(x, name)
            elif y.shape[y.names.index(name)] == 1:
                y = steps.squeeze(y, name)
    batch = [n for n in x.names if n in y.names and n in kept]
    free_x = [n for n in x.names if n not in y.names]
    free_y = [n for n in y.names if n not in x.names]
    count = len(batch)
    x = steps.permute(x, batch + free_x + summed)
    y = steps.permute(y, batch + summed + free_y)
    lead, rows, columns = x.shape[:count], x.shape[count : count + len(free_x)], y.shape[count + len(summed) :]
    names = batch + free_x + free_y
    if not summed:
        left = steps.shaped(x, F.reshape, [*x.shape, *[1] * len(free_y)])
        right = steps.shaped(y, F.reshape, [*y.shape[:count], *[1] * len(free_x), *columns] if free_x else y.shape)
        lead = [max(m, n) if min(m, n) else 0 for m, n in zip(lead, y.shape[:count], strict=True)]
        return steps.product(F.mul, left, right, names, [*lead, *rows, *columns])
    inner, batches = math.prod(x.shape[count + len(free_x) :]), math.prod(lead)
    left = steps.shaped(x, F.reshape, [batches, math.prod(rows), inner])
    right = steps.shaped(y, F.reshape, [batches, inner, math.prod(columns)])
    result = steps.product(F.bmm, left, right, names, [batches, math.prod(rows), math.prod(columns)])
    return steps.shaped(result, F.reshape, [*lead, *rows, *columns])
