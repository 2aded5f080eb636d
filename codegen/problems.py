"""What is wrong with a schema: one line for each problem, with its place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from .model import Location


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake of an author. `subject` is the operator, or empty when the entry has no readable name."""

    location: Location
    subject: str
    message: str

    def __str__(self) -> str:
        return (
            f"{self.location}: {self.subject}: {self.message}" if self.subject else f"{self.location}: {self.message}"
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a known name is close, else nothing."""
    close = difflib.get_close_matches(name, sorted(set(known)), 1)
    return f"; did you mean '{close[0]}'?" if close else ""
