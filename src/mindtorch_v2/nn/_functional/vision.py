"""Padding, resizing, grids, and windows as columns."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

from ..._generated import functions as _f
from ..._tensor import Tensor

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions by ``pad`` (last dimension first, before and after): constant, reflect, replicate, circular."""
    return _f.pad(input, pad, mode, value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, numbers.Integral) or (
        isinstance(value, Tensor) and not value.is_floating_point() and not value.is_complex()
    )


_SPATIAL = {"linear": 1, "bilinear": 2, "trilinear": 3}


def _resize_target(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool
) -> tuple[list[int], list[float | None]]:
    """The sizes to resize to, and the scale factors that the operators are to use (None: the ratio of the sizes)."""
    dim = input.dim() - 2
    spatial = input.shape[2:]
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * dim, [None] * dim
        if len(size) != dim:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(spatial)} and output size of {size}. Please provide input tensor in "
                "(N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        if not all(_is_integer(length) for length in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], "
                f"but got size with types {[type(length) for length in size]}"
            )
        return [int(length) for length in size], [None] * dim
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        scales = [scale_factor] * dim
    elif len(scale_factor) == dim:
        scales = list(scale_factor)
    else:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(spatial)} and scale_factor of shape {scale_factor}. Please provide input tensor in "
            "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    target = [math.floor(length * scale) for length, scale in zip(spatial, scales, strict=True)]
    return target, ([None] * dim if recompute else scales)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the spatial dimensions of ``(N, C, ...)`` to ``size`` or by ``scale_factor``.

    Modes: nearest, nearest-exact, area, linear (3-D input), bilinear and bicubic (4-D), trilinear (5-D).
    """
    corners = bool(align_corners)
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if recompute_scale_factor and size is not None and scale_factor is None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    target, scales = _resize_target(input, size, scale_factor, bool(recompute_scale_factor) or mode == "area")
    ndim = input.dim()
    dim = ndim - 2
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if 1 <= dim <= 3:
        if mode == "nearest":
            return getattr(_f, f"upsample_nearest{dim}d")(input, target, *scales)
        if mode == "nearest-exact":
            return getattr(_f, f"_upsample_nearest_exact{dim}d")(input, target, *scales)
        if mode == "area":
            return getattr(_f, f"adaptive_avg_pool{dim}d")(input, target)
        if _SPATIAL.get(mode) == dim:
            name = f"_upsample_{mode}2d_aa" if antialias else f"upsample_{mode}{dim}d"
            return getattr(_f, name)(input, target, corners, *scales)
        if mode == "bicubic" and dim == 2:
            name = "_upsample_bicubic2d_aa" if antialias else "upsample_bicubic2d"
            return getattr(_f, name)(input, target, corners, *scales)
        if mode == "lanczos" and dim == 2:
            if corners:
                raise ValueError("Lanczos mode does not support align_corners=True")
            if not antialias:
                raise ValueError("Lanczos mode requires antialias=True")
            return _f._upsample_lanczos2d_aa(input, target, corners, *scales)
        if mode in _SPATIAL:
            raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {_SPATIAL[mode] + 2}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
        "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact "
        f"(got {mode})"
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The former name of :func:`interpolate`."""
    _warn_of_upsample("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` with mode nearest."""
    _warn_of_upsample("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` with mode bilinear and aligned corners."""
    _warn_of_upsample("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_of_upsample(name: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)


def _corners_or_warn(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=3,
        )
        return False
    return align_corners


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Values of ``input`` (N, C, H, W) at the places ``grid`` (N, H', W', 2), whose coordinates go from -1 to 1."""
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    corners = _corners_or_warn(align_corners)
    return _f.grid_sampler(
        input, grid, GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode], corners
    )


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of affine matrices ``theta`` (N, 2, 3) or (N, 3, 4) for outputs of ``size``."""
    corners = _corners_or_warn(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    n = len(size) - 2
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if corners and min(size[-n:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _f.affine_grid_generator(theta, size, corners)


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of ``(N, C, H, W)`` as columns: ``(N, C * kernel, windows)``."""
    return _f.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sum columns of windows back into ``(N, C, *output_size)``."""
    return _f.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
