"""Nested state dicts as flat ones, by names, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import mindtorch_v2 as torch

Path = tuple[Any, ...]


def _is_leaf(value: Any) -> bool:
    """Dicts are taken apart, and lists that have tensors or dicts somewhere."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return all(_is_leaf(item) and not isinstance(item, torch.Tensor) for item in value)


def _walk(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk((*path, str(key)), item)
    elif _is_leaf(value):
        yield path, value
    else:
        for number, item in enumerate(value):
            yield from _walk((*path, number), item)


def flatten_state_dict(state_dict: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """(values by names with dots, keys by name). ValueError for two of one name."""
    flat: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for path, value in _walk((), dict(state_dict)):
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], paths[name] = value, path
    return flat, paths


def unflatten_state_dict(flat: Mapping[str, Any], paths: Mapping[str, Path]) -> dict[str, Any]:
    """The nested one. RuntimeError for paths of no nested dict: a checkpoint says them."""
    made: dict[str, Any] = {}
    gaps = _Gaps(_FREE_GAPS + 8 * len(flat))
    for name, value in flat.items():
        path = paths.get(name) if isinstance(paths, Mapping) else None
        if not isinstance(path, (tuple, list)) or not path or not all(type(key) in (str, int) for key in path):
            raise RuntimeError("the checkpoint does not say where its values belong")
        try:
            put(made, tuple(path), value, gaps)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise RuntimeError("the checkpoint says of a place that it is a list, and that it is a dict") from error
    return made


_FREE_GAPS = 1 << 16


class _Gaps:
    """How many items that no path names lists may get. RuntimeError beyond."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise RuntimeError("the lists of the checkpoint are far longer than it has values")


def _reach(items: list, key: int, gaps: _Gaps | None) -> None:
    """Make a list so long that it has an item."""
    missing = key + 1 - len(items)
    if missing > 0:
        if gaps is not None:
            gaps.spend(missing - 1)
        items.extend([None] * missing)


def put(root: Any, path: Path, value: Any, gaps: _Gaps | None = None) -> None:
    """Set what is at the end of keys; containers on the way are made."""
    for key, following in zip(path[:-1], path[1:]):
        if isinstance(key, int):
            _reach(root, key, gaps)
            if root[key] is None:
                root[key] = [] if isinstance(following, int) else {}
            root = root[key]
        else:
            found = next((own for own in root if str(own) == key), key)
            root = root.setdefault(found, [] if isinstance(following, int) else {})
    last = path[-1]
    if isinstance(last, int):
        _reach(root, last, gaps)
        root[last] = value
    else:
        root[next((own for own in root if str(own) == last), last)] = value
