"""What torchvision has in C++: boxes that are kept, pooling over boxes, convolution over places that move. Its own package has the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._autograd.api import grad as gradients
from mindtorch_v2._autograd.function import Function
from mindtorch_v2._autograd.modes import enable_grad
from mindtorch_v2._backends.cpu.ops import regions
from mindtorch_v2._dispatch.backends import data_needed
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import not_implemented
from mindtorch_v2._tensor import Tensor, wrap


class _Pooling(Function):
    """`forward(images)`, a function of arrays; `backward(grad, *rest of the outputs)`, an operator, or a text where there is none."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, forward: Callable, backward: Any) -> Any:
        ctx.backward = backward
        first, *others = (wrap(array, _dtype.FROM_NUMPY[array.dtype]) for array in forward(_array(images)))
        found = (first.to(images.dtype), *others)
        ctx.rest = found[1:]
        ctx.mark_non_differentiable(*ctx.rest)
        return found if ctx.rest else found[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        if isinstance(ctx.backward, str):
            raise RuntimeError(f"double backwards on {ctx.backward} not supported")
        return ctx.backward(grad.contiguous(), *ctx.rest), None, None


def _pooled(images: Tensor, shapes: Sequence[tuple], forward: Callable, backward: Any) -> Any:
    """The results, of `shapes`: the second has the dtype int32."""
    if images.device.type == "meta":
        found = tuple(images.new_empty(shape, dtype=_dtype.int32 if i else None) for i, shape in enumerate(shapes))
        return found if len(found) > 1 else found[0]
    if images.device.type != "cpu":
        raise NotImplementedError(f"regions of images are pooled on the CPU only, not on {images.device}")
    return _Pooling.apply(images, forward, backward)


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


def _sensitive_channels(images: Tensor, pooled_height: int, pooled_width: int) -> int:
    if images.size(1) % (pooled_height * pooled_width):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    return images.size(1) // (pooled_height * pooled_width)


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
    _check("roi_align_forward_kernel", input, rois)
    n, c, h, w = input.shape
    return _pooled(
        input,
        [(len(rois), c, pooled_height, pooled_width)],
        lambda x: (
            regions.align(x, _array(rois), spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned),
        ),
        lambda grad: roi_align_backward(
            grad, rois, spatial_scale, pooled_height, pooled_width, n, c, h, w, sampling_ratio, aligned
        ),
    )


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
    _check("roi_align_backward_kernel", grad, rois, "grad")
    shape = (batch_size, channels, height, width)
    return _pooled(
        grad,
        [shape],
        lambda g: (regions.align_backward(g, _array(rois), spatial_scale, sampling_ratio, aligned, shape),),
        "roi_align",
    )


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """[K, C, height, width]: the largest pixel of each part of each region, and its place in its plane (int32)."""
    _check("roi_pool_forward_kernel", input, rois)
    n, c, h, w = input.shape
    return _pooled(
        input,
        [(len(rois), c, pooled_height, pooled_width)] * 2,
        lambda x: regions.largest(x, _array(rois), spatial_scale, pooled_height, pooled_width),
        lambda grad, places: roi_pool_backward(
            grad, rois, places, spatial_scale, pooled_height, pooled_width, n, c, h, w
        ),
    )


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
    _check("roi_pool_backward_kernel", grad, rois, "grad")
    shape = (batch_size, channels, height, width)
    return _pooled(
        grad, [shape], lambda g: (regions.largest_backward(g, _array(rois), _array(argmax), shape),), "roi_pool"
    )


def ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> tuple[Tensor, Tensor]:
    """`roi_align` whose parts have channels of their own, C / (height * width) for each; and these channels (int32)."""
    _check("ps_roi_align_forward_kernel", input, rois)
    n, c, h, w = input.shape
    shape = (len(rois), _sensitive_channels(input, pooled_height, pooled_width), pooled_height, pooled_width)
    return _pooled(
        input,
        [shape] * 2,
        lambda x: (
            regions.sensitive_align(x, _array(rois), spatial_scale, pooled_height, pooled_width, sampling_ratio),
            regions.channels_of(*shape),
        ),
        lambda grad, mapping: ps_roi_align_backward(
            grad, rois, mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio, n, c, h, w
        ),
    )


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
    _check("ps_roi_align_backward_kernel", grad, rois, "grad")
    shape = (batch_size, channels, height, width)
    return _pooled(
        grad,
        [shape],
        lambda g: (regions.sensitive_align_backward(g, _array(rois), spatial_scale, sampling_ratio, shape),),
        "ps_roi_align",
    )


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The mean of each part of each region, from channels of its own; and these channels (int32)."""
    _check("ps_roi_pool_forward_kernel", input, rois)
    n, c, h, w = input.shape
    shape = (len(rois), _sensitive_channels(input, pooled_height, pooled_width), pooled_height, pooled_width)
    return _pooled(
        input,
        [shape] * 2,
        lambda x: (
            regions.sensitive(x, _array(rois), spatial_scale, pooled_height, pooled_width),
            regions.channels_of(*shape),
        ),
        lambda grad, mapping: ps_roi_pool_backward(
            grad, rois, mapping, spatial_scale, pooled_height, pooled_width, n, c, h, w
        ),
    )


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
    _check("ps_roi_pool_backward_kernel", grad, rois, "grad")
    shape = (batch_size, channels, height, width)
    return _pooled(
        grad, [shape], lambda g: (regions.sensitive_backward(g, _array(rois), spatial_scale, shape),), "ps_roi_pool"
    )


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
