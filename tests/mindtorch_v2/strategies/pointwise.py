"""Pointwise operators: operands that broadcast, of dtypes that promote."""

from __future__ import annotations

from typing import Any

from .cases import STRATEGIES, strategy
from .generic import complete, draw_dim, draw_number
from .operands import COMPLEX, VALUE_HINTS, Symbol, broadcast, draw_dtype, draw_operand, draw_shape
from .picking import Picker
from .table import Row


@strategy(
    "elementwise",
    "polygamma",
    "frexp",
    "comparison",
    "logical",
    "bitwise",
    "shift",
    "subtraction",
    "nan_to_num",
    "negation",
    "absolute",
    "sign",
    "rounding",
    "test",
    "pow",
    "division",
    "remainder",
    "extremum",
    "relu",
    "hardtanh",
    "activation",
    "isin",
    "heaviside",
    "prelu_kernel",
)
def pointwise(pick: Picker, row: Row) -> dict[str, Any]:
    """Tensors of broadcasting shapes and promoting dtypes, and now and then numbers in their place.

    Sometimes as many dimensions as channels_last needs, since the order of memory is kept.
    """
    if row.base_name == "binary_cross_entropy_backward":
        return STRATEGIES["binary_cross_entropy"](pick, row)
    if row.tensors and row.parameters[0].is_tensor and pick.chance(5) and not pick.gradient:
        first = row.parameters[0]
        hint = row.hints.get(first.name, "any")
        if isinstance(hint, str) and hint != "boolean":
            kind = hint if hint in VALUE_HINTS else "any"
            return complete(
                pick, row, {first.name: draw_operand(pick, draw_shape(pick, 4, 4), draw_dtype(pick, hint), kind)}
            )
    return complete(pick, row)


@strategy("pointwise.ldexp")
def integers(pick: Picker, row: Row) -> dict[str, Any]:
    """Operands that are mostly integers."""
    return complete(
        pick, row, {row.parameters[0].name: draw_operand(pick, draw_shape(pick), draw_dtype(pick, "integer"))}
    )


@strategy("lerp", "addcmul", "addcdiv", "activation_backward")
def same_dtype(pick: Picker, row: Row) -> dict[str, Any]:
    """Broadcasting operands of one floating dtype; rarely another."""
    shape = draw_shape(pick)
    dtype = draw_dtype(pick, "floating")
    arguments: dict[str, Any] = {}
    for index, parameter in enumerate(row.tensors):
        own = shape if index == 0 else broadcast(pick, shape)
        kind = draw_dtype(pick) if pick.wrong(10) else dtype
        hint = row.hints.get(parameter.name, "any")
        arguments[parameter.name] = draw_operand(pick, own, kind, hint if hint in VALUE_HINTS else "any")
    if row.takes_numbers and not pick.gradient and len(row.tensors) > 1 and pick.chance(5):
        arguments[row.tensors[-1].name] = draw_number(pick)
    return complete(pick, row, arguments)


