"""Integers that follow from the sizes of inputs: `3*s0 + 1`.

Note [Sizes]
A run makes numbers of sizes, and a number does not say where it comes from. So a program with dynamic dimensions runs at several sizes. Its steps must be the same, but for
integers: each that differs has to be one expression of the sizes at all of them (`fitted`); anything else is refused. There are more runs than an expression has numbers to
choose, and their sizes have little in common.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any


class Size:
    """`(scale * symbol * ... + ... + plus) // divisor`. terms: pairs of a factor and names of symbols."""

    __slots__ = ("divisor", "plus", "terms")

    def __init__(self, terms: tuple[tuple[int, tuple[str, ...]], ...], plus: int = 0, divisor: int = 1) -> None:
        self.terms, self.plus, self.divisor = terms, plus, divisor

    def at(self, sizes: dict[str, int]) -> int:
        """The number where the symbols have these values."""
        total = self.plus
        for scale, names in self.terms:
            for name in names:
                scale *= sizes[name]
            total += scale
        return total // self.divisor

    def made_of(self, symbols: Callable[[str], Any], call: Callable[[Any, Any, Any], Any]) -> Any:
        """The number as operators on what `symbols` gives for names; `call(function, a, b)` makes each."""
        total: Any = None
        for scale, names in self.terms:
            product = symbols(names[0])
            for name in names[1:]:
                product = call(operator.mul, product, symbols(name))
            if scale != 1:
                product = call(operator.mul, product, scale)
            total = product if total is None else call(operator.add, total, product)
        if self.plus:
            total = call(operator.add, total, self.plus)
        return total if self.divisor == 1 else call(operator.floordiv, total, self.divisor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        parts = ["*".join([*([] if scale == 1 else [str(scale)]), *names]) for scale, names in self.terms]
        if self.plus:
            parts.append(str(self.plus))
        text = " + ".join(parts).replace("+ -", "- ")
        if self.divisor == 1:
            return text
        return f"(({text})//{self.divisor})" if len(parts) > 1 or "*" in text else f"({text}//{self.divisor})"

    __repr__ = __str__


def symbol(name: str) -> Size:
    """A size itself."""
    return Size(((1, (name,)),))


class ValueRanges:
    """The least and the greatest value of a symbol; None for no greatest one."""

    def __init__(self, lower: int, upper: int | None) -> None:
        self.lower, self.upper = lower, upper

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueRanges) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper is None else self.upper}]"


def fitted(values: Sequence[int], sizes: Sequence[dict[str, int]]) -> Size | None:
    """The expression that has these values at these sizes; None where there is none of the kinds that are tried."""
    names = list(sizes[0])
    if len(set(values)) == 1:
        return None
    for count in (1, 2, 3):
        for factors in itertools.combinations_with_replacement(names, count):
            found = _line(values, [Size(((1, factors),)).at(one) for one in sizes], factors)
            if found is not None:
                return found
    for first, second in itertools.permutations(names, 2):
        for sign in (1, -1):
            rest = {value - one[first] - sign * one[second] for value, one in zip(values, sizes)}
            if len(rest) == 1:
                return Size(((1, (first,)), (sign, (second,))), rest.pop())
    for name in names:
        found = _quotient(values, [one[name] for one in sizes], name)
        if found is not None:
            return found
    return None


def _line(values: Sequence[int], products: Sequence[int], factors: tuple[str, ...]) -> Size | None:
    """`scale * product + plus`, where that has all the values."""
    other = next((i for i, one in enumerate(products) if one != products[0]), None)
    if other is None:
        return None
    scale = Fraction(values[other] - values[0], products[other] - products[0])
    if scale.denominator != 1 or not scale:
        return None
    plus = values[0] - int(scale) * products[0]
    if any(int(scale) * product + plus != value for value, product in zip(values, products)):
        return None
    return Size(((int(scale), factors),), plus)


def _quotient(values: Sequence[int], numbers: Sequence[int], name: str) -> Size | None:
    """`(number + plus) // divisor`, where that has all the values."""
    for divisor in range(2, 65):
        for plus in range(divisor):
            if all((number + plus) // divisor == value for value, number in zip(values, numbers)):
                return Size(((1, (name,)),), plus, divisor)
    return None
