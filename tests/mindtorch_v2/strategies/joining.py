"""Joining, repeating, padding."""

from __future__ import annotations

from typing import Any

from .cases import strategy
from .generic import complete, draw_dim, draw_dims
from .operands import draw_dtype, draw_operand, draw_shape
from .picking import Picker
from .table import Row


@strategy("cat")
def cat(pick: Picker, row: Row) -> dict[str, Any]:
    """Tensors that agree but for one dimension; a legacy empty one now and then."""
    shape = list(draw_shape(pick, 0 if pick.wrong(8) else 1))
    dim = draw_dim(pick, len(shape))
    dtype = draw_dtype(pick)
    tensors = []
    for _ in range(pick.integer(1, 3) if not pick.wrong(16) else 0):
        own = list(shape)
        if own and -len(own) <= dim < len(own):
            own[dim] = pick.choice((1, 2, 0, 3))
        if own and pick.wrong(12):
            own[pick.integer(0, len(own) - 1)] += 1
        if not pick.gradient and pick.chance(12):
            own = [0]
        tensors.append(draw_operand(pick, own, draw_dtype(pick) if pick.chance(4) else dtype))
    return {"tensors": tensors, "dim": dim}


@strategy("stack", "shape.hstack", "shape.vstack", "shape.dstack", "shape.column_stack")
def stack(pick: Picker, row: Row) -> dict[str, Any]:
    """Tensors of one shape."""
    shape = draw_shape(pick)
    dtype = draw_dtype(pick)
    tensors = [
        draw_operand(pick, (*shape, 2) if pick.wrong(12) else shape, draw_dtype(pick) if pick.chance(4) else dtype)
        for _ in range(pick.integer(1, 3) if not pick.wrong(16) else 0)
    ]
    arguments: dict[str, Any] = {"tensors": tensors}
    if row.parameter("dim") is not None:
        arguments["dim"] = draw_dim(pick, len(shape) + 1)
    return arguments


@strategy("shape.cartesian_prod", "shape.meshgrid", "shape.block_diag")
def lines(pick: Picker, row: Row) -> dict[str, Any]:
    """Vectors."""
    dtype = draw_dtype(pick)
    high = 2 if row.rule == "shape.block_diag" or pick.wrong(6) else 1
    vectors = [
        draw_operand(pick, draw_shape(pick, 0 if high == 2 else 1, high), dtype) for _ in range(pick.integer(1, 3))
    ]
    return complete(pick, row, {row.parameters[0].name: vectors})


@strategy("shape.combinations")
def combinations(pick: Picker, row: Row) -> dict[str, Any]:
    """A vector, and how many of its elements to take."""
    return complete(pick, row, {"self": draw_operand(pick, draw_shape(pick, 1, 1)), "r": pick.choice((2, 1, 3))})


@strategy("repeat", "shape.tile")
def repeat(pick: Picker, row: Row) -> dict[str, Any]:
    """How often each dimension is repeated; more counts than dimensions put new ones in front."""
    made = draw_operand(pick, draw_shape(pick, 0, 3))
    count = pick.integer(0, 2) + (made.ndim if not pick.wrong(8) else 0)
    times = [pick.choice((1, 2, 0, 3)) for _ in range(count)]
    if times and pick.wrong(12):
        times[0] = -1
    return {"self": made, row.parameters[1].name: times}


@strategy(
    "shape.repeat_interleave_int",
    "shape.repeat_interleave_tensor",
    "shape.repeat_interleave_counts",
)
def repeat_interleave(pick: Picker, row: Row) -> dict[str, Any]:
    """How often each element is repeated: one number, or one per element."""
    if row.parameter("self") is None:
        return {"repeats": draw_operand(pick, draw_shape(pick, 1, 1), pick.choice(("int64", "int32")), "nonnegative")}
    made = draw_operand(pick, draw_shape(pick, 1, 3))
    arguments: dict[str, Any] = {"self": made}
    dim = draw_dim(pick, made.ndim)
    if pick.integer(0, 2):
        arguments["dim"] = dim
    if row.parameter("repeats").is_tensor:
        length = made.numel if "dim" not in arguments else made.shape[dim] if -made.ndim <= dim < made.ndim else 1
        shape = (length + 1,) if pick.wrong(8) else () if pick.chance(4) else (length,)
        arguments["repeats"] = draw_operand(pick, shape, "int64", "small")
    else:
        arguments["repeats"] = -1 if pick.wrong() else pick.choice((1, 2, 0))
    return arguments


@strategy("flip", "shape.fliplr", "shape.flipud")
def flip(pick: Picker, row: Row) -> dict[str, Any]:
    """Dimensions to reverse."""
    return complete(pick, row, {"self": draw_operand(pick, draw_shape(pick, 0, 3))})


