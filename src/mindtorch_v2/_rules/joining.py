"""Rules of joining, repeating, padding and rearranging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from ._common import as_list, checked_size, is_tensor, not_implemented, shape_text, wrap_dim, wrap_dims
from .geometry import (
    Shape,
    channels_last_strides,
    contiguous_strides,
    format_strides,
    infer_dense_strides,
    prefers_channels_last,
)
from .pointwise import check_fill
from .promotion import result_type
from .spec import Spec, rule


def _suggested(self: Any, shape: Shape) -> Shape | None:
    """The strides of a fresh tensor of `shape` in self's format: channels_last or contiguous."""
    return channels_last_strides(shape) if prefers_channels_last(self.shape, self.stride()) else None


@rule(flops="0", batch="along")
def cat(tensors: Sequence[Any], dim: int = 0) -> Spec:
    """Tensors one after the other along `dim`; one-dimensional empty ones are skipped. RuntimeError for differing
    sizes."""
    if not len(tensors):
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for at, tensor in enumerate(tensors):
        if not is_tensor(tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 0, but got {type(tensor).__name__}")
        if not tensor.dim():
            raise RuntimeError(f"zero-dimensional tensor (at position {at}) cannot be concatenated")
    promoted = result_type(*tensors)
    kept = [(at, tensor) for at, tensor in enumerate(tensors) if tuple(tensor.shape) != (0,)]
    if not kept:  # whatever the dimension
        return Spec((0,), promoted, None, promoted)
    first = kept[0][1]
    along = wrap_dim(dim, first.dim())
    total = 0
    for at, tensor in kept:
        if tensor.dim() != first.dim():
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.dim()} and {tensor.dim()}")
        for axis, (expected, size) in enumerate(zip(first.shape, tensor.shape, strict=True)):
            if axis != along and expected != size:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {along}. Expected size {expected} but got size "
                    f"{size} for "
                    f"tensor number {at} in the list."
                )
        total += tensor.shape[along]
    shape = (*first.shape[:along], total, *first.shape[along + 1 :])
    uniform = all(prefers_channels_last(tensor.shape, tensor.stride()) for tensor in tensors)
    return Spec(shape, promoted, channels_last_strides(shape) if uniform else None, promoted)


@rule(flops="0", batch="stacked")
def stack(tensors: Sequence[Any], dim: int = 0) -> Spec:
    """Tensors of equal shape along a new dim."""
    if not len(tensors):
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tuple(tensors[0].shape)
    at = wrap_dim(dim, len(first) + 1)
    for place, tensor in enumerate(tensors):
        if tuple(tensor.shape) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {shape_text(first)} at entry 0 and "
                f"{shape_text(tensor.shape)} at entry {place}"
            )
    promoted = result_type(*tensors)
    return Spec((*first[:at], len(tensors), *first[at:]), promoted, None, promoted)


@rule(flops="0")
def repeat(self: Any, repeats: Sequence[int]) -> Spec:
    """self repeated along each dim; more repeats than dims add leading ones."""
    times = as_list(repeats)
    lead = len(times) - self.dim()
    if lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    padded = (1,) * lead + tuple(self.shape)
    return Spec(checked_size([size * count for size, count in zip(padded, times, strict=True)]), self.dtype)


@rule(flops="0", batch="along")
def flip(self: Any, dims: Sequence[int]) -> Spec:
    """The dims reversed, in self's memory order."""
    wrap_dims(as_list(dims), self.dim())
    return Spec(tuple(self.shape), self.dtype, format_strides(self))


@rule(flops="0")
def roll(self: Any, shifts: Any, dims: Any = ()) -> Spec:
    """Elements moved along the dims, around the end: contiguous. Without dims, in the flat tensor."""
    moves, axes = as_list(shifts), as_list(dims)
    if not moves:
        raise RuntimeError("`shifts` required")
    if len(moves) != len(axes) and not (len(moves) == 1 and not axes):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(axes)}")
    for axis in axes:
        if not self.dim():
            raise IndexError(f"Dimension specified as {axis} but tensor has no dimensions")
        wrap_dim(axis, self.dim())
    return Spec(tuple(self.shape), self.dtype, None if self.numel() else format_strides(self))


