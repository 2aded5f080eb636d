"""Convolutions with named padding, pooling of one dimension, resizing by factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mindtorch_v2._autograd.formulas.nn import convolution_second
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules import pooling as rules
from mindtorch_v2._tensor import Tensor

# Convolution


def _named_padding(
    conv: Callable[..., Tensor],
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: str,
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """`same` keeps the size, `valid` does not pad. An odd total puts the larger half behind."""
    if padding == "valid":
        return conv(input, weight, bias, stride, [0] * dims, dilation, groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if input.dim() not in (dims + 1, dims + 2):
        return conv(input, weight, bias, stride, [0] * dims, dilation, groups)  # which refuses it
    if weight.dim() != dims + 2:
        shape = list(input.shape) if input.dim() == dims + 2 else [1, *input.shape]
        raise RuntimeError(
            f"Expected {weight.dim()}-dimensional input for {weight.dim()}-dimensional weight{list(weight.shape)}, but got "
            f"{len(shape)}-dimensional input of size {shape} instead"
        )
    steps, gaps = _list(stride, dims), _list(dilation, dims)
    if any(step != 1 for step in steps):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [gap * (n - 1) for gap, n in zip(gaps, weight.shape[2:], strict=True)]
    if all(total % 2 == 0 for total in totals):
        return conv(input, weight, bias, stride, [total // 2 for total in totals], dilation, groups)
    pad: list[int] = []
    for total in reversed(totals):
        pad += [0, total % 2]
    return conv(F.constant_pad_nd(input, pad, 0), weight, bias, stride, [t // 2 for t in totals], dilation, groups)


def _list(value: Any, dims: int) -> list[int]:
    if isinstance(value, int):
        return [value] * dims
    values = list(value)
    return values * dims if len(values) == 1 else values


def conv1d_padding(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: str = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """conv1d with padding 'same' or 'valid'."""
    return _named_padding(F.conv1d, 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d_padding(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: str = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """conv2d with padding 'same' or 'valid'."""
    return _named_padding(F.conv2d, 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d_padding(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: str = "valid",
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """conv3d with padding 'same' or 'valid'."""
    return _named_padding(F.conv3d, 3, input, weight, bias, stride, padding, dilation, groups)


def convolution_flags(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
    allow_tf32: bool,
) -> Tensor:
    """`convolution`; the last four arguments concern other devices."""
    if input.dtype.is_complex and not transposed and weight.dim() < 5:
        raise NotImplementedError(f"\"slow_conv2d_cpu\" not implemented for '{input.dtype.cpp}'")
    return F.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


# Pooling


def max_pool1d(
    self: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest of each window."""
    rules.check_max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode)
    return F.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool2d(
    self: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest of each window."""
    return F.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool3d(
    self: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest of each window."""
    return F.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def _check_vectors(name: str, self: Tensor) -> None:
    if self.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {self.dim()}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {name})"
        )


def _first(value: Any) -> int:
    return value if isinstance(value, int) else value[0]


