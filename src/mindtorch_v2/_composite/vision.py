"""Sampling images at given places, as other operators do it."""

from __future__ import annotations

from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Values of images, or of volumes, at the places of a grid."""
    sample = F.grid_sampler_3d if input.dim() == 5 else F.grid_sampler_2d
    return sample(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_2d_fallback(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sampler_2d`, whose kernel serves every machine."""
    return F.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
