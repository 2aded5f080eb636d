"""Where the choices of a case come from: Hypothesis, which shrinks them, or a seed.

Every strategy is a function of a `Picker`; all it may ask for are integers, and what follows from them. Small numbers come first in every
choice, since Hypothesis shrinks towards them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Picker:
    """Choices for one case.

    valid: never draw wrong arguments. gradient: draw float64 (or complex128) values away from kinks and ties, and small shapes.
    variety: once in how many cases one argument is made unusual (see `variation`); 0 for never.
    """

    def __init__(
        self, integer: Callable[[int, int], int], *, valid: bool = False, gradient: bool = False, variety: int = 0
    ):
        self.integer = integer
        self.valid = valid or gradient
        self.gradient = gradient
        self.variety = variety
        self.special = False  # whether tensors may hold nan and infinities: not where sums of products make of them what their order wants
        self.plain = False  # whether tensors are contiguous: for operators below the public ones, which take nothing else for granted
        self.spoilt = False

    def choice(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.integer(0, len(options) - 1)]

    def boolean(self) -> bool:
        """False is the simplest."""
        return self.integer(0, 1) == 1

    def chance(self, n: int) -> bool:
        """True once in `n`."""
        return self.integer(0, n - 1) == n - 1

    def wrong(self, n: int = 12) -> bool:
        """Whether to make an argument wrong here, once in `n`; only one of a case, since which of two errors comes first says little."""
        if self.valid or self.spoilt:
            return False
        self.spoilt = self.chance(n)
        return self.spoilt

    def subset(self, options: Sequence[T]) -> list[T]:
        """Some of the options, in order."""
        return [option for option in options if self.boolean()]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """The options in another order."""
        left = list(options)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in options]


def seeded(seed: int | str, **modes: Any) -> Picker:
    """A picker whose choices are those of a seed: the same everywhere and always."""
    return Picker(random.Random(seed).randint, **modes)
