"""Rules of convolution, resizing and sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._dtype import dtype
from ._common import as_list, not_implemented, shape_text, type_name, wrap_dim
from .geometry import Shape, channels_last_strides, prefers_channels_last
from .nn import suggested_strides
from .spec import Spec, rule


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


def _check_conv_dtypes(input: Any, weight: Any, bias: Any, transposed: bool, ndim: int) -> None:
    kind = input.dtype
    if bias is not None and bias.dtype is not kind and not transposed:
        raise RuntimeError(f"Input type ({kind.ctype}) and bias type ({bias.dtype.ctype}) should be the same")
    for name, given in (("weight", weight), ("bias", bias)):
        if given is None or given.dtype is kind:
            continue
        if kind is _d.float32 or kind is _d.bfloat16:
            raise RuntimeError(
                f"Input type ({type_name(kind)}) and {name} type ({type_name(given.dtype)}) should be the same or "
                f"input should be a MKLDNN tensor and {name} is a dense tensor"
            )
        if kind.is_complex:
            raise RuntimeError(
                f"Input type ({type_name(kind)}) and {name} type ({type_name(given.dtype)}) should be the same"
            )
        _check_conv_kernel(kind, transposed, ndim)
        raise RuntimeError(f"expected scalar type {kind.cpp} but found {given.dtype.cpp}")


def _check_conv_kernel(kind: dtype, transposed: bool, ndim: int) -> None:
    """NotImplementedError for bool; transposed, for integers other than int64 too."""
    if kind is _d.bool or (transposed and kind.category == _d.CATEGORY_INTEGER and kind is not _d.int64):
        if transposed:
            raise not_implemented(f"slow_conv_transpose{max(ndim, 2)}d_out_cpu", kind)
        raise not_implemented("slow_conv2d_cpu" if ndim < 3 else "compute_columns3d", kind)


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


@rule(flops="convolution(input, weight, out, transposed)")
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
    expected = ndim if op == "convolution" else int(op[-2])
    if op != "convolution" and input.dim() not in (expected + 1, expected + 2):
        raise RuntimeError(
            f"Expected {expected + 1}D (unbatched) or {expected + 2}D (batched) input to {op}, but got input of "
            "size: "
            f"{shape_text(input.shape)}"
        )
    batched = input.dim() == expected + 2 or op == "convolution"
    shape = tuple(input.shape) if batched else (1, *input.shape)
    # A single number stands for as many dims as the operator's name says, which may not be the weight's.
    steps = _spread(as_list(stride) * expected if isinstance(stride, int) else stride, ndim, "stride")
    if len(shape) != ndim + 2:
        raise RuntimeError(
            f"Expected {ndim + 2}-dimensional input for {ndim + 2}-dimensional weight {shape_text(weight.shape)}, but "
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
    _check_conv_dtypes(input, weight, bias, transposed, ndim)
    if any(pad < 0 for pad in pads):
        raise RuntimeError("negative padding is not supported")
    if any(more < 0 for more in extra):
        raise RuntimeError("negative output_padding is not supported")
    if any(step <= 0 for step in steps):
        raise RuntimeError("non-positive stride is not supported")
    if any(step <= 0 for step in spacing):
        shown = [1, *spacing] if ndim == 1 else list(spacing)
        raise RuntimeError(f"dilation should be greater than zero, but got {shape_text(shown)}")
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
    # Convolutions of three dimensions keep channels_last only in the dtypes of oneDNN.
    keeps = ndim == 2 or ndim == 3 and input.dtype in (_d.float32, _d.bfloat16)
    strides = channels_last_strides(result) if uniform and keeps else None
    _check_conv_kernel(input.dtype, transposed, ndim)
    if not batched:
        result, strides = result[1:], None if strides is None else strides[1:]
    return Spec(result, input.dtype, strides, input.dtype.opmath)


@rule()
def conv_backward(
    grad: Any,
    input: Any,
    weight: Any,
    bias_sizes: Sequence[int] | None = None,
    output_mask: Sequence[bool] = (True, True, True),
    windows: Sequence[Any] = (),
) -> tuple[Spec | None, Spec | None, Spec | None]:
    """The gradients of (input, weight, bias), None for those not in the mask. windows: what else the convolution was
    called with. RuntimeError unless grad has the shape of its result."""
    wanted = conv(input, weight, None, *windows).shape
    if tuple(grad.shape) != tuple(wanted):
        raise RuntimeError(f"expected a gradient of shape {shape_text(wanted)}, but got {shape_text(grad.shape)}")
    compute = input.dtype.opmath
    tensors = (input, weight)
    last = input.dim() == 4 and any(prefers_channels_last(tensor.shape, tensor.stride()) for tensor in tensors)
    specs = [
        Spec(tuple(tensor.shape), tensor.dtype, channels_last_strides(tensor.shape) if last else None, compute)
        if want
        else None
        for want, tensor in zip(output_mask, tensors, strict=False)
    ]
    if not output_mask[2]:
        return specs[0], specs[1], None
    channels = tuple(bias_sizes) if bias_sizes else (grad.shape[1],)
    return specs[0], specs[1], Spec(channels, grad.dtype, None, compute)


_AXES = "DHW"

# --- resizing and windows ---------------------------------------------------------------------------------------


@rule(flops="2 * numel(out) * 2 ** ndim", batch="batches")  # a weight and a sum for each neighbour
def upsample(
    self: Any,
    output_size: Any,
    scale_factors: Any = None,
    ndim: int = 2,
    kernel: str = "upsample_nearest2d",
    way: str = "nearest",
    last: bool = False,
    takes_bytes: bool = True,
    antialias: bool = False,
) -> Spec:
    """[batch, channels, ...] resized to output_size, or by scale_factors (exactly one of them).

    kernel, way: its name, and how it weighs, in messages; last: it is the one for channels_last, whatever the memory. takes_bytes: uint8 too.
    """
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
            f"Input and output sizes should be greater than 0, but got input ({texts[0]}){' and' * (ndim == 1)} output ({texts[1]})"
        )
    if not shape[1] and shape[0]:
        raise RuntimeError(
            f"Non-empty {ndim + 2}D data tensor expected but got a tensor with sizes {shape_text(shape)}"
        )
    taken = self.dtype.is_floating_point or (takes_bytes and self.dtype is _d.uint8)
    if antialias and tuple(sizes) == shape[2:]:
        taken = True  # that is a copy, of any dtype
    elif antialias and self.dtype.itemsize == 2:
        taken = False
    if not taken:
        last = last or (self.dim() == 5 and shape[1] > 3 and prefers_channels_last(self.shape, self.stride()))
        plain = f"{kernel}_channels_last" if last else f"compute_indices_weights_{way}"
        raise not_implemented("compute_index_ranges_weights" if antialias else plain, self.dtype)
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


def _pairs(**sizes: Any) -> list[list[int]]:
    """Two numbers each, of which one stands for both. RuntimeError for lists of other lengths."""
    pairs = []
    for name, given in sizes.items():
        pairs.append([given] * 2 if isinstance(given, int) else list(given))
        if len(pairs[-1]) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(pairs[-1])}")
    return pairs


def _text(pair: Sequence[int]) -> str:
    return f"({pair[0]}, {pair[1]})"


def _blocks(
    size: Sequence[int], kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> list[int]:
    return [(size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]


@rule(flops="0", batch="images(2)")
def im2col(self: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Spec:
    """[batch, c, h, w] (or without batch) to [batch, c * kh * kw, windows]."""
    kernel, spacing, pads, steps = _pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    _check_windows(kernel, spacing, pads, steps)
    shape = tuple(self.shape)
    if self.dim() not in (3, 4) or 0 in shape[-3:]:
        wrap_dim(2, self.dim())
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
    if self.dtype.category == _d.CATEGORY_INTEGER:
        raise not_implemented("im2col_out_cpu", self.dtype)
    rows = shape[-3] * kernel[0] * kernel[1]
    return Spec((*shape[:-3], rows, blocks[0] * blocks[1]), self.dtype, None, self.dtype.opmath)


@rule(flops="numel(self)", batch="images(1)")
def col2im(self: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Spec:
    """[batch, c * kh * kw, windows] (or without batch) summed to [batch, c, h, w]."""
    size, kernel, spacing, pads, steps = _pairs(
        output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
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
    if self.dtype.category == _d.CATEGORY_INTEGER:
        raise not_implemented("col2im_out_cpu", self.dtype)
    channels = shape[lead] // (kernel[0] * kernel[1])
    return Spec((*shape[:lead], channels, *map(int, size)), self.dtype, None, self.dtype.opmath)
