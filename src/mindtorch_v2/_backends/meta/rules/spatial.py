"""Rules of convolution, pooling, resizing and sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import _dtype as _d
from ..spec import Shape, Spec, channels_last_strides, prefers_channels_last
from ._common import as_list, not_implemented, shape_text
from .nn import suggested_strides


def _spread(value: Any, ndim: int, name: str) -> list[int]:
    """One number per spatial dim."""
    given = as_list(value)
    if len(given) == 1:
        return given * ndim
    if len(given) != ndim:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {ndim} values to match the convolution "
            "dimensions, but got "
            f"{name}={shape_text(given)}"
        )
    return given


def _check_conv_dtypes(input: Any, weight: Any, bias: Any) -> None:
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"Input type (torch.{input.dtype.cpp}Tensor) and weight type (torch.{weight.dtype.cpp}Tensor) should be "
            "the same or "
            "input should be a MKLDNN tensor and weight is a dense tensor"
        )
    if bias is not None and bias.dtype is not input.dtype:
        raise RuntimeError(f"Input type ({input.dtype.ctype}) and bias type ({bias.dtype.ctype}) should be the same")


def _check_conv_shapes(
    shape: Sequence[int], weight: Any, bias: Any, padding: list[int], dilation: list[int], transposed: bool, groups: int
) -> None:
    sizes = tuple(weight.shape)
    if sizes[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{shape_text(sizes)} instead"
        )
    if sizes[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            "size "
            f"[{shape_text(sizes)}] instead"
        )
    if not transposed:
        channels, given = sizes[1] * groups, f"groups={groups}"
        outputs = sizes[0]
    else:
        channels, given = sizes[0], f"transposed={int(transposed)}"
        outputs = sizes[1] * groups
    if shape[1] != channels:
        raise RuntimeError(
            f"Given {given}, weight of size {shape_text(sizes)}, expected input{shape_text(shape)} to have {channels} "
            "channels, but "
            f"got {shape[1]} channels instead"
        )
    if bias is not None and tuple(bias.shape) != (outputs,):
        prefix = "Given transposed=1, weight" if transposed else "Given weight"
        raise RuntimeError(
            f"{prefix} of size {shape_text(sizes)}, expected bias to be 1-dimensional with {outputs} elements, but got "
            "bias of size "
            f"{shape_text(bias.shape)} instead"
        )
    if not transposed:
        padded = [size + 2 * pad for size, pad in zip(shape[2:], padding, strict=True)]
        kernel = [step * (size - 1) + 1 for size, step in zip(sizes[2:], dilation, strict=True)]
        if any(size < length for size, length in zip(padded, kernel, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). "
                f"Kernel size: ({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size"
            )


def conv(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
    op: str = "convolution",
) -> Spec:
    """input [batch, in, ...] (or without batch) and weight [out, in / groups, ...] give [batch, out, ...]; transposed:
    weight [in, out / groups, ...].

    padding may be 'same' or 'valid'. The result is channels_last if input or weight is.
    """
    ndim = weight.dim() - 2
    if ndim < 1:
        raise RuntimeError("weight should have at least three dimensions")
    name = op if op != "convolution" else f"conv{ndim}d"
    expected = int(name[-2]) if name[-2:-1].isdigit() else ndim
    if input.dim() not in (expected + 1, expected + 2):
        raise RuntimeError(
            f"Expected {expected + 1}D (unbatched) or {expected + 2}D (batched) input to {name}, but got input of "
            "size: "
            f"{shape_text(input.shape)}"
        )
    batched = input.dim() == expected + 2
    shape = tuple(input.shape) if batched else (1, *input.shape)
    # A single number stands for as many dims as the operator's name says, which may not be the weight's.
    steps = _spread(as_list(stride) * expected if isinstance(stride, int) else stride, ndim, "stride")
    if len(shape) != ndim + 2:
        raise RuntimeError(
            f"Expected {ndim + 2}-dimensional input for {ndim + 2}-dimensional weight{shape_text(weight.shape)}, but "
            "got "
            f"{len(shape)}-dimensional input of size {shape_text(shape)} instead"
        )
    spacing = _spread(dilation, ndim, "dilation")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if padding == "same" and any(step != 1 for step in steps):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        pads = [0] * ndim
    else:
        pads = _spread(padding, ndim, "padding")
    extra = _spread(output_padding, ndim, "output_padding")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    _check_conv_dtypes(input, weight, bias)
    if any(pad < 0 for pad in pads):
        raise RuntimeError("negative padding is not supported")
    if any(step <= 0 for step in steps):
        raise RuntimeError("non-positive stride is not supported")
    if any(step <= 0 for step in spacing):
        raise RuntimeError("dilation should be greater than zero")
    same = padding == "same"
    if not same:
        _check_conv_shapes(shape, weight, bias, pads, spacing, transposed, groups)
    if 0 in shape[2:] and shape[0] and shape[1]:
        sizes = (*shape[:2], 1, *shape[2:]) if ndim == 1 else shape
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {shape_text(sizes)}"
        )
    kernel = weight.shape[2:]
    if transposed:
        if any(more >= step and more >= space for more, step, space in zip(extra, steps, spacing, strict=True)):
            words = ("height", "width") if ndim == 2 else ("depth", "height", "width")[3 - ndim :]
            parts = [
                f"{label}_{word}: {value}"
                for label, values in (("output_padding", extra), ("stride", steps), ("dilation", spacing))
                for word, value in zip(words, values, strict=True)
            ]
            raise RuntimeError(
                f"output padding must be smaller than either stride or dilation, but got {' '.join(parts)}"
            )
        spatial = [
            (size - 1) * steps[i] - 2 * pads[i] + spacing[i] * (kernel[i] - 1) + extra[i] + 1
            for i, size in enumerate(shape[2:])
        ]
        channels = weight.shape[1] * groups
        if any(size < 1 for size in spatial) and shape[0]:
            before, after = ([1, *sizes] if ndim == 1 else sizes for sizes in (shape[2:], spatial))
            raise RuntimeError(
                f"Given input size per channel: ({' x '.join(map(str, before))}). Calculated output size per channel: "
                f"({' x '.join(map(str, after))}). Output size is too small"
            )
    elif same:
        _check_conv_shapes(
            shape,
            weight,
            bias,
            [step * (size - 1) for size, step in zip(kernel, spacing, strict=True)],
            spacing,
            False,
            groups,
        )
        spatial, channels = list(shape[2:]), weight.shape[0]
    else:
        spatial = [
            (size + 2 * pads[i] - spacing[i] * (kernel[i] - 1) - 1) // steps[i] + 1 for i, size in enumerate(shape[2:])
        ]
        channels = weight.shape[0]
    result: Shape = (shape[0], channels, *spatial)
    layout = input.stride() if batched else (input.shape[0] * input.stride()[0], *input.stride())
    uniform = prefers_channels_last(shape, layout) or prefers_channels_last(weight.shape, weight.stride())
    strides = channels_last_strides(result) if uniform and ndim in (2, 3) else None
    if not batched:
        result, strides = result[1:], None if strides is None else strides[1:]
    return Spec(result, input.dtype, strides, input.dtype.opmath)


def conv_backward(
    grad: Any,
    input: Any,
    weight: Any,
    bias_sizes: Sequence[int] | None = None,
    output_mask: Sequence[bool] = (True, True, True),
) -> tuple[Spec | None, Spec | None, Spec | None]:
    """The gradients of (input, weight, bias), None for those not in the mask."""
    compute = input.dtype.opmath
    sizes = (tuple(input.shape), tuple(weight.shape))
    specs = [
        Spec(shape, tensor.dtype, suggested_strides(tensor, shape), compute) if want else None
        for want, shape, tensor in zip(output_mask, sizes, (input, weight), strict=False)
    ]
    if not output_mask[2]:
        return specs[0], specs[1], None
    channels = tuple(bias_sizes) if bias_sizes else (grad.shape[1],)
    return specs[0], specs[1], Spec(channels, grad.dtype, None, compute)


# --- pooling ----------------------------------------------------------------------------------------------------

_AXES = "DHW"


def _pool_size(size: int, kernel: int, stride: int, pad: int, dilation: int, ceil_mode: bool) -> int:
    span = size + 2 * pad - dilation * (kernel - 1) - 1
    length = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    # With ceil_mode the last window must still start within the input or its left padding.
    if ceil_mode and (length - 1) * stride >= size + pad:
        length -= 1
    return length


def _pool_numbers(value: Any, ndim: int, name: str, op: str) -> list[int]:
    given = as_list(value)
    if len(given) == 1:
        return given * ndim
    if len(given) != ndim:
        words = {1: "one int", 2: "a tuple of two ints", 3: "a tuple of three ints"}[ndim]
        raise RuntimeError(f"{op}: {name} must either be a single int, or {words}")
    return given


def _pooled(
    self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, ndim: int, op: str
) -> tuple[Shape, Shape | None]:
    kernel = _pool_numbers(kernel_size, ndim, "kernel_size", op)
    empty = stride is None or (not isinstance(stride, int) and not len(stride))
    steps = kernel if empty else _pool_numbers(stride, ndim, "stride", op)
    pads = _pool_numbers(padding, ndim, "padding", op)
    spacing = _pool_numbers(dilation, ndim, "dilation", op)
    shape = tuple(self.shape)
    if self.dim() not in (ndim + 1, ndim + 2):
        if ndim == 1 and op.startswith("avg"):
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {self.dim()}-dimensional tensor for argument #1 'self' (while "
                "checking "
                f"arguments for {op})"
            )
        if ndim == 1:
            raise RuntimeError(
                f"{op}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
                f"got:{shape_text(shape)}"
            )
        raise RuntimeError(f"non-empty {ndim + 1}D or {ndim + 2}D (batch mode) tensor expected for input")
    axes = _AXES[3 - ndim :]
    if any(step == 0 for step in steps):
        raise RuntimeError("stride should not be zero")
    for pad, size, space in zip(pads, kernel, spacing, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > ((size - 1) * space + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={size} and "
                f"dilation={space}"
            )
    for word, label, values in (
        ("kernel size", "k", kernel),
        ("stride", "d", steps),
        ("dilation", "dilation", spacing),
    ):
        if any(value <= 0 for value in values):
            parts = " ".join(f"{label}{axis}: {value}" for axis, value in zip(axes, values, strict=True))
            raise RuntimeError(f"{word} should be greater than zero, but got {parts}")
    if ndim == 2 and any(pad > size // 2 for pad, size in zip(pads, kernel, strict=True)):
        raise RuntimeError(
            "pad should be smaller than or equal to half of kernel size, but got "
            f"padW = {pads[1]}, padH = {pads[0]}, kW = {kernel[1]}, kH = {kernel[0]}"
        )
    if 0 in shape[-ndim - 1 :]:
        raise RuntimeError(
            f"Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            "got:"
            f"{shape_text(shape)}"
        )
    sizes = [
        _pool_size(size, kernel[i], steps[i], pads[i], spacing[i], ceil_mode) for i, size in enumerate(shape[-ndim:])
    ]
    if any(size < 1 for size in sizes):
        if ndim == 1 and op.startswith("max"):
            raise RuntimeError(f"{op}() Invalid computed output size: {sizes[0]}")
        channels = shape[-ndim - 1]
        given = [1, *shape[-1:]] if ndim == 1 else list(shape[-ndim:])
        found = [1, *sizes] if ndim == 1 else sizes
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, [channels, *given]))}). Calculated output size: "
            f"({'x'.join(map(str, [channels, *found]))}). Output size is too small"
        )
    result = (*shape[:-ndim], *sizes)
    # Of three dimensions only max pooling keeps channels_last.
    return result, suggested_strides(self, result) if ndim == 2 or ndim == 3 and op.startswith("max") else None


def pool(
    self: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    ndim: int = 2,
    divisor_override: int | None = None,
    op: str = "avg_pool2d",
) -> Spec:
    """One value per window of the last `ndim` dims (average pooling; max pooling without indices)."""
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    shape, strides = _pooled(self, kernel_size, stride, padding, dilation, ceil_mode, ndim, op)
    if self.dtype is _d.bool or self.dtype.is_complex:
        raise not_implemented(op, self.dtype)
    return Spec(shape, self.dtype, strides, self.dtype.opmath)


def max_pool(
    self: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    ndim: int = 2,
    op: str | None = None,
) -> tuple[Spec, Spec]:
    """(out, int64 indices into the flat spatial dims)."""
    values = pool(self, kernel_size, stride, padding, dilation, ceil_mode, ndim, op=op or f"max_pool{ndim}d")
    return values, Spec(values.shape, _d.int64, values.stride)


def adaptive_pool(
    self: Any, output_size: Any, ndim: int = 2, indices: bool = False, op: str | None = None
) -> Spec | tuple[Spec, Spec]:
    """The last `ndim` dims reduced to output_size (None keeps one); with indices also where each maximum was
    (int64)."""
    name = op or f"adaptive_{'max' if indices else 'avg'}_pool{ndim}d"
    sizes = [output_size] * ndim if output_size is None or isinstance(output_size, int) else list(output_size)
    if len(sizes) != ndim:
        raise RuntimeError(f"{name}: output_size must be {ndim}")
    shape = tuple(self.shape)
    if self.dim() not in (ndim + 1, ndim + 2):
        if ndim == 1:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {self.dim()}-dimensional tensor for argument #1 'self' (while "
                "checking "
                f"arguments for {name})"
            )
        colon = ":" if indices else ""
        raise RuntimeError(f"{name}(): Expected {ndim + 1}D or {ndim + 2}D tensor, but got{colon} {shape_text(shape)}")
    sizes = [shape[at - ndim] if size is None else int(size) for at, size in enumerate(sizes)]
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, sizes))}}}"
        )
    for at in range(len(shape) - ndim, len(shape)):
        if not shape[at]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{shape_text(shape)} "
                f"with dimension {at} being empty"
            )
    if not self.dtype.is_floating_point:
        raise not_implemented(name, self.dtype)
    result = (*shape[:-ndim], *sizes)
    strides = suggested_strides(self, result) if ndim == 2 else None
    values = Spec(result, self.dtype, strides, self.dtype.opmath)
    return (values, Spec(result, _d.int64, strides)) if indices else values


# --- resizing and windows ---------------------------------------------------------------------------------------


def fractional_max_pool(
    self: Any, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Any, ndim: int
) -> tuple[Spec, Spec]:
    """(maxima, int64 places in the flat image) of windows at places that the samples choose."""
    name = f"fractional_max_pool{ndim}d" + ("" if ndim == 2 else "_out") + "()"
    if self.dim() not in (ndim + 1, ndim + 2):
        raise RuntimeError(f"{name}: Expected {ndim + 1}D or {ndim + 2}D tensor, but got: {shape_text(self.shape)}")
    first = self.dim() - ndim - 1
    for dim in range(first, self.dim()):
        if not self.shape[dim]:
            raise RuntimeError(
                f"{name}: Expected input to have non-zero size for non-batch dimensions, but got"
                f"{shape_text(self.shape)} with dimension {dim} being empty."
            )
    words = ("time", "height", "width")[3 - ndim :]
    for word, size, window, count in zip(words, self.shape[-ndim:], kernel_size, output_size, strict=True):
        if count + window - (1 if ndim == 2 else 0) > size:  # one more in three dimensions, as in PyTorch
            raise RuntimeError(f"{name}: pool {word} {window} too large relative to input {word} {size}")
    if random_samples.dtype is not self.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if random_samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {random_samples.dim()}")
    batch = self.shape[0] if first else 1
    if random_samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if random_samples.shape[1] != self.shape[first]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if random_samples.shape[2] != ndim:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {ndim}; got {random_samples.shape[2]}.")
    if not self.dtype.is_floating_point:
        raise not_implemented(f"fractional_max_pool{ndim}d_out_frame", self.dtype)
    shape = (*self.shape[: first + 1], *map(int, output_size))
    return Spec(shape, self.dtype), Spec(shape, _d.int64)


def upsample(
    self: Any,
    output_size: Any,
    scale_factors: Any = None,
    ndim: int = 2,
    op: str = "upsample_nearest2d",
) -> Spec:
    """[batch, channels, ...] resized to output_size, or by scale_factors (exactly one of them)."""
    if (output_size is None) == (scale_factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if output_size is not None:
        sizes = as_list(output_size)
    else:
        factors = scale_factors if isinstance(scale_factors, (list, tuple)) else [scale_factors]
        sizes = [int(size * factor) for size, factor in zip(self.shape[2:], factors, strict=False)]
    if len(sizes) != ndim:
        raise RuntimeError(f"It is expected output_size equals to {ndim}, but got size {len(sizes)}")
    if self.dim() != ndim + 2:
        raise RuntimeError(f"It is expected input_size equals to {ndim + 2}, but got size {self.dim()}")
    shape = tuple(self.shape)
    if any(size <= 0 for size in (*shape[2:], *sizes)):
        axes = _AXES[3 - ndim :]
        texts = [
            ", ".join(f"{axis}: {size}" for axis, size in zip(axes, part, strict=True)) for part in (shape[2:], sizes)
        ]
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({texts[0]}) output ({texts[1]})"
        )
    if not shape[1] and shape[0]:
        raise RuntimeError(
            f"Non-empty {ndim + 2}D data tensor expected but got a tensor with sizes {shape_text(shape)}"
        )
    if not self.dtype.is_floating_point and self.dtype is not _d.uint8:
        raise not_implemented(f"{op}_channels_last", self.dtype)
    result = (*shape[:2], *map(int, sizes))
    return Spec(result, self.dtype, suggested_strides(self, result) if ndim > 1 else None, self.dtype.opmath)


def _check_windows(kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]) -> None:
    for word, values, lowest in (("kernel size", kernel, 1), ("dilation", dilation, 1), ("stride", stride, 1)):
        if any(value < lowest for value in values):
            label = word.partition(" ")[0]
            raise RuntimeError(
                f"{word} should be greater than zero, but got {label}_height: {values[0]} {label}_width: {values[1]}"
            )
    if any(value < 0 for value in padding):
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")


def _pair(value: Any) -> list[int]:
    given = as_list(value)
    return given * 2 if len(given) == 1 else given


def _text(pair: Sequence[int]) -> str:
    return f"({pair[0]}, {pair[1]})"


def _blocks(
    size: Sequence[int], kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> list[int]:
    return [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]


def im2col(self: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Spec:
    """[batch, c, h, w] (or without batch) to [batch, c * kh * kw, windows]."""
    kernel, spacing, pads, steps = _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    _check_windows(kernel, spacing, pads, steps)
    shape = tuple(self.shape)
    if self.dim() not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            "but got: "
            f"{shape_text(shape)}"
        )
    blocks = _blocks(shape[-2:], kernel, spacing, pads, steps)
    if min(blocks) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_text(shape[-2:])}, kernel_size={_text(kernel)}, "
            f"dilation={_text(spacing)}, "
            f"padding={_text(pads)}, calculated shape of the array of sliding blocks as {_text(blocks)}, but its "
            "components must be "
            "at least one."
        )
    rows = shape[-3] * kernel[0] * kernel[1]
    return Spec((*shape[:-3], rows, blocks[0] * blocks[1]), self.dtype, None, self.dtype.opmath)


def col2im(self: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Spec:
    """[batch, c * kh * kw, windows] (or without batch) summed to [batch, c, h, w]."""
    size, kernel = _pair(output_size), _pair(kernel_size)
    spacing, pads, steps = _pair(dilation), _pair(padding), _pair(stride)
    _check_windows(kernel, spacing, pads, steps)
    shape = tuple(self.shape)
    if self.dim() not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            "input, but got: "
            f"{shape_text(shape)}"
        )
    lead = self.dim() - 2
    if shape[lead] % (kernel[0] * kernel[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[lead]} "
            f"and kernel_size={_text(kernel)}."
        )
    blocks = _blocks(size, kernel, spacing, pads, steps)
    if blocks[0] * blocks[1] != shape[-1]:
        raise RuntimeError(
            f"Given output_size={_text(size)}, kernel_size={_text(kernel)}, dilation={_text(spacing)}, "
            f"padding={_text(pads)}, "
            f"stride={_text(steps)}, expected size of input's dimension 2 to match the calculated number of sliding "
            "blocks "
            f"{blocks[0]} * {blocks[1]} = {blocks[0] * blocks[1]}, but got input.size(2)={shape[-1]}."
        )
    channels = shape[lead] // (kernel[0] * kernel[1])
    return Spec((*shape[:lead], channels, *map(int, size)), self.dtype, None, self.dtype.opmath)


__all__ = ["adaptive_pool", "col2im", "conv", "conv_backward", "im2col", "max_pool", "pool", "upsample"]
