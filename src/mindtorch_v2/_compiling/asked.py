"""Whether a program is being exported, for programs that ask."""

from __future__ import annotations

from .._state import TLS


def is_exporting() -> bool:
    """Whether `torch.export.export` runs the program."""
    return TLS.exporting is not None


def is_compiling() -> bool:
    """Whether the program runs so that a graph of it is made, which only an export does."""
    return is_exporting()
