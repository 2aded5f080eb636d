"""Products: shapes are written as letters, so that sizes agree where they must."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from .cases import strategy
from .generic import complete, draw_dim
from .operands import Symbol, broadcast, contiguous, draw_dtype, draw_operand, draw_shape, plain
from .picking import Picker
from .table import Row

LETTERS = {
    "mm": ("nk", "km"),
    "bmm": ("bnk", "bkm"),
    "mv": ("nk", "k"),
    "dot": ("k", "k"),
    "outer": ("n", "m"),
    "addmm": ("=nm", "nk", "km"),
    "addbmm": ("=nm", "bnk", "bkm"),
    "baddbmm": ("=bnm", "bnk", "bkm"),
    "addmv": ("=n", "nk", "k"),
    "addr": ("=nm", "n", "m"),
}
"""By rule, the shapes of the tensors in order; `=` marks one that broadcasts to the shape."""


def by_letters(pick: Picker, row: Row, patterns: tuple[str, ...], hint: str = "floating") -> dict[str, Any]:
    """Tensors whose shapes follow the patterns, of one dtype; rarely a size, a dimension or a dtype is wrong."""
    # PyTorch's addmv forgets the shape of a product over nothing.
    some = pick.gradient or row.rule == "addmv"
    sizes = {letter: pick.choice((2, 3, 1) if some else (2, 3, 1, 4, 0)) for letter in "bnkm"}
    dtype = draw_dtype(pick, hint)
    arguments: dict[str, Any] = {}
    for parameter, pattern in zip(row.tensors, patterns):
        shape = [sizes[letter] for letter in pattern.lstrip("=")]
        if pattern.startswith("="):
            shape = list(broadcast(pick, shape))
        if pick.wrong(16):
            if shape and pick.boolean():
                shape[pick.integer(0, len(shape) - 1)] += 1
            else:
                shape.append(2)
        arguments[parameter.name] = draw_operand(pick, shape, draw_dtype(pick) if pick.wrong(16) else dtype)
    return arguments


@strategy(*LETTERS)
def product(pick: Picker, row: Row) -> dict[str, Any]:
    """A product of fixed numbers of dimensions."""
    return complete(pick, row, by_letters(pick, row, LETTERS[row.rule], "any" if pick.chance(3) else "floating"))


@strategy("matmul", "matmul.linalg_matmul")
def matmul(pick: Picker, row: Row) -> dict[str, Any]:
    """Vectors, matrices and batches that broadcast."""
    pair = pick.choice(
        (("nk", "km"), ("k", "k"), ("k", "km"), ("nk", "k"), ("bnk", "km"), ("nk", "bkm"), ("bnk", "bkm"), ("bnk", "k"))
    )
    return by_letters(pick, row, pair, "any" if pick.chance(4) else "floating")


@strategy("linear")
def linear(pick: Picker, row: Row) -> dict[str, Any]:
    """Rows, a weight of (out, in), and perhaps a bias."""
    arguments = by_letters(pick, row, (pick.choice(("nk", "k", "bnk")), "mk", "m"))
    if pick.boolean():
        del arguments["bias"]
    return arguments


@strategy("weight_int8pack_mm")
def weight_int8pack_mm(pick: Picker, row: Row) -> dict[str, Any]:
    """Rows, a weight of bytes, and a scale for each of its rows."""
    m, n, k = (pick.integer(0, 9) for _ in range(3))
    dtype = pick.choice(("float32", "float16", "bfloat16")) if not pick.wrong(8) else draw_dtype(pick)
    return {
        "self": draw_operand(pick, (m, k) if not pick.wrong(10) else (k,), dtype),
        "mat2": draw_operand(pick, (n, k if not pick.wrong(10) else k + 1), "int8" if not pick.wrong(10) else "int32"),
        "scales": draw_operand(pick, (n,), dtype if not pick.wrong(10) else "float64"),
    }


@strategy("cross", "matmul.cross", "matmul.vecdot")
def cross(pick: Picker, row: Row) -> dict[str, Any]:
    """Two tensors of three elements along one dimension."""
    shape = list(draw_shape(pick, 1, 3))
    dim = draw_dim(pick, len(shape))
    if -len(shape) <= dim < len(shape) and not pick.wrong(8):
        shape[dim] = 3
    dtype = draw_dtype(pick)
    names = [p.name for p in row.tensors]
    other = shape if row.rule == "matmul.cross" else [1 if n != 3 and pick.chance(4) else n for n in shape]
    return {names[0]: draw_operand(pick, shape, dtype), names[1]: draw_operand(pick, other, dtype), "dim": dim}


@strategy("cdist", "matmul.cdist")
def cdist(pick: Picker, row: Row) -> dict[str, Any]:
    """Two sets of points, perhaps in batches."""
    arguments = by_letters(pick, row, pick.choice((("nk", "mk"), ("bnk", "bmk"))))
    return {
        **arguments,
        "p": pick.choice((2.0, 1.0, 3.0)),
        **({"compute_mode": None} if not row.parameter("compute_mode").has_default else {}),
    }


@strategy("matmul.inner")
def inner(pick: Picker, row: Row) -> dict[str, Any]:
    """Tensors that share their last dimension."""
    return by_letters(pick, row, pick.choice((("nk", "mk"), ("k", "k"), ("bnk", "k"))))


@strategy("matmul.kron")
def kron(pick: Picker, row: Row) -> dict[str, Any]:
    """Two tensors of any shapes."""
    dtype = draw_dtype(pick)
    return {p.name: draw_operand(pick, draw_shape(pick, 0, 2), dtype) for p in row.tensors}


@strategy("matmul.tensordot")
def tensordot(pick: Picker, row: Row) -> dict[str, Any]:
    """Two tensors and the dimensions that they are summed over."""
    arguments = by_letters(pick, row, ("nkb", "bkm"))
    return {**arguments, "dims_self": [1, 2], "dims_other": pick.choice(([1, 0], [-2, 0]))}


@strategy("matmul.multi_dot")
def multi_dot(pick: Picker, row: Row) -> dict[str, Any]:
    """A chain of matrices that fit."""
    sizes = [pick.integer(1, 3) for _ in range(pick.integer(3, 4))]
    dtype = draw_dtype(pick, "floating")
    chain = [draw_operand(pick, (a, b + (1 if pick.wrong(16) else 0)), dtype) for a, b in zip(sizes, sizes[1:])]
    return {row.parameters[0].name: chain}


@strategy("einsum.einsum")
def einsum(pick: Picker, row: Row) -> dict[str, Any]:
    """An equation, and tensors for its letters."""
    equation, *shapes = pick.choice(
        (
            ("ij,jk->ik", (2, 3), (3, 4)),
            ("ij->ji", (2, 3)),
            ("ii->i", (3, 3)),
            ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
            ("i,j,k->kij", (2,), (3,), (1,)),
            ("ij->", (2, 3)),
            ("bij,bjk", (2, 3, 2), (2, 2, 3)),
            ("ij,kj->ik", (2, 3), (2, 4)),
        )
        if not pick.valid
        else (("ij,jk->ik", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("i,j,k->kij", (2,), (3,), (1,)))
    )
    dtype = draw_dtype(pick, "floating")
    return {"equation": equation, "tensors": [draw_operand(pick, shape, dtype) for shape in shapes]}


@strategy("matmul.bilinear")
def bilinear(pick: Picker, row: Row) -> dict[str, Any]:
    """Two inputs, a weight of (out, in1, in2), and perhaps a bias."""
    arguments = by_letters(pick, row, ("bn", "bm", "knm", "k"))
    if pick.boolean():
        del arguments["bias"]
    return arguments


@strategy("matmul.pairwise_distance", "matmul.cosine_similarity")
def rows(pick: Picker, row: Row) -> dict[str, Any]:
    """Two tensors that are compared row by row."""
    shape = draw_shape(pick, 2, 3)
    dtype = draw_dtype(pick, "floating")
    names = [p.name for p in row.tensors]
    return complete(
        pick,
        row,
        {names[0]: draw_operand(pick, shape, dtype), names[1]: draw_operand(pick, broadcast(pick, shape), dtype)},
    )


@strategy("pdist", "matmul.pdist")
def pdist(pick: Picker, row: Row) -> dict[str, Any]:
    """A set of points."""
    dtype = "float16" if pick.wrong() else pick.choice(("float64",) if pick.gradient else ("float32", "float64"))
    shape = (pick.integer(1, 4), pick.integer(1, 3))
    # PyTorch's internal operator takes contiguous points for granted.
    made = plain(draw_operand(pick, shape, dtype))
    return {"self": made, "p": pick.choice((2.0, 1.0, 3.0, 0.5, 0.0 if not pick.gradient else 2.0))}


@strategy("pdist_backward")
def pdist_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of distances of pairs."""
    n, k, dtype = pick.integer(1, 4), pick.integer(1, 3), pick.choice(("float32", "float64"))
    pairs = n * (n - 1) // 2
    grad, points, distances = (
        plain(draw_operand(pick, shape, dtype, "positive")) for shape in ((pairs,), (n, k), (pairs,))
    )
    return {"grad": grad, "self": points, "p": pick.choice((2.0, 1.0, 3.0)), "pdist": distances}


