"""The version of torch with which mindtorch_v2 is compatible, as an object that compares by release."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .version import __version__ as _version

__all__ = ["TorchVersion"]

# The grammar of PEP 440, without the rarer spellings of a post-release.
_VERSION = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_number>\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*)|-(?P<implicit_post>\d+))?"
    r"(?:[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_STAGES = {"alpha": 0, "a": 0, "beta": 1, "b": 1, "preview": 2, "pre": 2, "c": 2, "rc": 2}
_FIRST, _LAST = (-1,), (9,)  # before and after every stage


def _key(text: str) -> tuple[Any, ...] | None:
    """What orders versions: epoch, release, pre-release, post-release, development release, local part; None for other text."""
    found = _VERSION.fullmatch(text.strip().lower())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    post_text = found["post"] if found["post"] is not None else found["implicit_post"]
    post = -1 if post_text is None else int(post_text or 0)
    dev = None if found["dev"] is None else int(found["dev"] or 0)
    if found["pre"] is not None:
        pre: tuple[int, ...] = (_STAGES[found["pre"]], int(found["pre_number"] or 0))
    else:
        pre = _FIRST if dev is not None and post < 0 else _LAST
    local = [
        (1, int(part), "") if part.isdigit() else (0, 0, part)
        for part in re.split(r"[-_.]", found["local"] or "")
        if part
    ]
    return int(found["epoch"] or 0), release, pre, post, float("inf") if dev is None else dev, local


class TorchVersion(str):
    """A version string that compares with version strings, tuples of numbers and version objects.

    `TorchVersion("2.13.0+x") >= (2, 9)` holds. Text that is no version compares as text.
    """

    __slots__ = ()

    def _pair(self, other: Any) -> tuple[Any, Any]:
        """What to compare in place of `self` and `other`."""
        if isinstance(other, str):
            text = str(other)
        elif isinstance(other, Iterable):
            text = ".".join(str(part) for part in other)
        elif hasattr(other, "release"):  # a version object of the package `packaging`
            text = str(other)
        else:
            raise ValueError(f"Can't convert {other} into a version")
        mine, theirs = _key(str(self)), _key(text)
        return (str(self), text) if mine is None or theirs is None else (mine, theirs)

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
        if not isinstance(other, str | tuple | list) and not hasattr(other, "release"):
            return NotImplemented
        left, right = self._pair(other)
        return left == right

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__


__version__ = TorchVersion(_version)
