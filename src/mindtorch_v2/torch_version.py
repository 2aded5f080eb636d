"""The version of torch with which mindtorch_v2 is compatible, as an object that compares by release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .version import __version__ as _version

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version string that compares with versions, version strings and tuples of numbers.

    `TorchVersion("2.13.0+x") >= (2, 9)` holds. A string that is no version compares as a string.
    """

    __slots__ = ()

    def _pair(self, other: Any) -> tuple[Any, Any]:
        """What to compare in place of `self` and `other`."""
        from packaging.version import InvalidVersion, Version  # whoever compares versions has it; the library itself does not

        try:
            if isinstance(other, Version):
                return Version(str(self)), other
            if isinstance(other, str):
                return Version(str(self)), Version(str(other))
            if isinstance(other, Iterable):
                return Version(str(self)), Version(".".join(str(part) for part in other))
        except InvalidVersion:
            return str(self), str(other)
        raise ValueError(f"Can't convert {other} into a version")

    def __lt__(self, other: Any) -> bool:
        left, right = self._pair(other)
        return left < right

    def __le__(self, other: Any) -> bool:
        left, right = self._pair(other)
        return left <= right

    def __gt__(self, other: Any) -> bool:
        left, right = self._pair(other)
        return left > right

    def __ge__(self, other: Any) -> bool:
        left, right = self._pair(other)
        return left >= right

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (str, tuple, list)) and type(other).__name__ != "Version":
            return NotImplemented
        left, right = self._pair(other)
        return left == right

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__


__version__ = TorchVersion(_version)
