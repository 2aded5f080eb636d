"""Views of numpy arrays of one geometry, by the quickest way that numpy has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter, methodcaller

from numpy import ndarray

from .. import _memory


def viewer(array: ndarray, shape: tuple, stride: tuple, offset: int) -> Callable[[ndarray], ndarray]:
    """A function of arrays with the shape and strides of `array` that gives this view of each; stride and offset in elements.

    The view begins within the array or, by way of its root, outside of it.
    """
    wanted = _memory.strided_view(array, shape, stride, offset)
    place = (wanted.shape, wanted.strides, _memory.address(wanted))
    for look in _ways(array, wanted, shape, tuple(stride), offset):
        try:
            found = look(array)
        except (ValueError, IndexError):
            continue
        if found is not array and (found.shape, found.strides, _memory.address(found)) == place:
            return look
    return lambda data: _memory.strided_view(data, shape, stride, offset)


def _ways(
    array: ndarray, wanted: ndarray, shape: tuple, stride: tuple, offset: int
) -> Iterator[Callable[[ndarray], ndarray]]:
    """What may give the view, quickest first."""
    strides, kind = wanted.strides, array.dtype
    if not array.size:
        return
    if len(shape) == array.ndim:
        if (array.shape, array.strides) == (shape, strides) and not offset:
            yield methodcaller("view")
        free = list(range(array.ndim))
        order = []
        for n, step in zip(shape, strides):
            at = next((d for d in free if (array.shape[d], array.strides[d]) == (n, step)), None)
            if at is None:
                break
            free.remove(at)
            order.append(at)
        else:
            yield methodcaller("transpose", tuple(order))
        if strides == array.strides:
            yield itemgetter(_slices(array, shape, offset))
    if array.flags.c_contiguous and not offset:
        # numpy reads one number quicker than a tuple of one.
        yield methodcaller("reshape", shape[0] if len(shape) == 1 else shape)
    if array.flags.forc:
        start = offset * kind.itemsize
        yield lambda data: ndarray(shape, kind, data, start, strides)


def _slices(array: ndarray, shape: tuple, offset: int) -> tuple:
    """The slices that begin at an offset and have these sizes, if there are some."""
    rest = offset * array.itemsize
    starts = [0] * array.ndim
    for d in sorted(range(array.ndim), key=lambda d: -array.strides[d]):
        if array.strides[d] and array.shape[d] > 1:
            starts[d], rest = divmod(rest, array.strides[d])
    return tuple([slice(start, start + n) for start, n in zip(starts, shape)])
