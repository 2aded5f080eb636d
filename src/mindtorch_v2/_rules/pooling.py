"""Rules of pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from ._common import as_list, not_implemented, shape_text, wrap_dim
from .geometry import Shape, channels_last_strides, is_channels_last, is_contiguous, prefers_channels_last
from .nn import suggested_strides
from .spec import Spec, rule

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
        if ndim == 1:
            raise RuntimeError(f"{op}() argument '{name}' should contain one int (got {len(given)})")
        words = {2: "a tuple of two ints", 3: "a tuple of three ints"}[ndim]
        raise RuntimeError(f"{op}: {name} must either be a single int, or {words}")
    return given


def _pooled(
    shape: Shape, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, ndim: int, op: str
) -> Shape:
    """The shape of the result. RuntimeError for what does not fit."""
    kernel = _pool_numbers(kernel_size, ndim, "kernel_size", op)
    empty = stride is None or (not isinstance(stride, int) and not len(stride))
    steps = kernel if empty else _pool_numbers(stride, ndim, "stride", op)
    pads = _pool_numbers(padding, ndim, "padding", op)
    spacing = _pool_numbers(dilation, ndim, "dilation", op)
    average = op.startswith("avg")
    if len(shape) not in (ndim + 1, ndim + 2):
        if ndim == 2 and average:
            wrap_dim(-3, len(shape))
            raise RuntimeError(
                "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:"
                f"{shape_text(shape)}"
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
    if ndim == 3 and average and any(size < length for size, length in zip(shape[-3:], kernel, strict=True)):
        given = " ".join(f"{axis}: {size}" for axis, size in zip("THW", shape[-3:], strict=True))
        wanted = " ".join(f"k{axis}: {size}" for axis, size in zip("THW", kernel, strict=True))
        if 0 not in shape[-4:]:
            raise RuntimeError(f"input image ({given}) smaller than kernel size ({wanted})")
    if ndim == 3 and 0 in shape[-4:]:
        raise RuntimeError(
            f"{op if average else 'max_pool3d_with_indices_out_cpu_template'}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{shape_text(shape)} and non-batch dimension 0 has length zero!"
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
        channels = shape[-ndim - 1]
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, [channels, *shape[-ndim:]]))}). Calculated output size: "
            f"({'x'.join(map(str, [channels, *sizes]))}). Output size is too small"
        )
    return (*shape[:-ndim], *sizes)


def _check_vectors(self: Any, op: str) -> None:
    """RuntimeError unless [channels, length] or [batch, channels, length]."""
    if self.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {self.dim()}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {op})"
        )


def _of_vectors(
    self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, op: str
) -> Shape:
    """Pooling of one dimension, as that of two, the first of which has size 1."""
    _check_vectors(self, op)
    empty = stride is None or (not isinstance(stride, int) and not len(stride))
    (length,) = _pool_numbers(kernel_size, 1, "kernel_size", op)
    (step,) = (length,) if empty else _pool_numbers(stride, 1, "stride", op)
    (pad,) = _pool_numbers(padding, 1, "padding", op)
    (space,) = _pool_numbers(dilation, 1, "dilation", op)
    seen = (*self.shape[:-1], 1, self.shape[-1])
    shape = _pooled(seen, [1, length], [1, step], [0, pad], [1, space], ceil_mode, 2, op.replace("1d", "2d"))
    return (*shape[:-2], shape[-1])


def check_max_pool1d(
    self: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> None:
    """What max_pool1d refuses, in its own words. RuntimeError, NotImplementedError for dtypes that are not floating."""
    op = "max_pool1d"
    if self.dim() not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError(
            f"{op}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{shape_text(self.shape)}"
        )
    for name, value, words in (
        ("kernel_size", kernel_size, "be an int, list of ints or"),
        ("stride", stride, "be None, an int, list of ints, or"),
        ("padding", padding, "be an int, list of ints, or"),
        ("dilation", dilation, "be an int, list of ints or"),
    ):
        if isinstance(value, (list, tuple)) and len(value) > 1:
            raise RuntimeError(f"{op}() {name} must {words} tuple of ints of size 1 but got size {len(value)}")
    empty = stride is None or (not isinstance(stride, int) and not len(stride))
    (length,) = _pool_numbers(kernel_size, 1, "kernel_size", op)
    (step,) = (length,) if empty else _pool_numbers(stride, 1, "stride", op)
    (pad,) = _pool_numbers(padding, 1, "padding", op)
    (space,) = _pool_numbers(dilation, 1, "dilation", op)
    for name, value in (("kernel_size", length), ("stride", step)):
        if value <= 0:
            raise RuntimeError(f"{op}() {name} must be greater than zero, but got {value}")
    if pad < 0:
        raise RuntimeError(f"{op}() padding must be non-negative, but got {pad}")
    if pad > length // 2:
        raise RuntimeError(
            f"{op}() padding should be at most half of kernel size, but got padding={pad} and kernel_size={length}"
        )
    if space <= 0:
        raise RuntimeError(f"{op}() dilation must be greater than zero, but got {space}")
    size = _pool_size(self.shape[-1], length, step, pad, space, ceil_mode)
    if size <= 0:
        raise RuntimeError(f"{op}() Invalid computed output size: {size}")
    if not self.dtype.is_floating_point:
        raise not_implemented("max_pool1d_impl", self.dtype)


def _check_format(self: Any) -> None:
    """Pooling of three dimensions refuses an unbatched tensor that looks channels_last."""
    if self.dim() == 4 and prefers_channels_last(self.shape, self.stride()):
        raise RuntimeError("Unsupported memory format. Supports only ChannelsLast3d, Contiguous")


def _unbatched_strides(self: Any, result: Shape) -> Shape | None:
    """The strides of an unbatched result in self's format."""
    shape, stride = (1, *self.shape), (self.numel(), *self.stride())
    if is_channels_last(shape, stride) and not is_contiguous(shape, stride):
        return channels_last_strides((1, *result))[1:]
    return None


