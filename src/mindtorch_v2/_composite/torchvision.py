"""What torchvision has in C++: boxes that are kept, pooling over boxes, convolution over places that move. Its own package has the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from mindtorch_v2 import _dtype
from mindtorch_v2._autograd.api import grad as gradients
from mindtorch_v2._autograd.function import Function
from mindtorch_v2._autograd.modes import enable_grad
from mindtorch_v2._backends.cpu.ops import regions
from mindtorch_v2._dispatch.backends import data_needed
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import not_implemented
from mindtorch_v2._tensor import Tensor, wrap


class _Kernel(Function):
    """`kernel(images)`, a function of arrays whose results have `shapes`; a second one is int32. `backward` takes the gradient and the second result."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, shapes: Sequence[tuple], kernel: Callable, backward: Callable) -> Any:
        ctx.backward = backward
        if images.is_meta:
            first, *others = (
                images.new_empty(shape, dtype=_dtype.int32 if i else None) for i, shape in enumerate(shapes)
            )
        elif images.device.type == "cpu":
            first, *others = (wrap(array, _dtype.FROM_NUMPY[array.dtype]) for array in kernel(_array(images)))
        else:
            raise NotImplementedError(f"regions of images are pooled on the CPU only, not on {images.device}")
        ctx.rest = others
        ctx.mark_non_differentiable(*others)
        return (first.to(images.dtype), *others) if others else first.to(images.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        return ctx.backward(grad.contiguous(), *ctx.rest), None, None, None


class _Pooling(NamedTuple):
    """A way to pool regions of images."""

    name: str
    forward: Callable
    """Of arrays: (images, rois, scale, height, width, *options) to a tuple of as many results as there are."""
    backward: Callable
    """Of arrays: (grad, rois, *numbers, shape) to the gradient of the images; numbers are the scale and the options, or places."""
    places: bool = False
    """Whether the second result says where each value comes from, which is all that the way back reads."""
    sensitive: bool = False
    """Whether each part of a region has channels of its own, which are the second result."""

    def pool(self, images: Tensor, rois: Tensor, scale: float, height: int, width: int, *options: Any) -> Any:
        """[K, C, height, width] of images [N, C, H, W] and rois [K, 5]; with the second result where there is one."""
        _check(f"{self.name}_forward_kernel", images, rois)
        channels = images.size(1)
        if self.sensitive:
            if channels % (height * width):
                raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
            channels //= height * width
        shape = (len(rois), channels, height, width)

        def back(grad: Tensor, *rest: Tensor) -> Tensor:
            return self.gradient(grad, rois, tuple(images.shape), *(rest if self.places else (scale, *options)))

        return _Kernel.apply(
            images,
            [shape] * (1 + (self.places or self.sensitive)),
            lambda x: self.forward(x, _array(rois), scale, height, width, *options),
            back,
        )

    def gradient(self, grad: Tensor, rois: Tensor, shape: tuple[int, ...], *numbers: Any) -> Tensor:
        """The gradient of the images, of `shape`."""
        _check(f"{self.name}_backward_kernel", grad, rois, "grad")

        def back(_: Tensor) -> NoReturn:
            raise RuntimeError(f"double backwards on {self.name} not supported")

        def kernel(array: Any) -> tuple:
            read = (_array(number) if isinstance(number, Tensor) else number for number in numbers)
            return (self.backward(array, _array(rois), *read, shape),)

        return _Kernel.apply(grad, [shape], kernel, back)


_ROI_ALIGN = _Pooling("roi_align", regions.align, regions.align_backward)
_ROI_POOL = _Pooling("roi_pool", regions.largest, regions.largest_backward, places=True)
_PS_ROI_ALIGN = _Pooling("ps_roi_align", regions.sensitive_align, regions.sensitive_align_backward, sensitive=True)
_PS_ROI_POOL = _Pooling("ps_roi_pool", regions.sensitive, regions.sensitive_backward, sensitive=True)


def _check(name: str, images: Tensor, rois: Tensor, text: str = "input") -> None:
    if text == "input" and (rois.dim() != 2 or rois.size(1) != 5):
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if text == "grad" and (images.dim() != 4 or rois.dim() != 2 or rois.size(1) != 5 or len(images) != len(rois)):
        raise RuntimeError(
            f"{name}: expected grad of shape [K, C, height, width] and rois of shape [K, 5], but got {list(images.shape)} and {list(rois.shape)}"
        )
    if images.dtype != rois.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 '{text}' to have the same type as tensor for argument #2 'rois'; but type "
            f"{images.type()} does not equal {rois.type()} (while checking arguments for {name})"
        )
    if images.dtype not in (_dtype.float16, _dtype.float32, _dtype.float64):
        raise not_implemented(name, images.dtype)


