"""Numbers as text."""

from __future__ import annotations


def count(number: float) -> str:
    """A number with a decimal prefix: `174.8 G`."""
    for prefix in ("", "K", "M", "G", "T", "P"):
        if number < 1000 or prefix == "P":
            return f"{number:.0f} " if not prefix else f"{number:.1f} {prefix}"
        number /= 1000
    raise AssertionError("unreachable")


def size(nbytes: float) -> str:
    """Bytes with a binary prefix: `417.6 MiB`."""
    for prefix in ("B", "KiB", "MiB", "GiB", "TiB"):
        if nbytes < 1024 or prefix == "TiB":
            return f"{nbytes:.0f} {prefix}" if prefix == "B" else f"{nbytes:.1f} {prefix}"
        nbytes /= 1024
    raise AssertionError("unreachable")
