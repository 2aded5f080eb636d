"""How containers are flattened by a given specification, for `torch.fx._pytree`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_flatten_specs: dict[type, tuple[Callable[..., Any], Callable[..., bool] | None]] = {}


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
