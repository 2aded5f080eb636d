"""Operators that take indices or masks. Indices are always valid: whether they are depends on data, which meta has not."""

from __future__ import annotations

from typing import Any

from .cases import strategy
from .generic import complete, draw_dim
from .operands import Operand, broadcast, draw_dtype, draw_index, draw_operand, draw_shape
from .picking import Picker
from .table import Row


def _size(shape: tuple[int, ...], dim: int) -> int:
    if not shape:
        return 1
    return shape[dim] if -len(shape) <= dim < len(shape) else 1


def _shape(pick: Picker, low: int = 1, high: int = 3) -> tuple[int, ...]:
    """A shape without empty dimensions, so that indices exist."""
    return tuple(max(n, 1) for n in draw_shape(pick, low, high))


def index_dtype(pick: Picker, options: tuple[str, ...] = ("int64",)) -> str:
    """The dtype of an index; rarely one that cannot index."""
    if pick.valid:
        return options[0]
    return pick.choice(("float32", "uint8", "int16")) if pick.wrong(8) else pick.choice(options)


@strategy("index", "index_put", "indexing.unsafe_index_put")
def index(pick: Picker, row: Row) -> dict[str, Any]:
    """Indices per dimension: tensors of broadcasting shapes, or None; rarely too many."""
    shape = _shape(pick)
    dtype = draw_dtype(pick)
    common = draw_shape(pick, 0, 2)
    indices: list[Any] = []
    for dim in range(pick.integer(1, len(shape))):
        if pick.chance(4):
            indices.append(None)
        else:
            own = broadcast(pick, common) if indices else common
            indices.append(draw_index(pick, own, shape[dim], pick.choice(("int64", "int64", "int32")), negative=True))
    if all(i is None for i in indices):
        indices[-1] = draw_index(pick, common, shape[len(indices) - 1])
    if pick.wrong(12):
        indices = [*indices, *[draw_index(pick, (2,), 1)] * (len(shape) + 1 - len(indices))]
    arguments: dict[str, Any] = {"self": draw_operand(pick, shape, dtype), "indices": indices}
    if row.parameter("values") is not None:
        accumulate = pick.boolean()
        arguments["values"] = draw_operand(
            pick, () if not pick.chance(6) else (1,), draw_dtype(pick) if pick.wrong(8) else dtype
        )
        arguments["accumulate"] = accumulate
    return arguments


@strategy("indexing.unsafe_masked_index", "indexing.unsafe_masked_index_put_accumulate")
def masked_index(pick: Picker, row: Row) -> dict[str, Any]:
    """One index for each dimension, and a mask of the shape of the result."""
    shape = _shape(pick, 1, 2)
    dtype = draw_dtype(pick, "floating")
    common = tuple(max(n, 1) for n in draw_shape(pick, 1, 2))
    arguments: dict[str, Any] = {
        "self": draw_operand(pick, shape, dtype),
        "mask": draw_operand(pick, common, "bool"),
        "indices": [draw_index(pick, common, n) for n in shape],
    }
    if row.parameter("fill") is not None:
        arguments["fill"] = pick.choice((0, 1.5))
    else:
        arguments["values"] = draw_operand(pick, common, dtype)
    return arguments


@strategy("index_select", "index_fill", "index_add", "index_copy")
def along(pick: Picker, row: Row) -> dict[str, Any]:
    """A dimension, a vector of indices into it, and a source with as many entries there."""
    shape = _shape(pick, 0 if pick.chance(4) else 1)
    dim = draw_dim(pick, len(shape))
    length = pick.integer(0, 3)
    dtype = draw_dtype(pick, "floating" if pick.boolean() else "any")
    kind = index_dtype(pick, ("int64", "int32"))
    vector = draw_index(pick, (length,) if not pick.wrong(8) else (1, 2), _size(shape, dim), kind)
    if row.rule in ("index_copy", "index_add") and row.base_name in ("index_copy", "index_reduce"):
        vector = Operand(tuple(range(min(length, _size(shape, dim)))), kind, (min(length, _size(shape, dim)),), (1,))
        length = vector.shape[0]
    arguments: dict[str, Any] = {"self": draw_operand(pick, shape, dtype), "dim": dim, "index": vector}
    source = row.parameter("source")
    if source is not None:
        own = list(shape) or [length]
        if shape and -len(shape) <= dim < len(shape):
            own[dim] = length
        if not shape and length == 1:
            own = []
        if pick.wrong(8):
            own = [*own, 2]
        arguments["source"] = draw_operand(pick, own, draw_dtype(pick) if pick.wrong(8) else dtype)
    value = row.parameter("value")
    if value is not None and value.is_tensor:
        arguments["value"] = draw_operand(pick, (2,) if pick.wrong() else (), dtype)
    return complete(pick, row, arguments)


