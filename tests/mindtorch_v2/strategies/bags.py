"""Bags of embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .cases import strategy
from .operands import Operand, contiguous, draw_index, draw_operand
from .picking import Picker
from .table import Row

_ROWS = 4


def _floats(pick: Picker) -> str:
    return "float64" if pick.gradient else pick.choice(("float32", "float64", "float32", "bfloat16"))


def _bags(pick: Picker) -> tuple[Operand, Operand, int]:
    """Indices, where bags begin, and how many bags there are."""
    count, bags = pick.integer(1, 5), pick.integer(1, 3)
    starts = [0, *sorted(pick.integer(0, count) for _ in range(bags - 1))]
    offsets = draw_index(pick, (bags,), count + 1)
    offsets = replace(offsets, values=tuple(starts), shape=(bags,), stride=(1,), offset=0)
    indices = draw_index(pick, (count,), _ROWS)
    values = tuple(pick.integer(0, _ROWS - 1) for _ in range(count))
    # PyTorch's internal operators take contiguous ones for granted.
    return replace(indices, values=values, shape=(count,), stride=(1,), offset=0), offsets, bags


def _plain(operand: Operand) -> Operand:
    return replace(operand, values=operand.values[: operand.numel], stride=contiguous(operand.shape), offset=0)


@strategy("embedding_bag", "bags.embedding_bag")
def embedding_bag(pick: Picker, row: Row) -> dict[str, Any]:
    """A table, indices into it, and where bags begin."""
    # Sums without a gradient have no sizes of bags; PyTorch gives uninitialised memory for them.
    dtype, mode = _floats(pick), pick.integer(0 if row.name == "_embedding_bag" else 1, 2)
    indices, offsets, bags = _bags(pick)
    factors = _plain(draw_operand(pick, indices.shape, dtype)) if mode == 0 and pick.boolean() else None
    last = pick.boolean()
    if last:
        offsets = replace(offsets, values=(*offsets.values, indices.shape[0]), shape=(bags + 1,))
    wrong = pick.wrong()
    arguments: dict[str, Any] = {
        "weight": _plain(draw_operand(pick, (_ROWS,) if wrong else (_ROWS, pick.integer(1, 3)), dtype, "distinct")),
        "indices": indices,
        "offsets": offsets,
        "scale_grad_by_freq": False,
        "mode": mode,
        "sparse": False,
        "per_sample_weights": factors,
        "include_last_offset": last,
        # The row of padding gets no gradient, which finite differences do not know.
        "padding_idx": -1 if pick.gradient else pick.choice((-1, 1)),
    }
    return {name: value for name, value in arguments.items() if row.parameter(name) is not None}


@strategy("embedding_bag_backward", "bags.embedding_bag_backward", "bags.embedding_bag_per_sample_weights_backward")
def embedding_bag_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of bags, and what the forward operator said of them."""
    dtype, mode = _floats(pick), pick.integer(0, 2)
    by_factor = row.parameter("weight") is not None
    if by_factor:
        mode = 0
    indices, offsets, bags = _bags(pick)
    count, starts, width = indices.shape[0], offsets.values, pick.integer(1, 2)
    owner = [sum(start <= place for start in starts) - 1 for place in range(count)]
    sizes = [owner.count(bag) for bag in range(bags)]
    kept = replace(indices, values=tuple(owner), shape=(count,), stride=(1,), offset=0)
    of_bags = replace(offsets, values=tuple(sizes))
    factors = _plain(draw_operand(pick, (count,), dtype)) if mode == 0 and pick.boolean() else None
    maxima = draw_index(pick, (bags, width) if mode == 2 else (bags,), _ROWS)
    arguments: dict[str, Any] = {
        row.parameters[0].name: draw_operand(pick, (bags, width), dtype),
        "weight": draw_operand(pick, (_ROWS, width), dtype),
        "indices": indices,
        "offsets": offsets,
        "offset2bag": kept,
        "bag_size": of_bags,
        "maximum_indices": maxima,
        "num_weights": _ROWS,
        "scale_grad_by_freq": False,
        "mode": mode,
        "sparse": False,
        "per_sample_weights": factors,
        "padding_idx": -1,
    }
    return {name: value for name, value in arguments.items() if row.parameter(name) is not None}