@strategy("matmul.scaled_mm", "matmul.scaled_mm_v2")
def scaled_mm(pick: Picker, row: Row) -> dict[str, Any]:
    """Matrices of small numbers with scales."""
    rows, inner, columns = pick.integer(1, 3), pick.integer(1, 3), pick.integer(1, 3)
    by_row = pick.boolean()
    kind = "float32" if pick.wrong() else "float8_e4m3fn"
    scales = [
        replace(
            draw_operand(pick, shape, "float32", "positive"),
            values=(0.5,) * math.prod(shape),
            stride=contiguous(shape),
            offset=0,
        )
        for shape in (((rows, 1), (1, columns)) if by_row else ((), ()))
    ]
    numbers = [
        replace(
            draw_operand(pick, shape, "float32"),
            values=tuple(pick.integer(-3, 3) for _ in range(math.prod(shape))),
            stride=contiguous(shape),
            offset=0,
            dtype=kind,
        )
        for shape in ((rows, inner), (inner, columns))
    ]
    arguments: dict[str, Any] = {"self": numbers[0], "mat2": numbers[1], "bias": None, "out_dtype": Symbol("float32")}
    if row.parameter("recipe_a") is None:
        return {**arguments, "scale_a": scales[0], "scale_b": scales[1]}
    recipe: dict[str, Any] = {
        f"{name}_{side}": [int(by_row) if name == "recipe" else 0] for name in ("recipe", "swizzle") for side in "ab"
    }
    return {**arguments, **recipe, "scale_a": [scales[0]], "scale_b": [scales[1]]}