@rule(flops="numel(out) * prod(kernel_size, ndim)", batch="images")
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
    if ndim == 1:
        shape, strides = _of_vectors(self, kernel_size, stride, padding, dilation, ceil_mode, op), None
    else:
        most = op.startswith("max")
        if ndim == 3 and most:
            _pool_numbers(kernel_size, ndim, "kernel_size", op)
            _check_format(self)
        shape = _pooled(tuple(self.shape), kernel_size, stride, padding, dilation, ceil_mode, ndim, op)
        strides = None
        if ndim == 2 or most:  # of three dimensions only max pooling keeps channels_last
            strides = suggested_strides(self, shape)
            if strides is None and ndim == 3 and self.dim() == 4:
                strides = _unbatched_strides(self, shape)
    _check_kernel(self, op, strides, ndim)
    return Spec(shape, self.dtype, strides, self.dtype.opmath)


_NOT_AVERAGED = (_d.uint8, _d.int8, _d.int16, _d.int32)


def _check_kernel(self: Any, op: str, strides: Shape | None, ndim: int) -> None:
    """NotImplementedError for dtypes that PyTorch's kernel does not know."""
    kind = self.dtype
    average = op.startswith("avg")
    if kind is _d.bool or kind.is_complex or average and (kind in _NOT_AVERAGED or ndim == 3 and kind.itemsize == 2):
        name = op.replace("1d", "2d")
        if average and ndim == 3:
            name = "avg_pool3d_out_frame"
        elif strides is not None:
            name = f"{name}_channels_last"
        raise not_implemented(name, kind)


def _adaptive_kernel(ndim: int, indices: Any) -> str:
    name = f"adaptive_{'avg' if indices is None else 'max'}_pool{ndim}d_backward"
    return f"{name}_cpu" if ndim == 3 else name


def _check_adaptive_gradient(self: Any, grad: Any, ndim: int, indices: Any) -> None:
    """RuntimeError if a gradient has no elements though there are samples, or a maximum would come from no elements."""
    name = _adaptive_kernel(ndim, indices).removesuffix("_cpu")
    for at, size in enumerate(grad.shape):
        if at and not size:
            raise RuntimeError(
                f"{name}(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has "
                f"sizes {shape_text(grad.shape)} with dimension {at} being empty"
            )
    if indices is not None and grad.numel() and not self.numel():
        raise RuntimeError(
            f"{name}(): Expected self to have non-zero size for non-batch dimensions, but self has sizes "
            f"{shape_text(self.shape)}"
        )