@strategy("gather", "scatter", "indexing.take_along_dim")
def gather(pick: Picker, row: Row) -> dict[str, Any]:
    """A dimension, and an index tensor of as many dimensions that fits into self (and src)."""
    shape = _shape(pick, 0 if pick.chance(4) else 1)
    dim = draw_dim(pick, len(shape))
    dtype = draw_dtype(pick)
    at = dim % len(shape) if shape else 0
    exact = "take_along" in row.rule
    own = [n if exact and d != at else pick.integer(1, n) for d, n in enumerate(shape)]
    if own and (row.rule == "gather" or exact):
        own[at] = pick.integer(1, 4)
    if own and pick.wrong(12):
        own.append(1)
    kind = index_dtype(pick)
    name = "indices" if exact else "index"
    arguments: dict[str, Any] = {
        "self": draw_operand(pick, shape, dtype),
        name: draw_index(pick, own, _size(shape, at), kind),
    }
    if not exact or pick.boolean() or len(shape) == 0:
        arguments["dim"] = dim
    elif pick.chance(2):
        arguments["dim"] = dim
    else:
        arguments[name] = draw_index(pick, draw_shape(pick, 1, 1), max(1, arguments["self"].numel), kind)
        return arguments
    source = row.parameter("src")
    if source is not None:
        larger = [n + (0 if pick.gradient else pick.integer(0, 1)) for n in own]
        if larger and pick.wrong(12):
            larger[0] = max(larger[0] - 2, 0)
        arguments["src"] = draw_operand(pick, larger, draw_dtype(pick) if pick.wrong(8) else dtype)
    return complete(pick, row, arguments)


@strategy("take", "put")
def take(pick: Picker, row: Row) -> dict[str, Any]:
    """Indices into the flattened tensor."""
    shape = _shape(pick, 0)
    dtype = draw_dtype(pick)
    made = draw_operand(pick, shape, dtype)
    kind = index_dtype(pick)
    where = draw_index(pick, draw_shape(pick, 0, 2), made.numel, kind, negative=True)
    arguments: dict[str, Any] = {"self": made, "index": where}
    if row.rule == "put":
        accumulate = pick.boolean()
        if not accumulate:
            where = arguments["index"] = Operand(tuple(range(min(2, made.numel))), "int64", (min(2, made.numel),), (1,))
        count = where.shape if not pick.wrong(8) else (*where.shape, 2)
        arguments["source"] = draw_operand(pick, count, draw_dtype(pick) if pick.wrong(8) else dtype)
        arguments["accumulate"] = accumulate
    return arguments


@strategy("masked_select", "masked_scatter")
def masked(pick: Picker, row: Row) -> dict[str, Any]:
    """A mask that broadcasts with self, and for masked_scatter enough values."""
    shape = draw_shape(pick)
    dtype = draw_dtype(pick)
    made = draw_operand(pick, shape, dtype)
    arguments: dict[str, Any] = {
        "self": made,
        "mask": draw_operand(pick, broadcast(pick, shape), draw_dtype(pick, "boolean")),
    }
    if row.rule == "masked_scatter":
        arguments["source"] = draw_operand(pick, (max(made.numel, 1),), draw_dtype(pick) if pick.wrong(8) else dtype)
    return arguments


@strategy("one_hot")
def one_hot(pick: Picker, row: Row) -> dict[str, Any]:
    """Classes, and their number."""
    kind = index_dtype(pick)
    return {"self": draw_index(pick, _shape(pick, 0), 3, kind), "num_classes": pick.choice((3, 5))}


@strategy("embedding", "embedding_backward")
def embedding(pick: Picker, row: Row) -> dict[str, Any]:
    """A table and rows of it (or the gradient of the rows)."""
    rows, width = pick.integer(2, 4), pick.integer(1, 3)
    where = draw_index(
        pick, draw_shape(pick, 0, 2), rows, "float32" if pick.wrong(8) else pick.choice(("int64", "int32"))
    )
    dtype = draw_dtype(pick, "floating")
    if row.rule == "embedding":
        shape = (rows, width, 2) if pick.wrong(8) else (rows, width)
        return {"weight": draw_operand(pick, shape, dtype), "indices": where, "padding_idx": pick.choice((-1, 0, 1))}
    return {
        "grad_output": draw_operand(pick, (*where.shape, width), dtype),
        "indices": where,
        "num_weights": rows,
        "padding_idx": pick.choice((-1, 0)),
        "scale_grad_by_freq": pick.boolean(),
    }


@strategy("nonzero_static")
def nonzero_static(pick: Picker, row: Row) -> dict[str, Any]:
    """Any tensor, and how many places are wanted."""
    size = -1 if pick.wrong() else pick.integer(0, 4)
    return {"self": draw_operand(pick, draw_shape(pick)), "size": size, "fill_value": pick.choice((-1, 7))}
