"""Failing cases made small: the integers that a case was drawn from, fewer and lower, as long as the case fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

Integer = Callable[[int, int], int]
Fails = Callable[[list[int]], bool]


def recorded(integer: Integer) -> tuple[Integer, list[int]]:
    """A source of integers that notes how far above its lower bound each one is, and its notes."""
    notes: list[int] = []

    def noting(low: int, high: int) -> int:
        found = integer(low, high)
        notes.append(found - low)
        return found

    return noting, notes


def replayed(notes: list[int]) -> Integer:
    """A source that gives what is noted, as far as the bounds allow it; past the end, the lower bounds."""
    left = iter(notes)
    return lambda low, high: low + min(next(left, 0), high - low)


def shrunk(notes: list[int], fails: Fails, patience: int = 1000) -> list[int]:
    """Notes with which the case still fails: where no single step makes them smaller, or those after `patience` tries."""
    tried = 0
    better = True
    while better:
        better = False
        for smaller in _smaller(notes):
            if tried >= patience:
                return notes
            tried += 1
            if fails(smaller):
                notes, better = smaller, True
                break
    return notes


def _smaller(notes: list[int]) -> Iterator[list[int]]:
    """Shorter notes, the shortest first, and lower ones."""
    for length in (16, 8, 4, 2, 1):
        for start in range(0, len(notes) - length + 1, max(length // 2, 1)):
            yield notes[:start] + notes[start + length :]
    for place, note in enumerate(notes):
        for lower in sorted({0, note // 2, note - 1} - {note, -1}):
            yield [*notes[:place], lower, *notes[place + 1 :]]
