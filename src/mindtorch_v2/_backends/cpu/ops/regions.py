"""Regions of images: which boxes to keep, and pooling over boxes and over parts of boxes. Boxes are rows of (image, x1, y1, x2, y2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

Array = np.ndarray


def kept(boxes: Array, scores: Array, threshold: float) -> Array:
    """Indices, by falling score, of the boxes that overlap no kept one of a higher score by more than `threshold`."""
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1)
    rest = np.argsort(-scores, kind="stable")
    found = []
    limit = np.float64(threshold)
    with np.errstate(invalid="ignore", divide="ignore"):
        while rest.size:
            i, rest = rest[0], rest[1:]
            found.append(i)
            width = np.maximum(np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest]), 0)
            height = np.maximum(np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest]), 0)
            shared = width * height
            rest = rest[~(shared / (areas[i] + areas[rest] - shared) > limit)]
    return np.array(found, np.int64)


# Averages of bilinear samples: the weights of rows and of columns are independent, so that a region is a product of matrices.


def _weights(start: Array, size: Array, bins: int, samples: int, extent: int) -> tuple[int, Array]:
    """The first pixel that counts, and by bin what each pixel from there on counts in the sum of the bin's samples, along one axis."""
    kind = start.dtype.type
    step = size / kind(bins)
    each = (np.arange(samples, dtype=start.dtype) + kind(0.5)) * step / kind(max(samples, 1))
    places = start + np.arange(bins, dtype=start.dtype)[:, None] * step + each
    inside = (places >= -1) & (places <= extent)
    places = np.where(inside, np.maximum(places, 0), 0)
    low = places.astype(np.int64)
    last = low >= extent - 1
    low = np.where(last, extent - 1, low)
    upper = np.where(last, 0, places - low).astype(start.dtype)
    high = np.minimum(low + 1, extent - 1)
    first, end = (int(low.min()), int(high.max()) + 1) if low.size else (0, 1)
    table = np.zeros((bins, end - first), start.dtype)
    row = np.broadcast_to(np.arange(bins)[:, None], low.shape)
    np.add.at(table, (row, low - first), np.where(inside, 1 - upper, 0))
    np.add.at(table, (row, high - first), np.where(inside, upper, 0))
    return first, table


def _sampled(
    rois: Array, scale: float, bins: tuple[int, ...], ratio: int, shift: float, least: float, extents: tuple[int, ...]
) -> Iterator[tuple[int, tuple[slice, slice], Array, Array, int]]:
    """Of each region its image, the pixels that count, their weights by rows and by columns, and the number of samples of a bin."""
    kind = rois.dtype.type
    for image, *corners in rois:
        x1, y1, x2, y2 = (corner * kind(scale) - kind(shift) for corner in corners)
        tables, places, count = [], [], 1
        for start, end, parts, extent in ((y1, y2, bins[0], extents[0]), (x1, x2, bins[1], extents[1])):
            size = np.maximum(end - start, kind(least)) if least else end - start
            samples = ratio if ratio > 0 else max(int(np.ceil(size / kind(parts))), 0)
            first, table = _weights(start, size, parts, samples, extent)
            tables.append(table)
            places.append(slice(first, first + table.shape[1]))
            count *= samples
        yield int(image), (places[0], places[1]), tables[0], tables[1], count


def align(x: Array, rois: Array, scale: float, height: int, width: int, ratio: int, aligned: bool) -> tuple[Array]:
    """[K, C, height, width]: averages of bilinear samples in each part of each region."""
    out = np.empty((len(rois), x.shape[1], height, width), x.dtype)
    shift, least = (0.5, 0.0) if aligned else (0.0, 1.0)
    regions = _sampled(rois, scale, (height, width), ratio, shift, least, x.shape[2:])
    for k, (image, (ys, xs), rows, columns, count) in enumerate(regions):
        out[k] = rows @ (x[image, :, ys, xs] @ columns.T) / x.dtype.type(max(count, 1))
    return (out,)


def align_backward(
    grad: Array, rois: Array, scale: float, ratio: int, aligned: bool, shape: tuple[int, int, int, int]
) -> Array:
    """The gradient of the images of `align`."""
    out = np.zeros(shape, grad.dtype)
    shift, least = (0.5, 0.0) if aligned else (0.0, 1.0)
    regions = _sampled(rois, scale, grad.shape[2:], ratio, shift, least, shape[2:])
    for k, (image, (ys, xs), rows, columns, count) in enumerate(regions):
        out[image, :, ys, xs] += rows.T @ (grad[k] @ columns) / grad.dtype.type(max(count, 1))
    return out


def _channels(shape: tuple[int, ...]) -> Array:
    """[K, C, height, width], int32: the channel of the images that each part of a position-sensitive pooling reads."""
    own = np.arange(math.prod(shape[1:]), dtype=np.int32).reshape(shape[1:])
    return np.broadcast_to(own, shape).copy()