@rule(flops="0")
def pad(self: Any, pad: Sequence[int], value: Any = None) -> Spec:
    """Constant padding: pairs (before, after) from the last dim on; negative numbers cut."""
    amounts = as_list(pad)
    if len(amounts) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(amounts)}")
    if len(amounts) > 2 * self.dim():
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(amounts)}while "
            f"the input has {self.dim()}dimensions."
        )
    shape = list(self.shape)
    for i in range(len(amounts) // 2):
        at = len(shape) - 1 - i
        before, after = amounts[2 * i], amounts[2 * i + 1]
        if shape[at] + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        length = shape[at] + before + after
        if length < 0:
            raise RuntimeError(
                f"The input size {shape[at]}, plus negative padding {before} and {after} resulted in a negative output "
                "size, "
                f"which is invalid. Check dimension {at} of your input."
            )
        shape[at] = int(length)
    result = tuple(shape)
    check_fill(value, self.dtype)
    if all(amount <= 0 for amount in amounts):  # only cuts: a copy of that part, in its memory order
        strides = infer_dense_strides(result, self.stride())
        return Spec(result, self.dtype, None if strides == contiguous_strides(result) else strides)
    return Spec(result, self.dtype, _suggested(self, result))


@rule(flops="0", batch="images")
def pad_nd(self: Any, padding: Sequence[int], ndim: int, op: str = "reflection_pad1d") -> Spec:
    """Reflection and replication padding of the last `ndim` dims; self has one or two dims more."""
    amounts = as_list(padding)
    if len(amounts) != 2 * ndim:
        raise RuntimeError(f"padding size is expected to be {2 * ndim}, but got: {len(amounts)}")
    shape = list(self.shape)
    rest = shape[1:] if len(shape) == ndim + 2 else shape
    if len(shape) not in (ndim + 1, ndim + 2) or 0 in rest:
        raise RuntimeError(
            f"Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            "dimensions for "
            f"input, but got: {shape_text(shape)}"
        )
    for i in range(ndim):
        at = len(shape) - 1 - i
        before, after = amounts[2 * i], amounts[2 * i + 1]
        if op.startswith("reflection") and (before >= shape[at] or after >= shape[at]):
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the corresponding input dimension, but got: "
                "padding "
                f"({before}, {after}) at dimension {at} of input {shape_text(self.shape)}"
            )
    for i in range(ndim):
        at = len(shape) - 1 - i
        length = shape[at] + amounts[2 * i] + amounts[2 * i + 1]
        if length < 1:
            raise RuntimeError(f"input ({'WHD'[i]}: {shape[at]}) is too small. Calculated output {'WHD'[i]}: {length}")
        shape[at] = int(length)
    if self.dtype is _d.bool:
        raise not_implemented(op, self.dtype)
    result = tuple(shape)
    return Spec(result, self.dtype, _suggested(self, result) if ndim > 1 else None)


@rule(flops="0", batch="images")
def pad_nd_backward(
    grad: Any, self: Any, padding: Sequence[int], ndim: int, op: str = "reflection_pad1d_backward"
) -> Spec:
    """self's shape, in its format for two dims and more; grad has the padded shape. RuntimeError otherwise."""
    reflects = op.startswith("reflection")
    wanted = tuple(pad_nd(self, padding, ndim, op).shape) if reflects else _padded(self, padding, ndim)
    name = "grad_output" if reflects and ndim != 2 else "gradOutput"
    comma = "" if ndim == 1 and not reflects else ","
    axes = {"width": -1, "height": -2, "depth": -3}
    for word in ("width", "height", "depth")[:ndim]:
        have = grad.shape[axes[word]] if grad.dim() >= -axes[word] else 1
        if have != wanted[axes[word]]:
            raise RuntimeError(f"{name} {word} unexpected. Expected: {wanted[axes[word]]}{comma} Got: {have}")
    if tuple(grad.shape) != wanted:
        raise RuntimeError(f"{name} unexpected. Expected: {shape_text(wanted)}, Got: {shape_text(grad.shape)}")
    shape = tuple(self.shape)
    return Spec(shape, self.dtype, None if ndim == 1 else _suggested(self, shape), self.dtype.opmath)


def _padded(self: Any, padding: Sequence[int], ndim: int) -> Shape:
    shape = list(self.shape)
    for i in range(ndim):
        shape[-1 - i] += padding[2 * i] + padding[2 * i + 1]
    return tuple(shape)


@rule(flops="0", batch="leading")
def tril(self: Any, diagonal: int = 0, op: str = "tril") -> Spec:
    """tril and triu: contiguous."""
    if self.dim() < 2:
        raise RuntimeError(f"{op}: input tensor must have at least 2 dimensions")
    return Spec(tuple(self.shape), self.dtype)


@rule(flops="0")
def diag_embed(self: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Spec:
    """The last dim as the diagonal of two new ones: contiguous."""
    ndim = self.dim() + 1
    first, second = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = self.shape[-1] + abs(offset)
    rest = iter(self.shape[:-1])
    return Spec(tuple(length if at in (first, second) else next(rest) for at in range(ndim)), self.dtype)


@rule(flops="0", batch="leading(3)")
def pixel_shuffle(self: Any, factor: int) -> Spec:
    """Channels to pixels: [..., C * r * r, H, W] to [..., C, H * r, W * r]."""
    name = "pixel_shuffle"
    if self.dim() < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {self.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive upscale_factor, but got {factor}")
    *batch, channels, height, width = self.shape
    if channels % (factor * factor):
        raise RuntimeError(
            f"{name} expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {factor * factor}"
        )
    shape = (*batch, channels // (factor * factor), height * factor, width * factor)
    return Spec(shape, self.dtype, _suggested(self, shape))


@rule(flops="0", batch="leading(3)")
def pixel_unshuffle(self: Any, factor: int) -> Spec:
    """Pixels to channels, the reverse of `pixel_shuffle`."""
    name = "pixel_unshuffle"
    if self.dim() < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {self.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive downscale_factor, but got {factor}")
    *batch, channels, height, width = self.shape
    for word, at, size in (("height", -2, height), ("width", -1, width)):
        if size % factor:
            raise RuntimeError(
                f"{name} expects {word} to be divisible by downscale_factor, but input.size({at})={size} is not "
                f"divisible by {factor}"
            )
    shape = (*batch, channels * factor * factor, height // factor, width // factor)
    return Spec(shape, self.dtype, _suggested(self, shape))