def _array(tensor: Tensor) -> Any:
    """The elements, of the dtype that the work is done in."""
    return (tensor.float() if tensor.dtype == _dtype.float16 else tensor).detach().numpy()


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices, by falling score, of the boxes that overlap no kept one of a higher score by more than the threshold."""
    if dets.dim() != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.dim()}D")
    if dets.size(1) != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    if scores.dim() != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.dim()}D")
    if dets.size(0) != scores.size(0):
        raise RuntimeError(
            f"boxes and scores should have same number of elements in dimension 0, got {dets.size(0)} and {scores.size(0)}"
        )
    if dets.dtype != scores.dtype:
        raise RuntimeError("dets should have the same type as scores")
    if dets.dtype not in (_dtype.float32, _dtype.float64):
        raise not_implemented("nms_kernel", dets.dtype)
    if dets.is_meta:
        raise data_needed("nms")
    return wrap(regions.kept(_array(dets), _array(scores), iou_threshold), _dtype.int64)


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """[K, C, height, width]: averages of bilinear samples in each part of each region of images [N, C, H, W]; rois [K, 5]."""
    return _ROI_ALIGN.pool(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)


def roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """The gradient of the images of `roi_align`."""
    return _ROI_ALIGN.gradient(
        grad, rois, (batch_size, channels, height, width), spatial_scale, sampling_ratio, aligned
    )


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """[K, C, height, width]: the largest pixel of each part of each region, and its place in its plane (int32)."""
    return _ROI_POOL.pool(input, rois, spatial_scale, pooled_height, pooled_width)


def roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of the images of `roi_pool`."""
    return _ROI_POOL.gradient(grad, rois, (batch_size, channels, height, width), argmax)


def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> tuple[Tensor, Tensor]:
    """`roi_align` whose parts have channels of their own, C / (height * width) for each; and these channels (int32)."""
    return _PS_ROI_ALIGN.pool(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio)


def ps_roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of the images of `ps_roi_align`."""
    return _PS_ROI_ALIGN.gradient(grad, rois, (batch_size, channels, height, width), spatial_scale, sampling_ratio)


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The mean of each part of each region, from channels of its own; and these channels (int32)."""
    return _PS_ROI_POOL.pool(input, rois, spatial_scale, pooled_height, pooled_width)


def ps_roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of the images of `ps_roi_pool`."""
    return _PS_ROI_POOL.gradient(grad, rois, (batch_size, channels, height, width), spatial_scale)


def _places(size: int, stride: int, padding: int, taps: int, dilation: int, like: Tensor) -> Tensor:
    """[taps, size]: where the taps of a kernel lie along one axis before they move."""
    start = F.arange(size, dtype=like.dtype, device=like.device) * stride - padding
    return F.arange(taps, dtype=like.dtype, device=like.device)[:, None] * dilation + start


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """[N, out, H', W']: a convolution whose taps are moved by `offset` [N, 2 * offset_groups * kh * kw, H', W'] and weighed by `mask`."""
    n, c, h, w = input.shape
    out, _, kh, kw = weight.shape
    height, width = offset.shape[-2:]
    taps = kh * kw
    moved = offset.reshape(n, offset_groups, kh, kw, 2, height, width)
    ys = moved[:, :, :, :, 0] + _places(height, stride_h, pad_h, kh, dilation_h, offset)[:, None, :, None]
    xs = moved[:, :, :, :, 1] + _places(width, stride_w, pad_w, kw, dilation_w, offset)[None, :, None, :]
    images = input.reshape(n, offset_groups, c // offset_groups, h * w)
    top, left = ys.detach().floor(), xs.detach().floor()
    below, right = ys - top, xs - left
    columns = None
    for row, by_row in ((top, 1 - below), (top + 1, below)):
        for column, by_column in ((left, 1 - right), (left + 1, right)):
            inside = (row >= 0) & (row < h) & (column >= 0) & (column < w)
            place = (row.clamp(0, h - 1) * w + column.clamp(0, w - 1)).long().reshape(n, offset_groups, 1, -1)
            share = F.where(inside, by_row * by_column, 0.0).reshape(n, offset_groups, 1, -1)
            values = F.gather(images, 3, place.expand(-1, -1, images.size(2), -1)) * share
            columns = values if columns is None else columns + values
    assert columns is not None
    if use_mask:
        columns = columns * mask.reshape(n, offset_groups, 1, -1)
    columns = columns.reshape(n, groups, c // groups * taps, height * width)
    made = F.matmul(weight.reshape(groups, out // groups, -1), columns).reshape(n, out, height, width)
    return made + bias.reshape(1, -1, 1, 1)


def deform_conv2d_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> tuple[Tensor, ...]:
    """The gradients of the tensors of `deform_conv2d`."""
    given = [tensor.detach().requires_grad_() for tensor in (input, weight, offset, mask, bias)]
    with enable_grad():
        made = deform_conv2d(
            *given, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask
        )
    found = gradients(made, given, grad, allow_unused=True)
    return tuple(F.zeros_like(own) if one is None else one for one, own in zip(found, given, strict=True))
