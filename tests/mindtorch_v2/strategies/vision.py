"""Sampling images at given places: grids, unpooling."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from .cases import strategy
from .operands import Operand, contiguous, draw_index, draw_operand
from .picking import Picker
from .table import Row

_COORDINATES = (-1.23, -0.83, -0.37, -0.13, 0.21, 0.41, 0.77, 1.17)
"""Where bilinear samples of images of two or three elements are smooth, whether corners are aligned or not."""


def _floats(pick: Picker) -> str:
    if pick.wrong(8):
        return "int64"
    return "float64" if pick.gradient else pick.choice(("float32", "float64", "float32"))


def _grid(pick: Picker, shape: tuple[int, ...], dtype: str) -> Operand:
    made = draw_operand(pick, shape, dtype)
    if dtype == "int64":
        return made
    values = tuple(pick.choice(_COORDINATES) for _ in range(math.prod(shape)))
    return replace(made, values=values, shape=shape, stride=contiguous(shape), offset=0)


def _sampling(pick: Picker, ndim: int) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Images, a grid and the modes; and the shape of the samples."""
    dtype = _floats(pick)
    batch, channels = pick.integer(1, 2), pick.integer(1, 2)
    out = tuple(pick.integer(1, 2) for _ in range(ndim))
    sizes = tuple(pick.integer(2, 3) for _ in range(ndim))
    arguments = {
        "input": draw_operand(pick, (batch, channels, *sizes), dtype),
        "grid": _grid(pick, (3 if pick.wrong() else batch, *out, ndim + (1 if pick.wrong() else 0)), dtype),
        "interpolation_mode": pick.integer(0, 2 if ndim == 2 else 1),
        "padding_mode": pick.integer(0, 2),
        "align_corners": pick.boolean(),
    }
    return arguments, (batch, channels, *out)


@strategy("grid_sampler", "vision.grid_sampler")
def grid_sampler(pick: Picker, row: Row) -> dict[str, Any]:
    """Images or volumes and places in and around them."""
    return _sampling(pick, 3 if "3d" in row.name else 2)[0]


@strategy("grid_sampler_backward")
def grid_sampler_backward(pick: Picker, row: Row) -> dict[str, Any]:
    """The gradient of samples."""
    arguments, shape = _sampling(pick, 3 if "3d" in row.name else 2)
    mask = [pick.gradient or pick.boolean(), True]
    grad = draw_operand(pick, shape, arguments["input"].dtype)
    return {"grad_output": grad, **arguments, "output_mask": mask}


@strategy("affine_grid", "affine_grid_backward")
def affine_grid(pick: Picker, row: Row) -> dict[str, Any]:
    """Matrices, or the gradient of the grid that they make."""
    ndim, batch, dtype = pick.integer(2, 3), pick.integer(1, 2), _floats(pick)
    out = [pick.integer(1, 3) for _ in range(ndim)]
    backward = row.name.endswith("_backward")
    shape = (batch, *out, ndim) if backward else (3 if pick.wrong() else batch, ndim, ndim + 1)
    made = draw_operand(pick, shape, dtype)
    return {"grad" if backward else "theta": made, "size": [batch, 2, *out], "align_corners": pick.boolean()}


@strategy("max_unpool")
def max_unpool(pick: Picker, row: Row) -> dict[str, Any]:
    """Maxima and where they were, each at a place of its own."""
    ndim = 2 if "2d" in row.name else 3
    lead = [pick.integer(1, 2) for _ in range(pick.integer(1, 2))]
    sizes = [pick.integer(1, 2) for _ in range(ndim)]
    out = [2 * n for n in sizes]
    shape = (*lead, *sizes)
    indices = draw_index(pick, shape, math.prod(out))
    places: list[int] = []
    for _ in range(math.prod(lead)):
        places += pick.shuffled(range(math.prod(out)))[: math.prod(sizes)]
    indices = replace(indices, values=tuple(places), shape=shape, stride=contiguous(shape), offset=0)
    arguments = {"self": draw_operand(pick, shape, _floats(pick)), "indices": indices, "output_size": out}
    return arguments if ndim == 2 else {**arguments, "stride": [2] * 3, "padding": [0] * 3}
