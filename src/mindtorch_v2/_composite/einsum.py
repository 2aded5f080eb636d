"""einsum: pairs of operands are contracted with one batched product each.

Operands are brought to a common order of labels, label by label: those of both that stay (batch), those of one alone (free) and those that
are summed. A label that occurs in one operand only and not in the result is summed before the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor

_ELLIPSIS = "."
"""Labels of an ellipsis are written '.0', '.1', ... from the last one on."""


def einsum(equation: str, tensors: Sequence[Tensor], path: Sequence[int] | None = None) -> Tensor:
    """Sums of products of the operands in Einstein's notation, from left to right or along `path` (pairs of operand numbers).

    RuntimeError when the equation does not fit the operands.
    """
    operands = list(tensors)
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    labels, output = _parse(equation, operands)
    sizes: dict[str, int] = {}
    for place, (names, operand) in enumerate(zip(labels, operands, strict=True)):
        for name, size in zip(names, operand.shape, strict=True):
            if sizes.get(name, 1) != 1 and size not in (1, sizes[name]):
                raise RuntimeError(
                    f"einsum(): subscript {name if not name.startswith(_ELLIPSIS) else '...'} has size {size} for operand "
                    f"{place} which does not broadcast with previously seen size {sizes[name]}"
                )
            sizes[name] = max(sizes.get(name, 1), size) if size else 0
    terms = [_diagonal(list(names), operand) for names, operand in zip(labels, operands, strict=True)]
    for first, second in _order(len(terms), path):
        a, b = terms[first], terms[second]
        for place in sorted((first, second), reverse=True):
            del terms[place]
        kept = set(output).union(*(names for names, _ in terms)) if terms else set(output)
        terms.append(_contract(a, b, kept))
    names, result = terms[0]
    names, result = _reduced(names, result, set(output))
    result = F.permute(result, [names.index(name) for name in output]) if names != output else result
    shape = [sizes[name] for name in output]
    return F.expand(result, shape) if list(result.shape) != shape else result


def _parse(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str]]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if len(parts) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    labels = [
        _labels(part, operand.dim(), place) for place, (part, operand) in enumerate(zip(parts, operands, strict=True))
    ]
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
    for name in before:
        output.append(_letter(name, "output"))
    if ellipsis:
        output += dots
    for name in after:
        output.append(_letter(name, "output"))
    known = {name for names in labels for name in names}
    for name in output:
        if output.count(name) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
        if name not in known:
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
    return labels, output


def _letter(name: str, what: str) -> str:
    if not (name.isascii() and name.isalpha()):
        raise RuntimeError(
            f"einsum(): invalid subscript given for {what} in the equation string, subscripts must be in [a-zA-Z]"
        )
    return name


def _labels(part: str, ndim: int, place: int) -> list[str]:
    before, ellipsis, after = part.partition("...")
    if "." in before or "." in after:
        raise RuntimeError(f"einsum(): found '.' for operand {place} that is not part of any ellipsis")
    written = [*before, *after]
    for name in written:
        _letter(name, f"operand {place}")
    hidden = ndim - len(written)
    if hidden < 0 or (hidden and not ellipsis):
        which = "is more than" if ellipsis else "does not match"
        tail = "" if ellipsis else " and no ellipsis was given"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(written)}) {which} the number of dimensions ({ndim}) for "
            f"operand {place}{tail}"
        )
    return [*before, *[f"{_ELLIPSIS}{i}" for i in range(hidden - 1, -1, -1)], *after]


def _diagonal(names: list[str], operand: Tensor) -> tuple[list[str], Tensor]:
    """Repeated labels of one operand select its diagonal."""
    while len(set(names)) != len(names):
        name = next(n for n in names if names.count(n) > 1)
        first = names.index(name)
        second = names.index(name, first + 1)
        if operand.shape[first] != operand.shape[second]:
            raise RuntimeError(
                f"einsum(): subscript {name} is repeated for operand but the sizes don't match, "
                f"{operand.shape[second]} != {operand.shape[first]}"
            )
        operand = F.diagonal(operand, 0, first, second)
        names = [n for d, n in enumerate(names) if d not in (first, second)] + [name]
    return names, operand


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


def _reduced(names: list[str], operand: Tensor, kept: set[str]) -> tuple[list[str], Tensor]:
    summed = [d for d, name in enumerate(names) if name not in kept]
    if summed:
        operand = F.sum(operand, summed)
        names = [name for name in names if name in kept]
    return names, operand


def _contract(a: tuple[list[str], Tensor], b: tuple[list[str], Tensor], kept: set[str]) -> tuple[list[str], Tensor]:
    """The product of two terms, summed over the labels that nobody needs any more."""
    first, x = _reduced(*a, kept | set(b[0]))
    second, y = _reduced(*b, kept | set(first))
    # A label of size 1 on one side broadcasts: it is none of the contraction there.
    for name in [n for n in first if n in second and n not in kept]:
        m, n = x.shape[first.index(name)], y.shape[second.index(name)]
        if m != n:
            if m == 1:
                second, y = _reduced(second, y, set(second) - {name})
                first, x = _reduced(first, x, set(first) - {name})
            else:
                first, x = _reduced(first, x, set(first) - {name})
                second, y = _reduced(second, y, set(second) - {name})
    batch = [n for n in first if n in second and n in kept]
    summed = [n for n in first if n in second and n not in kept]
    free_a = [n for n in first if n not in second]
    free_b = [n for n in second if n not in first]
    if not summed:
        left = _arranged(x, first, batch + free_a, len(free_b))
        right = _placed(y, second, batch, len(free_a), free_b)
        return batch + free_a + free_b, F.mul(left, right)
    x = F.permute(x, [first.index(n) for n in batch + free_a + summed])
    y = F.permute(y, [second.index(n) for n in batch + summed + free_b])
    count = len(batch)
    lead = [max(m, n) if min(m, n) else 0 for m, n in zip(x.shape[:count], y.shape[:count], strict=True)]
    rows = list(x.shape[count : count + len(free_a)])
    columns = list(y.shape[count + len(summed) :])
    inner = math.prod(x.shape[count + len(free_a) :])
    left = F.reshape(_spread(x, lead), [math.prod(lead), math.prod(rows), inner])
    right = F.reshape(_spread(y, lead), [math.prod(lead), inner, math.prod(columns)])
    return batch + free_a + free_b, F.reshape(F.bmm(left, right), [*lead, *rows, *columns])


def _spread(x: Tensor, lead: list[int]) -> Tensor:
    return x if list(x.shape[: len(lead)]) == lead else F.expand(x, [*lead, *x.shape[len(lead) :]])


def _arranged(x: Tensor, names: list[str], order: list[str], trailing: int) -> Tensor:
    x = F.permute(x, [names.index(n) for n in order]) if names != order else x
    return F.reshape(x, [*x.shape, *[1] * trailing]) if trailing else x


def _placed(y: Tensor, names: list[str], batch: list[str], gap: int, free: list[str]) -> Tensor:
    y = F.permute(y, [names.index(n) for n in batch + free]) if names != batch + free else y
    if not gap:
        return y
    return F.reshape(y, [*y.shape[: len(batch)], *[1] * gap, *y.shape[len(batch) :]])
