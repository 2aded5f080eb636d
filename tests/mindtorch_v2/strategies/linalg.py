"""Matrices for factorisations and solvers: well conditioned, with distinct eigenvalues, now and then of the wrong shape or dtype."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .cases import strategy
from .generic import complete
from .operands import Operand, draw_dtype, draw_operand, plain
from .picking import Picker
from .table import Row

KINDS = {
    "linalg_cholesky_ex": "positive",
    "linalg_eigh": "symmetric",
    "linalg_qr": "tall",
    "linalg_svd": "any",
    "linalg_geqrf": "any",
    "linalg_lu": "any",
    "linalg_lu_factor_ex": "any",
    "linalg_pinv": "any",
    "linalg_lstsq": "tall",
}
"""By rule, what the matrix is; square and regular by default."""


def matrix(pick: Picker, kind: str = "square") -> Operand:
    """One matrix or a batch of two."""
    n = pick.choice((2, 3, 1) if pick.gradient else (2, 3, 1, 0))
    m = n
    if kind == "tall":
        n = m + pick.integer(0, 1)
    elif kind == "any":
        n, m = n + pick.integer(0, 1), m + pick.integer(0, 1)
    batch = [2] if pick.chance(3) else []
    dtype = draw_dtype(pick, "floating") if pick.gradient or not pick.wrong(6) else draw_dtype(pick)
    if dtype in ("float16", "bfloat16") and not pick.wrong(4):
        dtype = "float32"
    if not pick.gradient and pick.wrong(8):
        return draw_operand(pick, [n] if pick.boolean() else [*batch, n, m + 1], dtype)
    values = []
    for b in range(2 if batch else 1):
        shift = pick.integer(0, 3) / 4
        rows = [
            [(((3 * i + 5 * j + b) % 7) - 2.5) / 8 + (3 + 1.5 * i + shift if i == j else 0) for j in range(m)]
            for i in range(n)
        ]
        if kind in ("symmetric", "positive"):
            rows = [[(rows[i][j] + rows[j][i]) / 2 for j in range(n)] for i in range(n)]
        values += [value for row in rows for value in row]
    if not dtype.startswith(("float", "complex", "bfloat")):
        values = [value > 3 if dtype == "bool" else int(abs(value)) for value in values]
    elif dtype.startswith("complex"):
        values = [complex(value) for value in values]
    strides = [1]
    for size in (m, *([n] if batch else [])):
        strides.append(strides[-1] * max(size, 1))
    shape = (*batch, n, m)
    return Operand(tuple(values), dtype, shape, tuple(reversed(strides[: len(shape)])), 0)


@strategy(
    "linalg_cholesky_ex",
    "linalg_cholesky_inverse",
    "linalg_inv_ex",
    "linalg_det",
    "linalg_slogdet",
    "linalg_qr",
    "linalg_svd",
    "linalg_eigh",
    "linalg_eig",
    "linalg_geqrf",
    "linalg_lu",
    "linalg_lu_factor_ex",
    "linalg_pinv",
    "linalg_matrix_exp",
    "linalg.linalg_cholesky",
    "linalg.cholesky",
    "linalg.linalg_inv",
    "linalg.det",
    "linalg.slogdet",
    "linalg.logdet",
    "linalg.linalg_lu_factor",
    "linalg.lu_with_info",
    "linalg.qr",
    "linalg.svd",
    "linalg.linalg_svd",
    "linalg.linalg_svdvals",
    "linalg.linalg_eigh",
    "linalg.linalg_eigvalsh",
    "linalg.linalg_eigvals",
    "linalg.pinv_rcond",
    "linalg.pinverse",
    "linalg.matrix_rank",
    "linalg.matrix_rank_tol",
    "linalg.matrix_norm",
    "linalg.linalg_norm",
    "linalg.nuclear_norm",
    "linalg.nuclear_norm_all",
    "linalg.linalg_cond",
    "linalg.matrix_power",
    "linalg.matrix_exp",
)
def one(pick: Picker, row: Row) -> dict[str, Any]:
    """One matrix, or a batch."""
    kind = KINDS.get(row.rule, "positive" if "cholesky" in row.rule or "h" == row.rule[-1] else "square")
    given: dict[str, Any] = {row.tensors[0].name: matrix(pick, kind)}
    options = {
        "UPLO": ("L", "U"),
        "mode": ("reduced",) if pick.gradient else ("reduced", "complete", "r"),
        "driver": (None,),
        "atol": (None,),
        "rtol": (None,),
        "rcond": (0.01,),
        "tol": (0.01,),
        "hermitian": (False,),
        "pivot": (True,),
        "check_errors": (False,),
        "compute_uv": (True,),
        "compute_v": (True,),
        "full_matrices": (False,) if pick.gradient else (False, True),
        "n": (2, 3, -1, 0, 1),
        "dim": ((-2, -1),),
        "p": (None,),
    }
    for parameter in row.parameters:
        if parameter.name == "ord":
            given["ord"] = pick.choice(("fro", "nuc") if parameter.base == "str" else (2, 1, -1, -2))
        elif parameter.name == "p" and parameter.base == "str":
            given["p"] = pick.choice(("fro", "nuc"))
        elif parameter.name in options and not parameter.is_tensor:
            given[parameter.name] = pick.choice(options[parameter.name])
        elif parameter.is_tensor and parameter.name in ("rcond", "tol"):
            given[parameter.name] = draw_operand(pick, (), "float32", "positive")
        elif parameter.is_tensor and parameter.optional:
            given[parameter.name] = None
    return complete(pick, row, given)


@strategy(
    "linalg_solve_ex",
    "linalg_cholesky_solve",
    "linalg_solve_triangular",
    "linalg_lstsq",
    "linalg.linalg_solve",
    "linalg.triangular_solve",
)
def pair(pick: Picker, row: Row) -> dict[str, Any]:
    """A matrix and a right side."""
    made = matrix(pick, "tall" if "lstsq" in row.rule else "square")
    rows = made.shape[-2] if len(made.shape) > 1 else 2
    sides = pick.integer(1, 2)
    shape = [*made.shape[:-2], rows + (1 if pick.wrong(8) else 0), sides]
    other = draw_operand(pick, shape, made.dtype if not pick.wrong(12) else draw_dtype(pick))
    first, second = row.tensors[0].name, row.tensors[1].name
    swapped = row.rule in ("linalg.triangular_solve", "linalg_cholesky_solve")
    given: dict[str, Any] = {first: other, second: made} if swapped else {first: made, second: other}
    for name, values in (("left", (True,)), ("upper", (True, False)), ("driver", (None,)), ("rcond", (None,))):
        if row.parameter(name) is not None:
            given[name] = pick.choice(values)
    return complete(pick, row, given)


@strategy("linalg_lu_unpack", "linalg.linalg_lu_solve", "linalg.lu_solve")
def factored(pick: Picker, row: Row) -> dict[str, Any]:
    """A matrix in the place of L and U, pivots, and a right side."""
    made = matrix(pick)
    n = min(made.shape[-2:])
    lead = made.shape[:-2]
    pivots = Operand(
        tuple(range(1, n + 1)) * (lead[0] if lead else 1), "int32", (*lead, n), ((n, 1) if lead else (1,)), 0
    )
    given: dict[str, Any] = {}
    for parameter in row.tensors:
        if parameter.name.startswith("LU") and "piv" not in parameter.name:
            given[parameter.name] = made
        elif "piv" in parameter.name:
            given[parameter.name] = pivots
        else:
            given[parameter.name] = draw_operand(pick, (*lead, n, 2), made.dtype)
    for name, value in (("left", True), ("adjoint", False), ("unpack_data", True), ("unpack_pivots", True)):
        if row.parameter(name) is not None:
            given[name] = value
    return complete(pick, row, given)


@strategy("linalg.householder_product", "linalg.orgqr", "linalg.ormqr")
def reflectors(pick: Picker, row: Row) -> dict[str, Any]:
    """Reflectors, their factors, and what they are applied to."""
    made = matrix(pick, "tall")
    lead, m = made.shape[:-2], made.shape[-1]
    names = [p.name for p in row.tensors]
    given: dict[str, Any] = {names[0]: made, names[1]: draw_operand(pick, (*lead, m), made.dtype)}
    if len(names) > 2:
        given[names[2]] = draw_operand(pick, (*lead, made.shape[-2] if len(made.shape) > 1 else 2, 2), made.dtype)
        given |= {"left": True, "transpose": pick.boolean()}
    return complete(pick, row, given)


@strategy("linalg.linalg_vander", "linalg.vander")
def vander(pick: Picker, row: Row) -> dict[str, Any]:
    """A vector and a number of powers."""
    made = draw_operand(
        pick, (pick.integer(2, 3),), draw_dtype(pick, "floating") if pick.gradient else draw_dtype(pick)
    )
    return complete(pick, row, {"x": made, "N": pick.choice((None, 3, 2))})


@strategy("linalg.linalg_tensorinv", "linalg.linalg_tensorsolve")
def tensors(pick: Picker, row: Row) -> dict[str, Any]:
    """A map of one dimension to one, as tensors."""
    made = matrix(pick)
    if row.rule == "linalg.linalg_tensorinv":
        return {"self": made, "ind": 1}
    return {"self": made, "other": draw_operand(pick, made.shape[:1], made.dtype), "dims": None}


@strategy("histogram")
def histogram(pick: Picker, row: Row) -> dict[str, Any]:
    """Values, and a number of bins or their edges."""
    made = draw_operand(
        pick, (pick.integer(0, 4),), draw_dtype(pick, "floating") if pick.wrong(6) else "float32", "probability"
    )
    given: dict[str, Any] = {"self": made, "range": None, "weight": None}
    if row.parameter("bins").is_tensor:
        given["bins"] = Operand((-1.0, 0.0, 0.5, 2.0), made.dtype, (4,), (1,), 0)
    else:
        given["bins"] = 0 if pick.wrong(8) else pick.integer(1, 5)
    return complete(pick, row, {k: v for k, v in given.items() if row.parameter(k) is not None})


@strategy("linalg_ldl_factor_ex", "ldl.linalg_ldl_factor")
def ldl_factor(pick: Picker, row: Row) -> dict[str, Any]:
    """Matrices, of which the lower triangle is read, with pivots that do not vanish."""
    n = pick.integer(1, 4)
    lead = (2,) if pick.chance(3) else ()
    dtype = "int64" if pick.wrong() else pick.choice(("float64", "float32", "complex128"))
    made = draw_operand(
        pick, (*lead, n, n + (1 if pick.wrong() else 0)), dtype, "nonzero" if dtype != "complex128" else "any"
    )
    return {"self": made, "hermitian": pick.boolean() and dtype != "complex128"}


@strategy("linalg_ldl_solve")
def ldl_solve(pick: Picker, row: Row) -> dict[str, Any]:
    """Factors whose blocks have one row, and right sides."""
    n, k, dtype = pick.integer(1, 3), pick.integer(1, 2), pick.choice(("float64", "float32"))
    lead = (2,) if pick.chance(3) else ()
    pivots = plain(draw_operand(pick, (*lead, n), "int32"))
    rows = tuple(pick.integer(at % n + 1, n) for at in range(pivots.numel))
    return {
        "LD": draw_operand(pick, (*lead, n, n), dtype, "nonzero"),
        "pivots": replace(pivots, values=rows),
        "B": draw_operand(pick, (n + (1 if pick.wrong() else 0), k), dtype),
        "hermitian": pick.boolean(),
    }
