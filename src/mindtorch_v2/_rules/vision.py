"""Rules of what samples images at given places: grids, unpooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._determinism import alert
from ._common import not_implemented, shape_text
from .nn import suggested_strides
from .spec import Spec, rule

_INTERPOLATIONS = 3
"""bilinear, nearest, bicubic."""


def _check_grid(input: Any, grid: Any, interpolation_mode: int, ndim: int, kernel: str) -> None:
    """RuntimeError unless the grid has a place of `ndim` coordinates for each image of the input."""
    shapes = f"input with sizes {shape_text(input.shape)} and grid with sizes {shape_text(grid.shape)}"
    if not input.dim() or not grid.dim() or input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {shapes}")
    if grid.shape[-1] != input.dim() - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.dim() - 2} in last dimension, but got grid with sizes "
            f"{shape_text(grid.shape)}"
        )
    for dim, size in enumerate(input.shape[2:], 2):
        if size <= 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{shape_text(input.shape)} with dimension {dim} being empty"
            )
    if input.dim() != ndim + 2 or grid.dim() != ndim + 2:
        raise RuntimeError(
            f"grid_sampler(): expected {ndim + 2}D input and grid with same number of dimensions, but got {shapes}"
        )
    if ndim == 3 and interpolation_mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not 0 <= interpolation_mode < _INTERPOLATIONS:
        raise RuntimeError(f"grid_sampler(): unknown interpolation mode {interpolation_mode}")
    if not input.dtype.is_floating_point:
        raise not_implemented(kernel, input.dtype)
    if grid.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.cpp} but found {grid.dtype.cpp}")


@rule(flops="2 * numel(out) * (1, 4, 16)[(1, 0, 2)[interpolation_mode]] * (ndim - 1)", batch="batches")
def grid_sampler(input: Any, grid: Any, interpolation_mode: int, ndim: int) -> Spec:
    """input [batch, channels, ...] at the places grid [batch, ..., ndim], of `ndim` dimensions: [batch, channels, ...]."""
    kernel = "grid_sampler_2d_cpu_kernel_impl" if ndim == 2 else "grid_sampler3d_cpu"
    _check_grid(input, grid, interpolation_mode, ndim, kernel)
    return Spec((*input.shape[:2], *grid.shape[1:-1]), input.dtype, None, input.dtype.opmath)


@rule(flops="4 * numel(grad) * (1, 4, 16)[(1, 0, 2)[interpolation_mode]] * (ndim - 1)", batch="batches")
def grid_sampler_backward(
    grad: Any, input: Any, grid: Any, interpolation_mode: int, output_mask: Sequence[bool], ndim: int
) -> tuple[Spec | None, Spec]:
    """The gradients of input (None unless it is in the mask) and grid, contiguous."""
    kernel = "grid_sampler_2d_backward_cpu_kernel_impl" if ndim == 2 else "grid_sampler_3d_backward_cpu"
    _check_grid(input, grid, interpolation_mode, ndim, kernel)
    wanted = (*input.shape[:2], *grid.shape[1:-1])
    if tuple(grad.shape) != wanted:
        raise RuntimeError(f"expected a gradient of shape {shape_text(wanted)}, but got {shape_text(grad.shape)}")
    compute = input.dtype.opmath
    of_input = Spec(tuple(input.shape), input.dtype, None, compute) if output_mask[0] else None
    return of_input, Spec(tuple(grid.shape), grid.dtype, None, compute)


@rule(flops="2 * numel(out) * (len(size) - 1)", batch="batches(1)")
def affine_grid(theta: Any, size: Sequence[int]) -> Spec:
    """The grid [batch, ..., ndim] that affine matrices theta [batch, ndim, ndim + 1] make for images of `size`."""
    sizes = [int(length) for length in size]
    if len(sizes) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    ndim = len(sizes) - 2
    if theta.dim() != 3:
        raise RuntimeError(f"batch2 must be a 3D tensor, but got {theta.dim()}D")
    if theta.shape[0] != sizes[0] or theta.shape[2] != ndim + 1:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{sizes[0]}, {ndim + 1}] but got: "
            f"[{theta.shape[0]}, {theta.shape[2]}]."
        )
    if theta.shape[1] != ndim:
        raise RuntimeError(
            f"shape '{shape_text([sizes[0], *sizes[2:], ndim])}' is invalid for input of size "
            f"{sizes[0] * _volume(sizes) * theta.shape[1]}"
        )
    return Spec((sizes[0], *sizes[2:], ndim), theta.dtype, None, theta.dtype.opmath)


def _volume(sizes: Sequence[int]) -> int:
    count = 1
    for length in sizes[2:]:
        count *= length
    return count


@rule(flops="2 * numel(grad) * (len(size) - 1)")
def affine_grid_backward(grad: Any, size: Sequence[int]) -> Spec:
    """The gradient of the matrices, from that of the grid; it lies as its transpose does."""
    sizes = [int(length) for length in size]
    if len(sizes) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    ndim = len(sizes) - 2
    if tuple(grad.shape) != (sizes[0], *sizes[2:], ndim):
        raise RuntimeError("Expected grad to have the shape of the grid")
    return Spec((sizes[0], ndim, ndim + 1), grad.dtype, (ndim * (ndim + 1), 1, ndim), grad.dtype.opmath)


@rule(flops="0", batch="images")
def max_unpool(
    self: Any,
    output_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (),
    indices: Any = None,
    ndim: int = 2,
) -> Spec:
    """Maxima put where max pooling found them (int64 indices into the flat image), zeros elsewhere."""
    alert(f"max_unpooling{ndim}d_forward_out")
    words = {2: "exactly two elements (height, width)", 3: "exactly three elements (depth, height, width)"}[ndim]
    wide = indices.dtype is _d.int64
    if not wide:
        found = f" but got: {indices.dtype.cpp}" if ndim == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{found}")
    if ndim == 2:
        if len(output_size) != 2:
            raise RuntimeError(f"There should be {words} in output_size, but got {len(output_size)} elements.")
        _check_images(self, ndim)
        _check_places(self, indices)
    else:
        _check_images(self, ndim)
        for name, value, colon in (
            ("output_size", output_size, ""),
            ("stride", stride, ":"),
            ("padding", padding, ":"),
        ):
            if len(value) != 3:
                raise RuntimeError(f"There should be {words} in {name}, but got{colon} {len(value)} elements.")
        _check_places(self, indices)
    for dim in range(1 if self.dim() == ndim + 2 else 0, self.dim()):
        if not self.shape[dim]:
            raise RuntimeError(
                f"max_unpooling{ndim}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, "
                f"but got {shape_text(self.shape)} with dimension {dim} being empty."
            )
    if ndim == 3 and any(step <= 0 for step in stride):
        raise RuntimeError(f"strides should be greater than zero, but got stride: {shape_text(stride)}")
    if any(length < 0 for length in output_size):
        raise RuntimeError(
            f"max_unpooling{ndim}d(): output_size must contain non-negative spatial dimensions, but got output_size="
            f"({', '.join(str(int(length)) for length in output_size)})"
        )
    if not self.dtype.is_floating_point:
        raise not_implemented(f"max_unpool{ndim}d", self.dtype)
    shape = (*self.shape[:-ndim], *map(int, output_size))
    return Spec(shape, self.dtype, suggested_strides(self, shape) if ndim == 2 else None)


def _check_images(self: Any, ndim: int) -> None:
    if self.dim() not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"Input to max_unpooling{ndim}d should be a {ndim + 1}d or {ndim + 2}d Tensor, but got a tensor with "
            f"{self.dim()} dimensions."
        )


def _check_places(self: Any, indices: Any) -> None:
    if tuple(indices.shape) != tuple(self.shape):
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({shape_text(self.shape)}) but got indices "
            f"tensor with shape: {shape_text(indices.shape)}"
        )
