"""The error of a checkpoint that could not be saved or loaded."""

from __future__ import annotations

import traceback
from typing import Any

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """What went wrong, by rank: `failures` has (exception, traceback) of each."""

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Any]:
        """By rank, the exception and its traceback."""
        return self._failures

    def __str__(self) -> str:
        text = f"{type(self).__name__} ranks:{self._failures.keys()}\n"
        for rank, (error, where) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(where)) if where else ""
            text += "".join(traceback.format_exception_only(type(error), error))
        return text
