"""Reductions, scans, sorting: one tensor, and dimensions of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .cases import strategy
from .generic import complete, draw_dim
from .operands import VALUE_HINTS, Operand, draw_dtype, draw_index, draw_operand, draw_shape
from .picking import Picker
from .table import Row


@strategy(
    "reduction",
    "arg_reduction",
    "reduction_with_indices",
    "aminmax",
    "summed",
    "mean",
    "truth",
    "counted",
    "deviation",
    "logsumexp",
    "var_mean",
    "vector_norm",
    "cumulative",
    "cumulative_with_indices",
    "softmax",
    "sort",
    "argsort",
    "tril",
    "unique",
    "nonzero",
)
def reduction(pick: Picker, row: Row) -> dict[str, Any]:
    """One tensor of up to four dimensions; dimensions by their parameters' types."""
    first = row.parameters[0].name
    hint = row.hints.get(first, "any")
    shape = draw_shape(pick, 0, 4 if pick.chance(4) else 3)
    if pick.gradient and row.base_name.startswith(("var", "std")):
        shape = (2, 3)  # of one element they are nan
    if row.rule == "tril" and not pick.wrong(6):
        shape = (*shape, 2, 3)[-3:]
    made = draw_operand(pick, shape, draw_dtype(pick, hint), hint if hint in VALUE_HINTS else "any")
    return complete(pick, row, {first: made})


