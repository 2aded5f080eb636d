"""Views and changes of shape: one tensor, and numbers that must fit its geometry."""

from __future__ import annotations

from typing import Any

from .cases import strategy
from .generic import complete, draw_dim, draw_dims
from .operands import draw_dtype, draw_operand, draw_shape, span
from .picking import Picker
from .table import Row


def _self(pick: Picker, row: Row, low: int = 0, high: int = 4) -> Any:
    return draw_operand(pick, draw_shape(pick, low, high))


def _factors(pick: Picker, count: int) -> list[int]:
    """A shape of `count` elements."""
    sizes: list[int] = []
    left = count
    if count == 0:
        return [0, *draw_shape(pick, 0, 2)]
    for _ in range(pick.integer(0, 3)):
        divisors = [n for n in range(1, left + 1) if left % n == 0]
        sizes.append(pick.choice(divisors))
        left //= sizes[-1]
    return [*sizes, left] if left > 1 or not sizes and pick.boolean() else sizes


@strategy("view", "reshape")
def view(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor and another shape of as many elements; -1 for one size; rarely one that does not fit."""
    made = _self(pick, row)
    sizes = _factors(pick, made.numel)
    if sizes and pick.chance(3):
        sizes[pick.integer(0, len(sizes) - 1)] = -1
    if pick.wrong(8):
        sizes.append(pick.choice((3, -1, -2)))
    return {"self": made, row.parameters[1].name: sizes}


def zeros_of_view(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of a part of a tensor (or, for _unsafe_view, a tensor and another shape)."""
    first, second = row.parameters[0].name, row.parameters[1].name
    if row.base_name == "_unsafe_view":
        made = _self(pick, row)
        return {first: made, second: _factors(pick, made.numel)}
    dtype = draw_dtype(pick, "floating")
    n, m = pick.integer(2, 3), pick.integer(2, 4)
    if row.base_name == "select_backward":
        dim = pick.choice((0, 1, -1))
        index = pick.choice((0, 1, -1))
        shape = (m,) if dim == 0 else (n,)
        rest = {"dim": dim, "index": index}
    elif row.base_name == "slice_backward":
        shape = (n, 1)
        rest = {"dim": 1, "start": 0, "end": 2, "step": 2}
    elif row.base_name == "diagonal_backward":
        shape = (min(n, m),)
        rest = {"offset": 0, "dim1": 0, "dim2": 1}
    elif row.base_name == "unfold_backward":
        shape = (n, m - 1, 2)
        rest = {"dim": 1, "size": 2, "step": 1}
    elif row.base_name == "masked_scatter_backward":
        shape = (n, m)
        return {
            first: draw_operand(pick, shape, dtype),
            "mask": draw_operand(pick, shape, "bool"),
            row.parameters[2].name: [n, m],
        }
    else:
        return complete(pick, row)
    return {first: draw_operand(pick, shape, dtype), second: [n, m], **rest}


@strategy("view_dtype")
def view_dtype(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor and a dtype whose size may differ."""
    shape = tuple(max(n, 1) for n in draw_shape(pick, 0, 2))  # numpy does not keep the strides of nothing
    return complete(pick, row, {"self": draw_operand(pick, (*shape, pick.choice((2, 4, 3, 1))))})


@strategy("flatten")
def flatten(pick: Picker, row: Row) -> dict[str, Any]:
    """The first and last dimension that become one; rarely in the wrong order."""
    made = _self(pick, row)
    first, last = draw_dim(pick, made.ndim), draw_dim(pick, made.ndim)
    if not pick.wrong(4) and first % max(made.ndim, 1) > last % max(made.ndim, 1):
        first, last = last, first
    return {"self": made, "start_dim": first, "end_dim": last}


@strategy("transpose", "squeeze", "unsqueeze", "alias", "reverse_dims", "matrix_transpose", "clone")
def dims_of(pick: Picker, row: Row) -> dict[str, Any]:
    """One tensor and its dimensions; `unsqueeze` has one more of them."""
    made = _self(pick, row)
    if row.rule == "unsqueeze":
        return {"self": made, "dim": draw_dim(pick, made.ndim + 1)}
    return complete(pick, row, {"self": made})


@strategy("t")
def t(pick: Picker, row: Row) -> dict[str, Any]:
    """At most a matrix."""
    return {"self": _self(pick, row, 0, 3 if pick.wrong(6) else 2)}


@strategy("unflatten")
def unflatten(pick: Picker, row: Row) -> dict[str, Any]:
    """A dimension, and sizes whose product it is."""
    made = _self(pick, row, 1)
    dim = draw_dim(pick, made.ndim)
    inside = -made.ndim <= dim < made.ndim
    sizes = _factors(pick, made.shape[dim]) if inside else [2]
    if sizes and pick.chance(3):
        sizes[0] = -1
    if pick.wrong(8):
        sizes.append(3)
    return {"self": made, "dim": dim, "sizes": sizes}


@strategy("permute")
def permute(pick: Picker, row: Row) -> dict[str, Any]:
    """All dimensions in another order."""
    made = _self(pick, row)
    dims = pick.shuffled(range(made.ndim))
    dims = [d - made.ndim if pick.chance(3) else d for d in dims]
    if pick.wrong(8):
        dims.append(pick.choice((0, 7)))
    return {"self": made, "dims": dims}


@strategy("movedim")
def movedim(pick: Picker, row: Row) -> dict[str, Any]:
    """Dimensions and their new places."""
    made = _self(pick, row, 1)
    if row.parameter("source").is_list:
        source = draw_dims(pick, made.ndim)
        destination = pick.shuffled(range(made.ndim))[: len(source)]
        if pick.wrong(8):
            destination.append(0)
    else:
        source, destination = draw_dim(pick, made.ndim), draw_dim(pick, made.ndim)
    return {"self": made, "source": source, "destination": destination}


@strategy("expand", "broadcast_to")
def expand(pick: Picker, row: Row) -> dict[str, Any]:
    """Sizes of 1 become others, and dimensions come in front."""
    made = _self(pick, row, 0, 3)
    size = [pick.choice((2, 3, 0)) if n == 1 and pick.boolean() else n for n in made.shape]
    if row.rule == "expand":
        size = [-1 if pick.chance(5) else n for n in size]
    size = [*draw_shape(pick, 0, 1), *size]
    if pick.wrong(8):
        size = size[1:] if pick.boolean() else [*size[:-1], 7]
    return {"self": made, "size": size}


@strategy("select")
def select(pick: Picker, row: Row) -> dict[str, Any]:
    """A dimension and an index of it."""
    made = _self(pick, row, 1)
    dim = draw_dim(pick, made.ndim)
    size = made.shape[dim] if -made.ndim <= dim < made.ndim else 1
    index = pick.integer(-size, size - 1) if size and not pick.wrong(8) else size
    return {"self": made, "dim": dim, "index": index}


@strategy("slice")
def slice_(pick: Picker, row: Row) -> dict[str, Any]:
    """A dimension, and ends that may lie outside of it."""
    made = _self(pick, row, 1)
    arguments: dict[str, Any] = {"self": made, "dim": draw_dim(pick, made.ndim)}
    arguments["start"] = pick.choice((0, None, 1, -1, -9, 9))
    arguments["end"] = pick.choice((None, 2, 3, -1, 9, -9))
    arguments["step"] = pick.choice((0, -1)) if pick.wrong(8) else pick.choice((1, 2))
    return arguments


@strategy("narrow", "view.narrow_copy")
def narrow(pick: Picker, row: Row) -> dict[str, Any]:
    """A dimension, a start and a length within it."""
    made = _self(pick, row, 1)
    dim = draw_dim(pick, made.ndim)
    size = made.shape[dim] if -made.ndim <= dim < made.ndim else 1
    start = pick.integer(0, size)
    length = pick.integer(0, size - start) + (2 if pick.wrong(8) else 0)
    return {"self": made, "dim": dim, "start": start - size if start and pick.chance(3) else start, "length": length}


@strategy("view.narrow_tensor")
def narrow_tensor(pick: Picker, row: Row) -> dict[str, Any]:
    """As narrow; the start is a 0-dim tensor."""
    start = draw_operand(pick, (), "int64", "unit")
    return {"self": _self(pick, row, 1, 2), "dim": 0, "start": start, "length": pick.choice((0, 1))}


@strategy("as_strided")
def as_strided(pick: Picker, row: Row) -> dict[str, Any]:
    """Any geometry within the storage; rarely beyond it."""
    made = _self(pick, row, 1)
    room = span(made.shape, made.stride, made.offset)
    size, stride = list(draw_shape(pick, 0, 2)), []
    offset = pick.integer(0, 1)
    for _ in size:
        stride.append(pick.choice((1, 2, 0, 3)))
    if span(size, stride, offset) > room and not pick.wrong(6):
        size, stride, offset = ([1] if room else [0]), [1], 0
    if pick.wrong(10):
        stride = [*stride, 1]
    arguments: dict[str, Any] = {"self": made, "size": size, "stride": stride}
    if offset or pick.boolean():
        arguments["storage_offset"] = offset
    return arguments


def _two_dims(pick: Picker, ndim: int) -> tuple[int, int]:
    first, second = draw_dim(pick, ndim), draw_dim(pick, ndim)
    if (first - second) % max(ndim, 1) == 0 and not pick.wrong(4):
        second = first + 1 if first + 1 < ndim else first - 1
    return first, second


@strategy("diagonal", "view.linalg_diagonal")
def diagonal(pick: Picker, row: Row) -> dict[str, Any]:
    """Two dimensions and an offset that may lie outside."""
    made = _self(pick, row, 2)
    dim1, dim2 = _two_dims(pick, made.ndim)
    return {row.parameters[0].name: made, "offset": pick.choice((0, 1, -1, 5, -5)), "dim1": dim1, "dim2": dim2}


@strategy("diag_embed")
def diag_embed(pick: Picker, row: Row) -> dict[str, Any]:
    """Two dimensions of the result, and an offset."""
    made = _self(pick, row, 1, 3)
    dim1, dim2 = _two_dims(pick, made.ndim + 1)
    return {"self": made, "offset": pick.choice((0, 1, -2)), "dim1": dim1, "dim2": dim2}


@strategy("unfold")
def unfold(pick: Picker, row: Row) -> dict[str, Any]:
    """A dimension, and windows that fit it."""
    made = _self(pick, row, 0, 3)
    dim = draw_dim(pick, made.ndim)
    size = made.shape[dim] if made.shape and -made.ndim <= dim < made.ndim else 1
    window = size + 1 if pick.wrong(8) else pick.integer(0, size)
    return {"self": made, "dimension": dim, "size": window, "step": 0 if pick.wrong() else pick.integer(1, 2)}


@strategy("split", "chunk")
def split(pick: Picker, row: Row) -> dict[str, Any]:
    """The size or number of the pieces."""
    made = _self(pick, row, 0 if pick.wrong(8) else 1)
    how = pick.choice((0, -1)) if pick.wrong(8) else pick.integer(1, 5)
    return {"self": made, row.parameters[1].name: how, "dim": draw_dim(pick, made.ndim)}


@strategy("split_with_sizes")
def split_with_sizes(pick: Picker, row: Row) -> dict[str, Any]:
    """Sizes that add up."""
    made = _self(pick, row, 1)
    dim = draw_dim(pick, made.ndim)
    left = made.shape[dim] if -made.ndim <= dim < made.ndim else 2
    sizes = []
    while left:
        sizes.append(pick.integer(1, left))
        left -= sizes[-1]
    if pick.chance(4):
        sizes.append(0)
    if pick.wrong(8):
        sizes.append(pick.choice((1, -1)))
    return {"self": made, row.parameters[1].name: sizes, "dim": dim}


@strategy("tensor_split", "view.hsplit", "view.vsplit", "view.dsplit")
def tensor_split(pick: Picker, row: Row) -> dict[str, Any]:
    """A number of pieces, or the places of the cuts."""
    made = _self(pick, row, 0 if pick.wrong(8) else {"view.vsplit": 2, "view.dsplit": 3}.get(row.rule, 1))
    second = row.parameters[1]
    if second.is_list:
        how: Any = sorted(pick.integer(0, 4) for _ in range(pick.integer(0, 3)))
    else:
        how = 0 if pick.wrong(8) else pick.integer(1, 3)
    arguments = {"self": made, second.name: how}
    if row.parameter("dim") is not None:
        arguments["dim"] = draw_dim(pick, made.ndim)
    return arguments


@strategy("view.tensor_split_tensor")
def tensor_split_tensor(pick: Picker, row: Row) -> dict[str, Any]:
    """The places of the cuts as a tensor."""
    made = _self(pick, row, 1)
    how = draw_operand(pick, draw_shape(pick, 0, 1), "float32" if pick.wrong(6) else "int64", "positive")
    return {"self": made, row.parameters[1].name: how, "dim": draw_dim(pick, made.ndim)}


@strategy("unbind")
def unbind(pick: Picker, row: Row) -> dict[str, Any]:
    """One dimension."""
    made = _self(pick, row, 0 if pick.wrong(6) else 1)
    return {"self": made, "dim": draw_dim(pick, made.ndim)}


@strategy("view.select_scatter", "view.slice_scatter", "view.diagonal_scatter")
def scatter_view(pick: Picker, row: Row) -> dict[str, Any]:
    """A matrix, and what replaces a part of it."""
    n, m = pick.integer(1, 3), pick.integer(2, 4)
    dtype = draw_dtype(pick, "floating")
    made = draw_operand(pick, (n, m), dtype)
    if row.rule == "view.select_scatter":
        rest: dict[str, Any] = {"dim": 1, "index": pick.choice((0, 1, -1))}
        shape: tuple[int, ...] = (n,)
    elif row.rule == "view.slice_scatter":
        rest = {"dim": 1, "start": 0, "end": 2, "step": pick.choice((1, 2))}
        shape = (n, 2 if rest["step"] == 1 else 1)
    else:
        rest = {}
        shape = (min(n, m),)
    if pick.wrong(8):
        shape = (*shape, 5)
    return {"self": made, "src": draw_operand(pick, shape, dtype), **rest}


@strategy("view.as_strided_scatter")
def as_strided_scatter(pick: Picker, row: Row) -> dict[str, Any]:
    """Part of a tensor's storage replaced."""
    dtype = draw_dtype(pick, "floating")
    return {
        "self": draw_operand(pick, (2, 3), dtype),
        "src": draw_operand(pick, (2, 2), dtype),
        "size": [2, 2],
        "stride": [pick.choice((2, 3)), 1],
    }


@strategy("view.view_as", "view.reshape_as", "view.expand_as")
def as_other(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor, and another whose shape it takes."""
    if row.rule == "view.expand_as":
        arguments = expand(pick, row)
        size = [3 if n == -1 else n for n in arguments["size"]]
        return {"self": arguments["self"], "other": draw_operand(pick, size)}
    made = _self(pick, row)
    return {"self": made, "other": draw_operand(pick, _factors(pick, made.numel + (1 if pick.wrong(8) else 0)))}
