"""Parts of `torch.fx` that work without tracing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_flatten_specs: dict[type, tuple[Callable[..., Any], Callable[..., bool] | None]] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that returns its function or class."""
    return lambda inner: inner


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply `fn` to every leaf of nested tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(value, fn) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply `fn` to every graph node in `a`."""
    from torch.fx.node import Node

    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: Callable[..., Any],
    flatten_fn_exact_match_spec: Callable[..., bool] | None = None,
) -> None:
    """Keep how a container is flattened by a given specification."""
    _flatten_specs[cls] = flatten_fn_spec, flatten_fn_exact_match_spec


def _dict_flatten_spec(d: dict[Any, Any], spec: Any) -> list[Any]:
    """The values of `d` in the order of the specification."""
    return [d[key] for key in spec.context]


def _list_flatten_spec(d: list[Any], spec: Any) -> list[Any]:
    """The first items of `d`, as many as the specification has."""
    return [d[i] for i in range(spec.num_children)]


def _tuple_flatten_spec(d: tuple[Any, ...], spec: Any) -> list[Any]:
    """The first items of `d`, as many as the specification has."""
    return [d[i] for i in range(spec.num_children)]