def avg_pool1d(
    self: Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window."""
    _check_vectors("avg_pool1d", self)
    for name, value in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if not isinstance(value, int) and len(value) > 1:
            raise RuntimeError(f"avg_pool1d() argument '{name}' should contain one int (got {len(value)})")
    step = [1, _first(stride)] if isinstance(stride, int) or len(stride) else []
    pooled = F.avg_pool2d(
        F.unsqueeze(self, -2), [1, _first(kernel_size)], step, [0, _first(padding)], ceil_mode, count_include_pad
    )
    return F.squeeze(pooled, -2)


def _check_size(name: str, output_size: Any, dims: int) -> None:
    if not isinstance(output_size, int) and len(output_size) != dims:
        raise RuntimeError(f"{name}: output_size must be {dims}")


def adaptive_avg_pool1d(self: Tensor, output_size: Any) -> Tensor:
    """Means of `output_size` windows that cover the last dimension."""
    _check_size("adaptive_avg_pool1d", output_size, 1)
    _check_vectors("adaptive_avg_pool1d", self)
    return F.squeeze(F.adaptive_avg_pool2d(F.unsqueeze(self, -2), [1, _first(output_size)]), -2)


def adaptive_max_pool1d(self: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    """(maxima, indices) of `output_size` windows that cover the last dimension."""
    _check_size("adaptive_max_pool1d", output_size, 1)
    _check_vectors("adaptive_max_pool1d", self)
    rules.refuse_empty("adaptive_max_pool1d", self.shape)
    values, indices = F.adaptive_max_pool2d(F.unsqueeze(self, -2), [1, _first(output_size)])
    return F.squeeze(values, -2), F.squeeze(indices, -2)


def adaptive_avg_pool2d(self: Tensor, output_size: Any) -> Tensor:
    """Means of windows that cover the last two dimensions."""
    _check_size("adaptive_avg_pool2d", output_size, 2)
    if list(output_size) == [1, 1] and self.dim() in (3, 4) and self.numel():
        means = F.mean(self, [-1, -2], True)
        if (
            self.dim() == 4 and self.stride(1) == 1 and not self.is_contiguous()
        ):  # of channels last: the last two strides say so
            channels = self.size(1)
            means = F.as_strided(means, list(means.shape), [channels, 1, channels, channels])
        return means
    return F._adaptive_avg_pool2d(self, output_size)


def adaptive_avg_pool3d(self: Tensor, output_size: Any) -> Tensor:
    """Means of windows that cover the last three dimensions."""
    _check_size("adaptive_avg_pool3d", output_size, 3)
    if list(output_size) == [1, 1, 1] and self.dim() in (4, 5) and self.numel():
        return F.mean(self, [-1, -2, -3], True)
    return F._adaptive_avg_pool3d(self, output_size)


# Resizing


def _sizes(
    input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None
) -> tuple[list[int], list[float | None]]:
    """(sizes, factors) of the spatial dimensions; exactly one of the two must be given."""
    dims = input.dim() - 2
    if (output_size is None) == (scale_factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if output_size is not None:
        return list(output_size), [None] * dims
    assert scale_factors is not None
    factors = list(scale_factors)
    if len(factors) != dims:
        raise RuntimeError("Must specify exactly one scale factor for each spatial dimension")
    return [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)], list(factors)


def upsample_nearest1d_vec(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    """Nearest neighbours, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F.upsample_nearest1d(input, sizes, scales=factors[0])


def upsample_nearest2d_vec(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    """Nearest neighbours, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F.upsample_nearest2d(input, sizes, *factors)


def upsample_nearest3d_vec(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    """Nearest neighbours, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F.upsample_nearest3d(input, sizes, *factors)


def upsample_nearest_exact1d_vec(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    """Nearest neighbours of pixel centres, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F._upsample_nearest_exact1d(input, sizes, scales=factors[0])


def upsample_nearest_exact2d_vec(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    """Nearest neighbours of pixel centres, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F._upsample_nearest_exact2d(input, sizes, *factors)


def upsample_nearest_exact3d_vec(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    """Nearest neighbours of pixel centres, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F._upsample_nearest_exact3d(input, sizes, *factors)


def upsample_linear1d_vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    """Linear interpolation, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F.upsample_linear1d(input, sizes, align_corners, scales=factors[0])


def upsample_bilinear2d_vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    """Linear interpolation in two dimensions, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F.upsample_bilinear2d(input, sizes, align_corners, *factors)


def upsample_bicubic2d_vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    """Cubic interpolation in two dimensions, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F.upsample_bicubic2d(input, sizes, align_corners, *factors)


def upsample_trilinear3d_vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    """Linear interpolation in three dimensions, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F.upsample_trilinear3d(input, sizes, align_corners, *factors)


def upsample_bilinear2d_aa_vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    """Linear interpolation in two dimensions without aliasing, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F._upsample_bilinear2d_aa(input, sizes, align_corners, *factors)


def upsample_bicubic2d_aa_vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    """Cubic interpolation in two dimensions without aliasing, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F._upsample_bicubic2d_aa(input, sizes, align_corners, *factors)


def upsample_lanczos2d_aa_vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    """Lanczos' interpolation in two dimensions without aliasing, by size or by factor."""
    sizes, factors = _sizes(input, output_size, scale_factors)
    return F._upsample_lanczos2d_aa(input, sizes, align_corners, *factors)


def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    """A convolution over time of (time, batch, channel), by weights of (time, channel, channel of the result)."""
    if self.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    made = F.conv1d(F.permute(self, [1, 2, 0]), F.permute(weight, [2, 1, 0]), bias, padding=[pad])
    return F.contiguous(F.permute(made, [2, 0, 1]))


# Convolutions by the names of their kernels


def thnn_conv2d(
    self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0
) -> Tensor:
    """`conv2d` with windows that have no gaps, of a weight with all its elements in rows, too. RuntimeError unless there are two sizes of each kind."""
    for name, sizes in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if len(sizes) != 2:
            raise RuntimeError(f"2D {name} expected")
    if weight.dim() == 2:
        weight = F.reshape(weight, [weight.shape[0], -1, *kernel_size])
    return F.conv2d(self, weight, bias, stride, padding)


def slow_conv3d(
    self: Tensor, weight: Tensor, kernel_size: Any, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0
) -> Tensor:
    """`conv3d` with windows that have no gaps. RuntimeError for a weight of other than two or five dimensions, and for other than three sizes."""
    for name, sizes in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if len(sizes) != 3:
            raise RuntimeError(f"It is expected {name} equals to 3, but got size {len(sizes)}")
    if not weight.numel() or weight.dim() not in (2, 5):
        raise RuntimeError(f"non-empty 2D or 5D weight tensor expected, but got: {list(weight.shape)}")
    if weight.dim() == 2:
        weight = F.reshape(weight, [weight.shape[0], -1, *kernel_size])
    return F.conv3d(self, weight, bias, stride, padding)


def convolution_double_backward(
    ggI: Tensor | None,
    ggW: Tensor | None,
    ggb: Tensor | None,
    gO: Tensor,
    weight: Tensor,
    self: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Any,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of convolution_backward with respect to its gradient, input and weight; None where none of its own gradients asks for one."""
    windows = (stride, padding, dilation, transposed, output_padding, groups)
    return convolution_second((ggI, ggW, ggb), gO, self, weight, *windows)