def sensitive_align(x: Array, rois: Array, scale: float, height: int, width: int, ratio: int) -> tuple[Array, Array]:
    """[K, C / (height * width), height, width]: as `align`, each part from channels of its own; and these channels."""
    out = np.empty((len(rois), x.shape[1] // (height * width), height, width), x.dtype)
    parts = x.reshape(len(x), -1, height, width, *x.shape[2:])
    for k, (image, (ys, xs), rows, columns, count) in enumerate(
        _sampled(rois, scale, (height, width), ratio, 0.5, 0.0, x.shape[2:])
    ):
        with np.errstate(invalid="ignore"):
            out[k] = np.einsum(
                "iy,cijyx,jx->cij", rows, parts[image, :, :, :, ys, xs], columns, optimize=True
            ) / x.dtype.type(count)
    return out, _channels(out.shape)


def sensitive_align_backward(
    grad: Array, rois: Array, scale: float, ratio: int, shape: tuple[int, int, int, int]
) -> Array:
    """The gradient of the images of `sensitive_align`."""
    height, width = grad.shape[2:]
    out = np.zeros(shape, grad.dtype)
    parts = out.reshape(len(out), -1, height, width, *shape[2:])
    for k, (image, (ys, xs), rows, columns, count) in enumerate(
        _sampled(rois, scale, (height, width), ratio, 0.5, 0.0, shape[2:])
    ):
        if count:
            parts[image, :, :, :, ys, xs] += np.einsum(
                "iy,cij,jx->cijyx", rows, grad[k] / grad.dtype.type(count), columns, optimize=True
            )
    return out


# Whole pixels


def _rounded(x: Array) -> Array:
    """Halves away from zero, as C rounds."""
    return (np.sign(x) * np.floor(np.abs(x) + x.dtype.type(0.5))).astype(np.int64)


def _bounds(
    rois: Array, scale: float, bins: tuple[int, ...], extents: tuple[int, ...], end: int, margin: int
) -> Iterator[tuple[int, Array, Array]]:
    """Of each region its image, and the rows and the columns (first, behind the last) of its bins; the ends belong to a region where `end` is 1."""
    kind = rois.dtype.type
    for image, *corners in rois:
        x1, y1, x2, y2 = _rounded(np.array(corners, rois.dtype) * kind(scale))
        found = []
        for start, stop, parts, extent in ((y1, y2, bins[0], extents[0]), (x1, x2, bins[1], extents[1])):
            step = kind(max(stop - start + end, 1)) / kind(parts)
            number = np.arange(parts, dtype=rois.dtype)
            edges = np.stack([np.floor(number * step), np.ceil((number + 1) * step)], 1).astype(np.int64) + start
            found.append(np.clip(edges, 0, extent - margin))
        yield int(image), found[0], found[1]


def largest(x: Array, rois: Array, scale: float, height: int, width: int) -> tuple[Array, Array]:
    """[K, C, height, width]: the largest pixel of each part of each region, and its place in the plane (-1: the part is empty)."""
    out = np.zeros((len(rois), x.shape[1], height, width), x.dtype)
    places = np.full(out.shape, -1, np.int32)
    for k, (image, rows, columns) in enumerate(_bounds(rois, scale, (height, width), x.shape[2:], 1, 0)):
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if bottom > top and right > left:
                    window = x[image, :, top:bottom, left:right].reshape(x.shape[1], -1)
                    best = window.argmax(1)
                    out[k, :, i, j] = np.take_along_axis(window, best[:, None], 1)[:, 0]
                    row, column = np.divmod(best, right - left)
                    places[k, :, i, j] = (row + top) * x.shape[3] + column + left
    return out, places


def largest_backward(grad: Array, rois: Array, places: Array, shape: tuple[int, int, int, int]) -> Array:
    """The gradient of the images of `largest`."""
    out = np.zeros(shape, grad.dtype)
    planes = out.reshape(*shape[:2], -1)
    image = np.broadcast_to(rois[:, 0].astype(np.int64)[:, None, None, None], grad.shape)
    channel = np.broadcast_to(np.arange(shape[1])[None, :, None, None], grad.shape)
    there = places >= 0
    np.add.at(planes, (image[there], channel[there], places[there]), grad[there])
    return out


def _sensitive_windows(
    rois: Array, scale: float, parts: Array, margin: int, use: Callable[[int, int, int, Array, int], None]
) -> None:
    """Call `use` with region, row, column, pixels and their number of each part that has pixels; parts [N, C, height, width, H, W]."""
    bounds = _bounds(rois, scale, parts.shape[2:4], parts.shape[4:], 0, margin)
    for k, (image, rows, columns) in enumerate(bounds):
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if bottom > top and right > left:
                    use(k, i, j, parts[image, :, i, j, top:bottom, left:right], (bottom - top) * (right - left))


def sensitive(x: Array, rois: Array, scale: float, height: int, width: int) -> tuple[Array, Array]:
    """[K, C / (height * width), height, width]: the mean of each part of each region, from channels of its own; and these channels."""
    out = np.zeros((len(rois), x.shape[1] // (height * width), height, width), x.dtype)

    def use(k: int, i: int, j: int, window: Array, area: int) -> None:
        out[k, :, i, j] = window.sum((1, 2)) / x.dtype.type(area)

    # Without the last row and column, which torchvision leaves out on this way and counts on the way back.
    _sensitive_windows(rois, scale, x.reshape(len(x), -1, height, width, *x.shape[2:]), 1, use)
    return out, _channels(out.shape)


def sensitive_backward(grad: Array, rois: Array, scale: float, shape: tuple[int, int, int, int]) -> Array:
    """The gradient of the images of `sensitive`."""
    height, width = grad.shape[2:]
    out = np.zeros(shape, grad.dtype)

    def use(k: int, i: int, j: int, window: Array, area: int) -> None:
        window += (grad[k, :, i, j] / grad.dtype.type(area))[:, None, None]

    _sensitive_windows(rois, scale, out.reshape(len(out), -1, height, width, *shape[2:]), 0, use)
    return out
