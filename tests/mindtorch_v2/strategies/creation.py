"""Factories and random numbers: sizes, dtypes, ranges."""

from __future__ import annotations

from typing import Any

from .cases import strategy
from .generic import complete, draw_number
from .operands import VALUE_HINTS, Symbol, broadcast, contiguous, draw_dtype, draw_operand, draw_shape
from .picking import Picker
from .table import Row

DTYPES = ("float32", "float64", "int64", "bfloat16", "bool", "complex64", "uint8", "float16")


def _dtype(pick: Picker, row: Row, options: tuple[str, ...] = DTYPES) -> dict[str, Any]:
    if row.parameter("dtype") is not None and pick.boolean():
        return {"dtype": Symbol(pick.choice(options))}
    return {}


@strategy("factory", "floating_factory", "new")
def factory(pick: Picker, row: Row) -> dict[str, Any]:
    """A size, a dtype, perhaps a number to fill with."""
    size = list(draw_shape(pick))
    if pick.wrong(8):
        size.append(-1)
    given: dict[str, Any] = {
        "size": size,
        **_dtype(pick, row, ("float32", "float64", "bfloat16", "int64") if "random" in row.tags else DTYPES),
    }
    if row.parameter("fill_value") is not None:
        given["fill_value"] = draw_number(pick)
    if row.parameter("std") is not None:
        given |= {"mean": 0.5, "std": -1.0 if pick.wrong(8) else 2.0}
    if row.parameter("memory_format") is not None and pick.integer(0, 3):
        given["memory_format"] = None
    return complete(pick, row, given)


@strategy("like", "to_copy", "random_like", "bernoulli", "floating_like", "poisson")
def like(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor, and what shall differ from it."""
    hint = row.hints.get("self", "floating" if row.is_random and not pick.wrong(6) else "any")
    made = draw_operand(
        pick,
        draw_shape(pick, 0, 4 if pick.chance(4) else 3),
        draw_dtype(pick, hint),
        hint if hint in VALUE_HINTS else "any",
    )
    given: dict[str, Any] = {"self": made}
    for name, value in (("low", 1), ("high", 9), ("from", 0), ("to", 9)):
        parameter = row.parameter(name)
        if parameter is not None and parameter.type.startswith(("int", "SymInt")):
            given[name] = value if not pick.wrong() else 0
    if row.parameter("p") is not None and row.parameter("p").is_tensor:
        given["p"] = draw_operand(pick, broadcast(pick, made.shape), "float32", "probability")
    return complete(pick, row, given)


@strategy("normal")
def normal(pick: Picker, row: Row) -> dict[str, Any]:
    """Means and deviations."""
    shape = draw_shape(pick)
    dtype = draw_dtype(pick) if pick.wrong(8) else pick.choice(("float32", "float64"))
    given: dict[str, Any] = {}
    for name, kind in (("mean", "any"), ("std", "positive")):
        if row.parameter(name).is_tensor:
            given[name] = draw_operand(pick, shape if not given else broadcast(pick, shape), dtype, kind)
    return complete(pick, row, given)


@strategy("empty_strided")
def empty_strided(pick: Picker, row: Row) -> dict[str, Any]:
    """A size and strides of as many dimensions."""
    size = list(draw_shape(pick))
    stride = list(contiguous(size))
    if pick.boolean():
        stride = [2 * step for step in stride]
    if pick.wrong(8):
        stride.append(1)
    return complete(pick, row, {"size": size, "stride": stride})


@strategy("arange", "range")
def arange(pick: Picker, row: Row) -> dict[str, Any]:
    """A start, an end and a step, integers or floats."""
    start, end = pick.choice(((0, 5), (1, 4), (0.5, 3), (0, 2.5), (-2, 2), (3, 3)))
    step = 0 if pick.wrong(8) else pick.choice((1, 2, 0.5, -1))
    given: dict[str, Any] = {"start": start, "end": end, "step": step}
    given = {name: value for name, value in given.items() if row.parameter(name) is not None}
    return complete(pick, row, {**given, **_dtype(pick, row, ("float32", "int64", "float64", "int32"))})


@strategy("linspace")
def linspace(pick: Picker, row: Row) -> dict[str, Any]:
    """Two ends and a number of steps."""
    steps = -1 if pick.wrong(8) else pick.choice((3, 1, 0, 5))
    start, end = (
        draw_operand(pick, (), "float32") if parameter.is_tensor else value
        for parameter, value in zip(row.parameters, pick.choice(((0, 2), (-1, 1), (2.0, 0.5), (1, 1))), strict=False)
    )
    return complete(
        pick, row, {"start": start, "end": end, "steps": steps, **_dtype(pick, row, ("float32", "float64", "int64"))}
    )


@strategy("randint", "randint_like")
def randint(pick: Picker, row: Row) -> dict[str, Any]:
    """Bounds and a size."""
    given: dict[str, Any] = {"high": 0 if pick.wrong(8) else 9}
    if row.parameter("low") is not None:
        given["low"] = pick.choice((0, -3, 1))
    if row.parameter("size") is not None:
        given["size"] = list(draw_shape(pick))
    return complete(pick, row, {**given, **_dtype(pick, row, ("int64", "float32", "uint8", "bool"))})


@strategy("randperm", "eye", "tril_indices", "window", "scalar_tensor")
def small_numbers(pick: Picker, row: Row) -> dict[str, Any]:
    """Small numbers, and a dtype."""
    given: dict[str, Any] = {}
    for parameter in row.parameters:
        if parameter.base == "int":
            given[parameter.name] = -1 if pick.wrong(12) else pick.integer(0, 4)
        elif parameter.base == "float":
            given[parameter.name] = pick.choice((0.5, 8.0))
    options = ("int64", "int32", "float32") if row.rule in ("randperm", "tril_indices") else DTYPES
    return complete(pick, row, {**given, **_dtype(pick, row, options)})


@strategy(
    "native_dropout",
    "random.dropout",
    "random.dropout_",
    "random.feature_dropout",
    "random.feature_dropout_",
)
def dropout(pick: Picker, row: Row) -> dict[str, Any]:
    """A floating tensor and a probability."""
    made = draw_operand(pick, draw_shape(pick, 2, 3), draw_dtype(pick, "floating"))
    return complete(
        pick, row, {row.parameters[0].name: made, "p": 1.5 if pick.wrong(8) else pick.choice((0.5, 0.0, 1.0))}
    )


@strategy("drawn")
def drawn(pick: Picker, row: Row) -> dict[str, Any]:
    """Parameters of samples, of shapes that broadcast and of one dtype, or not."""
    shape = draw_shape(pick, 0, 3)
    dtype = draw_dtype(pick) if pick.wrong(6) else "float64" if pick.gradient else pick.choice(("float32", "float64"))
    given = {}
    for name in (p.name for p in row.parameters if p.is_tensor):
        kind = draw_dtype(pick) if given and pick.wrong(8) else dtype
        given[name] = draw_operand(
            pick, broadcast(pick, shape) if given else shape, kind, row.hints.get(name, "positive")
        )
    return complete(pick, row, given)
