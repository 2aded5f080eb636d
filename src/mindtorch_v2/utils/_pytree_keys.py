"""Keys that lead from a tree to a child: an index, a mapping's key or an attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


class KeyEntry(Protocol):
    """One step on the way to a leaf."""

    def __hash__(self) -> int: ...

    def __eq__(self, other: object) -> bool: ...

    def __str__(self) -> str: ...

    def get(self, parent: Any) -> Any:
        """The child of `parent` to which the key leads."""


KeyPath = tuple[KeyEntry, ...]


@dataclass(frozen=True)
class SequenceKey:
    """The place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item at the place."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The key of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The value of the key."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The value of the attribute."""
        return getattr(obj, self.name)


def keystr(kp: KeyPath) -> str:
    """A path as it would be written in Python: `['a'][0].x`."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to, beginning at `obj`."""
    for key in kp:
        obj = key.get(obj)
    return obj
