"""The table of what operators are made of, which this library has in its operators."""

from __future__ import annotations

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict):
    """What `default_decompositions()` gives: an empty table that stands for all that the library composes."""

    def __copy__(self) -> CustomDecompTable:
        return CustomDecompTable(self)

    def materialize(self) -> dict:
        """The entries."""
        return dict(self)
