"""Control flow as functions: what compilers trace runs as plain Python here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as mt
from mindtorch_v2.utils import _pytree as pytree


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """`true_fn(*operands)` if `pred`, otherwise `false_fn(*operands)`.

    Raises:
        RuntimeError: if `pred` is a tensor of several elements.
    """
    if isinstance(pred, mt.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """`carried = body_fn(*carried)` as long as `cond_fn(*carried)`; returns what is carried.

    Raises:
        RuntimeError: if the condition is a tensor of several elements, or the body changes how many values are carried.
    """
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"carried_inputs must be a tuple or list, but got {type(carried_inputs)}")
    carried = tuple(carried_inputs)
    while True:
        goes_on = cond_fn(*carried)
        if isinstance(goes_on, mt.Tensor) and goes_on.numel() != 1:
            raise RuntimeError(
                f"cond_fn must return a boolean scalar tensor or a boolean but got shape {goes_on.shape}"
            )
        if not goes_on:
            return carried
        new = body_fn(*carried)
        new = tuple(new) if isinstance(new, tuple | list) else (new,)
        if len(new) != len(carried):
            raise RuntimeError(
                f"body_fn should return the same number of elements as carried_inputs: {len(carried)}, not {len(new)}"
            )
        carried = new


def _slices(xs: Any, dim: int) -> tuple[list[Any], Any]:
    """The trees of each index along `dim`, of tensors of one length."""
    leaves, spec = pytree.tree_flatten(xs)
    lengths = {leaf.shape[dim] for leaf in leaves}
    if len(lengths) != 1:
        raise RuntimeError(f"tensors must have one length along dimension {dim}, not {sorted(lengths)}")
    return [pytree.tree_unflatten([leaf.select(dim, i) for leaf in leaves], spec) for i in range(lengths.pop())], spec


def _stacked(rows: list[Any], dim: int) -> Any:
    flat = [pytree.tree_flatten(row) for row in rows]
    return pytree.tree_unflatten([mt.stack(column, dim) for column in zip(*(row[0] for row in flat))], flat[0][1])


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` of each slice along the first dimension, stacked."""
    rows, _ = _slices(xs, 0)
    return _stacked([f(row, *args) for row in rows], 0)


def scan(combine_fn: Callable[..., Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """`carry, y = combine_fn(carry, x)` of each slice of `xs` along `dim` in turn: the last carry, and the ys stacked along dimension 0."""
    rows, _ = _slices(xs, dim)
    carry, results = init, []
    for row in reversed(rows) if reverse else rows:
        carry, result = combine_fn(carry, row)
        results.append(result)
    if reverse:
        results.reverse()
    return carry, _stacked(results, 0)


def associative_scan(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """The slices along `dim` combined with all before them (all after them with `reverse`), stacked along `dim`.

    Raises:
        ValueError: for another `combine_mode` than "pointwise" and "generic".
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    rows, _ = _slices(xs, dim)
    if reverse:
        rows.reverse()
    results = rows[:1]
    for row in rows[1:]:
        results.append(combine_fn(results[-1], row))
    if reverse:
        results.reverse()
    return _stacked(results, dim)