@strategy("roll")
def roll(pick: Picker, row: Row) -> dict[str, Any]:
    """Shifts, one per dimension."""
    made = draw_operand(pick, draw_shape(pick, 0, 3))
    dims = draw_dims(pick, made.ndim) if made.ndim else []
    shifts = [pick.choice((1, -1, 2, 0, 5)) for _ in (dims or [0])]
    if pick.wrong(8):
        shifts.append(1)
    return {"self": made, "shifts": shifts, "dims": dims}


@strategy("shape.rot90")
def rot90(pick: Picker, row: Row) -> dict[str, Any]:
    """A plane and a number of turns."""
    made = draw_operand(pick, draw_shape(pick, 1 if pick.wrong(8) else 2, 3))
    return {"self": made, "k": pick.choice((1, 0, 2, 3, -1)), "dims": pick.choice(([0, 1], [1, 0], [0, -1]))}


@strategy("shape.diag", "shape.diagflat")
def diag(pick: Picker, row: Row) -> dict[str, Any]:
    """A vector or a matrix."""
    return complete(pick, row, {"self": draw_operand(pick, draw_shape(pick, 1, 3 if pick.wrong(6) else 2))})


@strategy("pad")
def pad(pick: Picker, row: Row) -> dict[str, Any]:
    """Amounts in pairs, last dimension first; negative ones cut."""
    made = draw_operand(pick, draw_shape(pick, 1, 4))
    pairs = pick.integer(0, made.ndim + (1 if pick.wrong(8) else 0))
    amounts = [pick.choice((1, 0, 2, -1)) for _ in range(2 * pairs + (1 if pick.wrong(12) else 0))]
    arguments: dict[str, Any] = {"self": made, "pad": amounts}
    if pick.boolean():
        arguments["value"] = pick.choice((1, 0.5, -2))
    return arguments


@strategy("pad_nd", "shape.pad", "shape.pad_circular")
def pad_nd(pick: Picker, row: Row) -> dict[str, Any]:
    """Amounts for the last one to three dimensions, less than their sizes."""
    parameter = row.parameters[1]
    mode = "circular" if row.rule == "shape.pad_circular" else "reflect"
    if parameter.type.startswith("SymInt[") and parameter.type[7] in "246":
        ndim = int(parameter.type[7]) // 2
    else:
        ndim = pick.integer(1, 2)
        mode = pick.choice(("constant", "reflect", "replicate", "circular")) if row.rule == "shape.pad" else mode
    channels = pick.integer(1, 2) if not pick.wrong(6) else 0
    shape = [pick.integer(1, 2) for _ in range(channels)] + [pick.integer(3, 4) for _ in range(ndim)]
    amounts = [pick.integer(0, 2) for _ in range(2 * ndim)]
    if pick.wrong(6):
        amounts[0] = 6
    dtype = draw_dtype(pick) if pick.wrong(6) else draw_dtype(pick, "floating")
    arguments: dict[str, Any] = {"self": draw_operand(pick, shape, dtype), parameter.name: amounts}
    if row.rule == "shape.pad":
        arguments["mode"] = mode
    return arguments


@strategy("pixel_shuffle", "pixel_unshuffle", "shape.channel_shuffle")
def pixel_shuffle(pick: Picker, row: Row) -> dict[str, Any]:
    """Images whose channels (or sizes) the factor divides."""
    factor = pick.integer(1, 2)
    sizes = (factor * factor * pick.integer(1, 2), 2, 3) if row.rule != "pixel_unshuffle" else (2, 2 * factor, factor)
    if pick.wrong(6):
        sizes = (sizes[0] + 1, 3, 5)
    made = draw_operand(pick, (*draw_shape(pick, 1 if row.rule == "shape.channel_shuffle" else 0, 1), *sizes))
    return {"self": made, row.parameters[1].name: 0 if pick.wrong() else factor}


@strategy("shape.chunk_cat")
def chunk_cat(pick: Picker, row: Row) -> dict[str, Any]:
    """Matrices, or tensors that agree before the dimension."""
    dtype, at, lead = draw_dtype(pick), pick.integer(0, 1), pick.integer(1, 3)
    shapes = [
        (*((lead,) if at else ()), pick.integer(1, 5), *((2,) if pick.boolean() else ()))
        for _ in range(pick.integer(1, 3))
    ]
    if pick.wrong():
        shapes[0] = (*shapes[0][:-1], 0)
    tensors = [draw_operand(pick, shape, dtype) for shape in shapes]
    return {"tensors": tensors, "dim": at, "num_chunks": 0 if pick.wrong() else pick.integer(1, 4)}