@strategy("kthvalue", "topk")
def selection(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor of distinct values, a dimension, and `k` within its size."""
    shape = draw_shape(pick)
    dim = draw_dim(pick, len(shape))
    size = shape[dim] if shape and -len(shape) <= dim < len(shape) else 1
    low = 0 if row.rule == "topk" else 1
    k = size + 1 if pick.wrong(8) else pick.integer(low, max(size, low))
    dtype = (
        draw_dtype(pick, "floating")
        if not pick.chance(4)
        else draw_dtype(pick, "integer" if not pick.gradient else "floating")
    )
    return complete(pick, row, {"self": draw_operand(pick, shape, dtype, "distinct"), "k": k, "dim": dim})


@strategy("trace")
def trace(pick: Picker, row: Row) -> dict[str, Any]:
    """A matrix."""
    ndim = 3 if pick.wrong(8) else 2
    return {"self": draw_operand(pick, draw_shape(pick, ndim, ndim))}


@strategy("histc")
def histc(pick: Picker, row: Row) -> dict[str, Any]:
    """Values, and the number and range of bins."""
    given = {
        "self": draw_operand(pick, draw_shape(pick), draw_dtype(pick, "floating"), "finite"),
        "bins": pick.choice((3, 5, 1)),
    }
    if pick.wrong(8):
        given["bins"] = 0
    if pick.boolean():
        given |= {"min": -2, "max": 2}
    return given


def _rising(operand: Operand) -> Operand:
    return replace(operand, values=tuple(sorted(operand.values)))


@strategy("searchsorted", "bucketize")
def searchsorted(pick: Picker, row: Row) -> dict[str, Any]:
    """A sorted sequence (one line, or as many as the values have), and values."""
    pair = [p.name for p in row.parameters if p.name in ("sorted_sequence", "boundaries")][0]
    other = [p for p in row.parameters if p.name == "self"][0]
    dtype = pick.choice(("float32", "int64", "float64", "int32"))
    length = pick.integer(0, 4)
    given: dict[str, Any] = {}
    if other.is_tensor:
        lines = draw_shape(pick, 0, 1) if pair == "sorted_sequence" and pick.boolean() else ()
        sequence = Operand(tuple(range(length)) * max(1, lines[0] if lines else 1), dtype, (*lines, length), ())
        count = length * (lines[0] if lines else 1)
        sequence = replace(sequence, values=sequence.values[:count], stride=(length or 1, 1) if lines else (1,))
        shape = (*lines, *draw_shape(pick, 1, 1)) if lines else draw_shape(pick)
        given[pair] = sequence
        given["self"] = draw_operand(pick, shape, draw_dtype(pick, "integer") if pick.wrong(6) else dtype)
    else:
        given[pair] = _rising(Operand(tuple(range(length)), dtype, (length,), (1,)))
        given["self"] = pick.choice((1, 2, 0.5, 3))
    for name in ("out_int32", "right"):
        if row.parameter(name) is not None and pick.boolean():
            given[name] = pick.boolean()
    if row.parameter("side") is not None and pick.chance(4):
        given["side"] = pick.choice(("left", "right", "up"))
    return given


@strategy("bincount")
def bincount(pick: Picker, row: Row) -> dict[str, Any]:
    """A line of small counts, perhaps with weights."""
    shape = draw_shape(pick, 2, 2) if pick.wrong(8) else draw_shape(pick, 1, 1)
    given: dict[str, Any] = {
        "self": draw_index(pick, shape, 5, "float32" if pick.wrong(8) else pick.choice(("int64", "int32", "uint8")))
    }
    if pick.boolean():
        given["weights"] = draw_operand(
            pick, (5,) if pick.wrong(8) else shape, pick.choice(("float32", "float64", "int64"))
        )
    if pick.boolean():
        given["minlength"] = pick.choice((0, 6))
    return given


@strategy("multinomial")
def multinomial(pick: Picker, row: Row) -> dict[str, Any]:
    """One or several distributions, and a number of samples."""
    shape = draw_shape(pick, 3, 3) if pick.wrong(8) else draw_shape(pick, 1, 2)
    shape = tuple(max(n, 1) for n in shape)
    replacement = pick.boolean()
    count = pick.integer(1, shape[-1] + (3 if replacement or pick.wrong(6) else 0))
    dtype = draw_dtype(pick) if pick.wrong(6) else pick.choice(("float32", "float64"))
    return {"self": draw_operand(pick, shape, dtype, "positive"), "num_samples": count, "replacement": replacement}


@strategy(
    "statistics.quantile", "statistics.nanquantile", "statistics.quantile_scalar", "statistics.nanquantile_scalar"
)
def quantile(pick: Picker, row: Row) -> dict[str, Any]:
    """A tensor of float32 or float64, and ranks in [0, 1]."""
    dtype = "float64" if pick.gradient else pick.choice(("float32", "float64"))
    shape = draw_shape(pick)
    given: dict[str, Any] = {"self": draw_operand(pick, shape, "int64" if pick.wrong() else dtype, "distinct")}
    if row.parameter("q").is_tensor:
        given["q"] = draw_operand(pick, draw_shape(pick, 0, 1), dtype, "probability")
    else:
        given["q"] = 1.5 if pick.wrong() else pick.choice((0.5, 0.25, 0.9))
    return complete(pick, row, given)


@strategy("statistics.cov", "statistics.corrcoef")
def covariance(pick: Picker, row: Row) -> dict[str, Any]:
    """Variables in rows, observations in columns."""
    shape = draw_shape(pick, 1, 3 if pick.wrong() else 2)
    shape = tuple(max(n, 2) for n in shape)
    given: dict[str, Any] = {"self": draw_operand(pick, shape, draw_dtype(pick, "floating"), "distinct")}
    if row.parameter("fweights") is not None and pick.chance(3):
        given["fweights"] = draw_operand(pick, shape[-1:], "int64", "positive")
    if row.parameter("aweights") is not None and pick.chance(3):
        given["aweights"] = draw_operand(pick, shape[-1:], "float64", "positive")
    if row.parameter("correction") is not None and pick.boolean():
        given["correction"] = pick.choice((1, 0))
    return given


@strategy(
    "reduction.norm_scalar", "reduction.norm_dim", "reduction.norm_dtype", "reduction.norm_dim_dtype", "reduction.dist"
)
def norm(pick: Picker, row: Row) -> dict[str, Any]:
    """Tensors and the order of a norm."""
    p = pick.choice((2, 1, 3.0, 0, float("inf"), float("-inf")) if not pick.gradient else (2, 1, 3.0))
    given: dict[str, Any] = {"p": p, "self": draw_operand(pick, draw_shape(pick), draw_dtype(pick, "floating"))}
    return complete(pick, row, given)


@strategy("hash_tensor")
def hash_tensor(pick: Picker, row: Row) -> dict[str, Any]:
    """Any tensor and dimensions of it."""
    made = draw_operand(pick, draw_shape(pick))
    dims = [dim for dim in range(made.ndim) if pick.boolean()]
    return {"self": made, "dim": dims, "keepdim": pick.boolean(), "mode": 1 if pick.wrong() else 0}
