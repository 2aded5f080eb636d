"""Version parsing, which torch keeps a copy of."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version, parse

__all__ = ["InvalidVersion", "Version", "parse"]
