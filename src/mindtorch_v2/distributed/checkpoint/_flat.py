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
    """The nested one."""
    made: dict[str, Any] = {}
    for name, value in flat.items():
        put(made, paths[name], value)
    return made


def put(root: Any, path: Path, value: Any) -> None:
    """Set what is at the end of keys; containers on the way are made."""
    for key, following in zip(path[:-1], path[1:]):
        if isinstance(key, int):
            while len(root) <= key:
                root.append(None)
            if root[key] is None:
                root[key] = [] if isinstance(following, int) else {}
            root = root[key]
        else:
            found = next((own for own in root if str(own) == key), key)
            root = root.setdefault(found, [] if isinstance(following, int) else {})
    last = path[-1]
    if isinstance(last, int):
        while len(root) <= last:
            root.append(None)
        root[last] = value
    else:
        root[next((own for own in root if str(own) == last), last)] = value
