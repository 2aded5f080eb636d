"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import mindtorch_v2 as torch

from ..._tensor import Tensor
from .. import functional as F, init
from ..common_types import _size_1_t, _size_2_t, _size_3_t
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class _ConvNd(Module):
    """What all convolutions keep and check. Raises ValueError for groups, paddings and modes that do not fit."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: str | tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int
    padding_mode: str
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            names = {"same", "valid"}
            if padding not in names:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {names}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = {"zeros", "reflect", "replicate", "circular"}
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._explicit_padding()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        self.weight = Parameter(torch.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _explicit_padding(self) -> Sequence[int]:
        """The padding as ``F.pad`` wants it: last dimension first, before and after."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides: list[int] = []
        for dilation, size in zip(reversed(self.dilation), reversed(self.kernel_size), strict=True):
            total = dilation * (size - 1) if self.padding == "same" else 0
            sides += [total // 2, total - total // 2]
        return sides

    def reset_parameters(self) -> None:
        """Draw weight and bias from uniform(-1 / sqrt(fan_in), 1 / sqrt(fan_in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _PlainConv(_ConvNd):
    """A convolution that is not transposed; subclasses say in how many dimensions."""

    _expand: Any
    _operator: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        expand = type(self)._expand
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            padding if isinstance(padding, str) else expand(padding),
            expand(dilation),
            False,
            expand(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve = getattr(F, self._operator)
        if self.padding_mode != "zeros":
            padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return convolve(padded, weight, bias, self.stride, type(self)._expand(0), self.dilation, self.groups)
        return convolve(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve (N, C_in, *) or (C_in, *) to (N, C_out, *) or (C_out, *)."""
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_PlainConv):
    """Convolution over (N, C, L)."""

    _expand = staticmethod(_single)
    _operator = "conv1d"


class Conv2d(_PlainConv):
    """Convolution over (N, C, H, W)."""

    _expand = staticmethod(_pair)
    _operator = "conv2d"


class Conv3d(_PlainConv):
    """Convolution over (N, C, D, H, W)."""

    _expand = staticmethod(_triple)
    _operator = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution; subclasses say in how many dimensions."""

    _expand: Any
    _operator: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        expand = type(self)._expand
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            expand(padding),
            expand(dilation),
            True,
            expand(output_padding),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> Sequence[int]:
        """The output padding that gives ``output_size``. Raises ValueError for a size that cannot be reached."""
        if output_size is None:
            return _single(self.output_padding)
        n = num_spatial_dims
        outer = 2 if input.dim() == n + 2 else 1
        sizes = list(output_size)
        if len(sizes) == outer + n:
            sizes = sizes[outer:]
        if len(sizes) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {outer + n} elements "
                f"(got {len(sizes)})"
            )
        spread = [1] * n if dilation is None else dilation
        smallest = [
            (input.size(d + outer) - 1) * stride[d] - 2 * padding[d] + spread[d] * (kernel_size[d] - 1) + 1
            for d in range(n)
        ]
        largest = [smallest[d] + stride[d] - 1 for d in range(n)]
        if any(not low <= size <= high for size, low, high in zip(sizes, smallest, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(sizes, smallest, strict=True)]

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Convolve (N, C_in, *) to (N, C_out, *); ``output_size`` chooses among the possible sizes."""
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        output_padding = self._output_padding(
            input,
            output_size,
            self.stride,
            cast("tuple[int, ...]", self.padding),  # numbers, in transposed ones
            self.kernel_size,
            len(self.kernel_size),
            self.dilation,
        )
        return getattr(F, self._operator)(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over (N, C, L)."""

    _expand = staticmethod(_single)
    _operator = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over (N, C, H, W)."""

    _expand = staticmethod(_pair)
    _operator = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over (N, C, D, H, W)."""

    _expand = staticmethod(_triple)
    _operator = "conv_transpose3d"


class _LazyConvXdMixin(LazyModuleMixin):
    """Learns ``in_channels`` from the first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter | None

    def __init__(
        self,
        out_channels: int,
        kernel_size: _size_1_t | _size_2_t | _size_3_t,
        *args: Any,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        # Positional arguments may reach as far as the bias, whose place depends on the class.
        place = self._bias_place
        if len(args) > place:
            bias = args[place]
            args = (*args[:place], False, *args[place + 1 :])
        else:
            kwargs["bias"] = False
        super().__init__(0, 0, kernel_size, *args, **kwargs)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    _bias_place = 4
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]

    def reset_parameters(self) -> None:
        """Draw the parameters once their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            inherited: Any = super()  # of the class that stands behind this one
            inherited.reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Learn ``in_channels`` from the channel dimension of ``input``."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if self.transposed:
            shape = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        else:
            shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        self.weight.materialize(shape)
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        n = len(self.kernel_size)
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input "
                f"of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == n + 2 else input.shape[0]


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """A Conv1d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """A Conv2d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """A Conv3d that learns ``in_channels`` from its first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """A ConvTranspose1d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """A ConvTranspose2d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """A ConvTranspose3d that learns ``in_channels`` from its first input."""

    cls_to_become = ConvTranspose3d