@strategy("clamp")
def clamp(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor and bounds: tensors, numbers or None; rarely none at all."""
    arguments = pointwise(pick, row)
    if (
        pick.valid
        and row.parameter("max") is not None
        and arguments.get("min") is None
        and arguments.get("max") is None
    ):
        arguments["max"] = 0.77
    return arguments


@strategy("where")
def where(pick: Picker, row: Row) -> dict[str, Any]:
    """A condition, mostly bool, and two operands or numbers."""
    shape = draw_shape(pick)
    given: dict[str, Any] = {"condition": draw_operand(pick, shape, draw_dtype(pick, "boolean"))}
    if row.parameter("self") is not None and row.parameter("self").is_tensor:
        given["self"] = draw_operand(pick, broadcast(pick, shape))
        given["other"] = draw_operand(pick, broadcast(pick, shape), given["self"].dtype if pick.boolean() else None)
        if not pick.gradient and pick.chance(4):
            given[pick.choice(("self", "other"))] = pick.choice((2, 1.5, True))
    return complete(pick, row, given)


@strategy("masked_fill")
def masked_fill(pick: Picker, row: Row) -> dict[str, Any]:
    """self, a mask that broadcasts to it, and a number or 0-dim tensor."""
    shape = draw_shape(pick)
    given: dict[str, Any] = {
        "self": draw_operand(pick, shape),
        "mask": draw_operand(pick, broadcast(pick, shape), draw_dtype(pick, "boolean")),
    }
    if row.parameter("value").is_tensor:
        kind = given["self"].dtype if pick.boolean() else "int64"
        given["value"] = draw_operand(pick, (2,) if pick.wrong() else (), kind)
    return complete(pick, row, given)


@strategy("fill", "copy")
def fill(pick: Picker, row: Row) -> dict[str, Any]:
    """self and what is written into it."""
    shape = draw_shape(pick)
    given: dict[str, Any] = {"self": draw_operand(pick, shape)}
    if row.parameter("value") is not None and row.parameter("value").is_tensor:
        given["value"] = draw_operand(pick, (1,) if pick.wrong() else (), draw_dtype(pick))
    return complete(pick, row, given)


@strategy("glu")
def glu(pick: Picker, row: Row) -> dict[str, Any]:
    """One tensor whose size along `dim` is even."""
    shape = list(draw_shape(pick, 1))
    dim = draw_dim(pick, len(shape))
    if -len(shape) <= dim < len(shape) and not pick.wrong(8):
        shape[dim] = 2 * max(shape[dim], 1)
    return complete(pick, row, {"self": draw_operand(pick, shape, draw_dtype(pick, "floating")), "dim": dim})


@strategy("complex_of")
def complex_of(pick: Picker, row: Row) -> dict[str, Any]:
    """Two real operands of one dtype."""
    shape = draw_shape(pick)
    dtype = "float64" if pick.gradient else pick.choice(("float32", "float64"))
    names = [p.name for p in row.tensors]
    other = "float16" if pick.wrong(6) else dtype
    return {
        names[0]: draw_operand(pick, shape, dtype, "positive"),
        names[1]: draw_operand(pick, broadcast(pick, shape), other),
    }


@strategy("view_as_real", "view.real", "view.imag")
def complex_tensor(pick: Picker, row: Row) -> dict[str, Any]:
    """A complex tensor; rarely a real one."""
    dtype = draw_dtype(pick) if pick.wrong(4) else "complex128" if pick.gradient else pick.choice(COMPLEX)
    return {"self": draw_operand(pick, draw_shape(pick), dtype)}


@strategy("view_as_complex")
def pairs(pick: Picker, row: Row) -> dict[str, Any]:
    """A real tensor whose last dimension holds pairs."""
    shape = (*draw_shape(pick, 0, 2), 3 if pick.wrong(5) else 2)
    dtype = draw_dtype(pick) if pick.wrong(5) else "float64" if pick.gradient else pick.choice(("float32", "float64"))
    return {"self": draw_operand(pick, shape, dtype)}


@strategy("nn.prelu")
def prelu(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor, and one slope or one per channel."""
    shape = draw_shape(pick)
    dtype = draw_dtype(pick, "floating")
    channels = shape[1] if len(shape) > 1 else 1
    own = () if pick.chance(4) else (1,) if pick.boolean() else (channels + (1 if pick.wrong(8) else 0),)
    return {"self": draw_operand(pick, shape, dtype), "weight": draw_operand(pick, own, dtype)}


@strategy("softmax_backward")
def softmax_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient and the result of a softmax, of one shape."""
    shape = draw_shape(pick, 1)
    dtype = draw_dtype(pick, "floating")
    tensors = {p.name: draw_operand(pick, shape, dtype, "probability") for p in row.tensors}
    if pick.wrong(8):
        tensors["output"] = draw_operand(pick, (*shape, 2), dtype)
    return {**tensors, "dim": draw_dim(pick, len(shape)), "input_dtype": Symbol(dtype)}
