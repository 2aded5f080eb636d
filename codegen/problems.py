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
    is_late: bool = False
    """Whether there are others that may be its cause, and come first."""

    @property
    def is_of_a_name(self) -> bool:
        """Whether it says that there is no such operator, which another entry may have been meant to be."""
        return ": unknown name '" in self.message

    def __str__(self) -> str:
        parts = (str(self.location), _shortened(self.subject), _shortened(self.message))
        return ": ".join(part for part in parts if part)


LONGEST = 400
"""Characters of a sentence; one that quotes a whole value is cut in the middle."""


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


def arranged(problems: Iterable[Problem]) -> list[Problem]:
    """Each once: what may be the cause of others first, then by place."""
    return sorted(set(problems), key=lambda problem: (problem.is_late, problem))


def did_you_mean(name: str, *known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a known name is close, else nothing. Of several groups of names the first with a close one is meant."""
    for group in known:
        close = difflib.get_close_matches(name, sorted(set(group)), 1)
        if close:
            return f"; did you mean '{close[0]}'?"
    return ""
