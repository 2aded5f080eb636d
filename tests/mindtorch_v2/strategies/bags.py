"""Bags of embeddings, segments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .cases import strategy
from .operands import Operand, contiguous, draw_index, draw_operand, plain
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


@strategy("embedding_bag", "bags.embedding_bag")
def embedding_bag(pick: Picker, row: Row) -> dict[str, Any]:
    """A table, indices into it, and where bags begin."""
    # Sums without a gradient have no sizes of bags; PyTorch gives uninitialised memory for them.
    dtype, mode = _floats(pick), pick.integer(0 if row.name == "_embedding_bag" else 1, 2)
    indices, offsets, bags = _bags(pick)
    factors = plain(draw_operand(pick, indices.shape, dtype)) if mode == 0 and pick.boolean() else None
    last = pick.boolean()
    if last:
        offsets = replace(offsets, values=(*offsets.values, indices.shape[0]), shape=(bags + 1,))
    wrong = pick.wrong()
    arguments: dict[str, Any] = {
        "weight": plain(draw_operand(pick, (_ROWS,) if wrong else (_ROWS, pick.integer(1, 3)), dtype, "distinct")),
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
    factors = plain(draw_operand(pick, (count,), dtype)) if mode == 0 and pick.boolean() else None
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


def _segments(pick: Picker, dtype: str) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Data, the lengths or offsets of segments; and the shape of the result."""
    lead = (2,) if pick.boolean() else ()
    parts = pick.integer(1, 3)
    rows = [[pick.integer(1 if pick.gradient else 0, 2) for _ in range(parts)] for _ in range(2 if lead else 1)]
    size = max(sum(row) for row in rows)
    for row in rows:
        row[-1] += size - sum(row)
    rest = (2,) if pick.boolean() else ()
    by_offset = pick.boolean()
    flat = [n for row in rows for n in row]
    if by_offset:
        flat = [sum(row[:k]) for row in rows for k in range(parts + 1)]
    shape = (*lead, parts + by_offset)
    given = replace(draw_index(pick, shape, 3), values=tuple(flat), shape=shape, stride=contiguous(shape), offset=0)
    arguments = {
        "data": draw_operand(pick, (*lead, size, *rest), dtype, "distinct"),
        "lengths": None if by_offset else given,
        "offsets": given if by_offset else None,
        "axis": len(lead),
    }
    return arguments, (*lead, parts, *rest)


@strategy("segment_reduce")
def segment_reduce(pick: Picker, row: Row) -> dict[str, Any]:
    """Segments of some lengths, perhaps none."""
    arguments, _ = _segments(pick, "int64" if pick.wrong() else _floats(pick))
    reduce = "median" if pick.wrong() else pick.choice(("sum", "mean", "max", "min", "prod"))
    initial = pick.choice((None, 1)) if not pick.gradient else None
    return {**arguments, "reduce": reduce, "indices": None, "unsafe": False, "initial": initial}


@strategy("segment_reduce_backward")
def segment_reduce_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of segments' sums or means, which do not read the result."""
    dtype = _floats(pick)
    arguments, shape = _segments(pick, dtype)
    return {
        **arguments,
        "grad": draw_operand(pick, shape, dtype),
        "output": draw_operand(pick, shape, dtype),
        "reduce": pick.choice(("sum", "mean")),
        "initial": None,
    }