@rule(flops="numel(out)", batch="images")
def pool_backward(
    self: Any,
    grad: Any,
    ndim: int,
    windows: tuple[Any, Any, Any, Any, Any] | None = None,
    indices: Any = None,
    contiguous: bool = False,
    format: bool = False,
) -> Spec:
    """The gradient of a pooling's input: contiguous, or in self's format.

    windows: kernel size, stride, padding, dilation and ceil_mode, where the pooling has them: what the shape of grad follows from. indices:
    int64, in grad's shape. format: refuses those that the pooling refuses.
    """
    if format:
        _check_format(self)
    shape = tuple(self.shape)
    if windows is None:
        _check_adaptive_gradient(self, grad, ndim, indices)
    if grad.dtype is not self.dtype:
        raise RuntimeError(f"expected dtype {self.dtype.ctype} for `grad_output` but got dtype {grad.dtype.ctype}")
    if windows is None and not self.dtype.is_floating_point:
        raise not_implemented(_adaptive_kernel(ndim, indices), self.dtype)
    if indices is not None and indices.dtype is not _d.int64:
        raise RuntimeError(f"expected scalar type Long but found {indices.dtype.cpp}")
    if windows is not None:
        wanted = pool(self, *windows, ndim, op=f"max_pool{ndim}d" if indices is not None else f"avg_pool{ndim}d").shape
    elif indices is not None:
        wanted = tuple(indices.shape)
    elif grad.dim() != len(shape):
        raise RuntimeError(f"Expected dimensions {len(shape)} for `grad_output` but got dimensions {grad.dim()}")
    else:
        wanted = (*shape[:-ndim], *grad.shape[-ndim:])
    if tuple(wanted[:-ndim]) != shape[:-ndim]:
        wanted = (*shape[:-ndim], *wanted[-ndim:])
    for name, tensor in (("grad_output", grad), ("indices", indices)):
        if tensor is not None and tuple(tensor.shape) != tuple(wanted):
            raise RuntimeError(
                f"expected sizes {shape_text(wanted)} for `{name}` but got sizes {shape_text(tensor.shape)}"
            )
    return Spec(shape, self.dtype, None if contiguous else suggested_strides(self, shape), self.dtype.opmath)


@rule(flops="numel(out) * prod(kernel_size, ndim)", batch="images")
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


def _three(sizes: Sequence[int]) -> str:
    return f"{sizes[0]}, {sizes[1]},{sizes[2]}"


def refuse_empty(name: str, shape: Sequence[int], first: int = 1) -> None:
    """RuntimeError for a dimension from `first` on that has no elements."""
    for at in range(first, len(shape)):
        if not shape[at]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {shape_text(shape)} "
                f"with dimension {at} being empty"
            )


@rule(flops="numel(self)", batch="images")
def adaptive_pool(
    self: Any, output_size: Any, ndim: int = 2, indices: bool = False, op: str | None = None
) -> Spec | tuple[Spec, Spec]:
    """The last `ndim` dims reduced to output_size (None keeps one); with indices also where each maximum was
    (int64)."""
    name = op or f"adaptive_{'max' if indices else 'avg'}_pool{ndim}d"
    sizes = [output_size] * ndim if output_size is None or isinstance(output_size, int) else list(output_size)
    if len(sizes) != ndim:
        words = "(): internal error: output_size.size()" if indices else ": output_size"
        raise RuntimeError(f"{name}{words} must be {ndim}")
    shape = tuple(self.shape)
    if self.dim() not in (ndim + 1, ndim + 2):
        if ndim == 1:
            _check_vectors(self, name)
        colon = ":" if indices else ""
        raise RuntimeError(f"{name}(): Expected {ndim + 1}D or {ndim + 2}D tensor, but got{colon} {shape_text(shape)}")
    sizes = [shape[at - ndim] if size is None else int(size) for at, size in enumerate(sizes)]
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, sizes)) if ndim < 3 else _three(sizes)}}}"
        )
    # Means over one or two dimensions may have no channels.
    refuse_empty(name, shape, 1 if indices or ndim == 3 else len(shape) - ndim)
    if not self.dtype.is_floating_point:
        raise not_implemented(f"{name}_cpu" if ndim == 3 else name, self.dtype)
    result = (*shape[:-ndim], *sizes)
    strides = suggested_strides(self, result) if ndim == 2 else None
    values = Spec(result, self.dtype, strides, self.dtype.opmath)
    return (values, Spec(result, _d.int64, strides)) if indices else values


@rule(flops="numel(out) * prod(kernel_size, ndim)")
def fractional_max_pool(
    self: Any, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Any, ndim: int
) -> tuple[Spec, Spec]:
    """(maxima, int64 places in the flat image) of windows at places that the samples choose."""
    name = f"fractional_max_pool{ndim}d" + ("" if ndim == 2 else "_out") + "()"
    for word, sizes in (("kernel_size", kernel_size), ("output_size", output_size)):
        if len(sizes) != ndim:
            many = "" if ndim == 2 else "three "
            raise RuntimeError(f"fractional_max_pool{ndim}d: {word} must either be a single Int or tuple of {many}Ints")
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
