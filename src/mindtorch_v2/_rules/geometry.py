"""The geometry that all rules share: shapes, strides and orders of dimensions.

Note [Strides of a pointwise result]. A pointwise result is dense and lies in memory in the order of its operands.
Dimensions are sorted by stride, the first operand deciding; a stride of 0 (a broadcast dimension) decides nothing, so
the next operand is asked, and where nobody decides the order of the dimensions stays. Operands that all have the
result's shape are judged at once: all contiguous, all channels_last or all of equal dense strides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Shape = tuple[int, ...]
Geometry = tuple[Sequence[int], Sequence[int]]
"""A shape and the strides, in elements."""

CHANNELS_LAST_ORDER = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
"""By the number of dimensions: the dimensions of a channels_last tensor, the fastest first."""


def numel(shape: Sequence[int]) -> int:
    """The number of elements of a tensor of `shape`."""
    count = 1
    for size in shape:
        count *= size
    return count


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """The strides of a contiguous tensor. A dimension of size 0 counts as 1."""
    stride = 1
    strides = []
    for size in reversed(shape):
        strides.append(stride)
        stride *= size if size > 1 else 1
    return tuple(reversed(strides))


def channels_last_strides(shape: Sequence[int]) -> Shape:
    """The strides of a channels_last tensor of 4 (channels_last) or 5 (channels_last_3d) dimensions."""
    strides = [0] * len(shape)
    stride = 1
    for dim in CHANNELS_LAST_ORDER[len(shape)]:
        strides[dim] = stride
        stride *= shape[dim]
    return tuple(strides)


def _in_order(shape: Sequence[int], stride: Sequence[int], order: Sequence[int]) -> bool:
    """Whether the dimensions, the fastest first, follow each other without a gap. Those of size 1 lie anywhere."""
    expected = 1
    for dim in order:
        size = shape[dim]
        if size != 1:
            if stride[dim] != expected:
                return False
            expected *= size
    return True


def is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the elements lie in row-major order without gaps. Tensors without elements do."""
    return 0 in shape or _in_order(shape, stride, range(len(shape) - 1, -1, -1))


def is_channels_last(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether a tensor of 4 or 5 dimensions is dense in channels_last order."""
    order = CHANNELS_LAST_ORDER.get(len(shape))
    return order is not None and _in_order(shape, stride, order)


def prefers_channels_last(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the strides look channels_last (PyTorch's `suggest_memory_format`), dense or not.

    A tensor that is also contiguous (one channel, or one pixel) is decided by the strides of its dimensions of size 1.
    """
    order = CHANNELS_LAST_ORDER.get(len(shape))
    if order is None or stride[1] == 0:
        return False
    smallest = 0
    for dim in order:
        if shape[dim] == 0 or stride[dim] < smallest:
            return False
        if dim == 0 and smallest == stride[1]:
            return False  # N11W: every order fits, contiguous wins
        smallest = stride[dim] * (shape[dim] if shape[dim] > 1 else 1)
    return True


def is_non_overlapping_and_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether each element of the memory that the tensor spans belongs to exactly one index, in any order of
    dimensions."""
    if is_contiguous(shape, stride):
        return True
    long = sorted((step, size) for size, step in zip(shape, stride, strict=True) if size > 1)
    expected = 1
    for step, size in long:
        if step != expected:
            return False
        expected *= size
    return True


def _sorted_dims(ndim: int, compare: Callable[[int, int], int]) -> list[int]:
    """The dimensions, the fastest first. `compare` may answer 0, "undecided", which is not transitive: hence this
    very insertion sort."""
    perm = list(range(ndim - 1, -1, -1))
    for i in range(1, ndim):
        at = i
        for other in range(i - 1, -1, -1):
            order = compare(perm[other], perm[at])
            if order > 0:
                perm[other], perm[at] = perm[at], perm[other]
                at = other
            elif order < 0:
                break
    return perm


def infer_dense_strides(shape: Sequence[int], stride: Sequence[int]) -> Shape:
    """The dense strides that keep the order of `stride`: those of `empty_like` and `clone` with preserve_format."""
    if is_non_overlapping_and_dense(shape, stride):
        return tuple(stride)
    ndim = len(shape)
    if ndim == 1:
        return (1,)

    def compare(a: int, b: int) -> int:
        if stride[a] == 0 or stride[b] == 0:
            return 0
        if stride[a] != stride[b]:
            return -1 if stride[a] < stride[b] else 1
        return 1 if shape[a] > shape[b] else 0

    strides = [0] * ndim
    step = 1
    for dim in _sorted_dims(ndim, compare):
        strides[dim] = step
        step *= shape[dim] if shape[dim] > 1 else 1
    return tuple(strides)


def elementwise_strides(shape: Shape, operands: Sequence[Geometry]) -> Shape | None:
    """The strides of a pointwise result, None if contiguous. See Note [Strides of a pointwise result].

    shape: the broadcast shape. operands: shape and strides of every operand in order; numbers count as ((), ()).
    """
    ndim = len(shape)
    plain = contiguous_strides(shape)
    scalars = False
    for sizes, steps in operands:
        if shape and not sizes:
            scalars = True
        elif steps != plain or sizes != shape:
            break
    else:
        # Beside scalars the dims are sorted, which keeps this order unless the result is empty.
        if not scalars or 0 not in shape:
            return None
    if ndim < 2 and all(len(sizes) == ndim for sizes, _ in operands):
        return None
    if all(tuple(sizes) == shape for sizes, _ in operands):
        if all(is_contiguous(*operand) for operand in operands):
            return None
        if all(is_channels_last(*operand) for operand in operands):
            return channels_last_strides(shape)
        first = tuple(operands[0][1])
        if all(tuple(steps) == first for _, steps in operands) and is_non_overlapping_and_dense(shape, first):
            return first
    spread: list[list[int]] = []
    for sizes, steps in operands:
        if not sizes:
            continue
        missing = ndim - len(sizes)
        spread.append(
            [0] * missing
            + [
                0 if size == 1 and shape[missing + dim] != 1 else step
                for dim, (size, step) in enumerate(zip(sizes, steps, strict=True))
            ]
        )

    def compare(a: int, b: int) -> int:
        for steps in spread:
            step_a, step_b = steps[a], steps[b]
            if step_a == 0 or step_b == 0:
                continue
            if step_a != step_b:
                return -1 if step_a < step_b else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    perm = _sorted_dims(ndim, compare)
    if all(dim == ndim - 1 - place for place, dim in enumerate(perm)):
        return None
    strides = [0] * ndim
    step = 1
    for dim in perm:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def geometry(tensor: Any) -> Geometry:
    """Shape and strides of a tensor."""
    return tensor.shape, tensor.stride()


def format_name(memory_format: Any) -> str:
    """The bare name of a memory format: 'preserve_format', 'contiguous_format', 'channels_last', 'channels_last_3d'.
    None is preserve_format."""
    return "preserve_format" if memory_format is None else str(memory_format).rpartition(".")[2]


def format_strides(tensor: Any, memory_format: Any = None) -> Shape | None:
    """The strides of a fresh tensor like `tensor` in `memory_format`; None if contiguous.

    Raises RuntimeError if a channels_last format does not fit the number of dimensions.
    """
    name = format_name(memory_format)
    shape, stride = tensor.shape, tensor.stride()
    if name == "preserve_format":
        strides = infer_dense_strides(shape, stride)
        return None if strides == contiguous_strides(shape) else strides
    if name == "contiguous_format":
        return None
    ndim = 4 if name == "channels_last" else 5
    if len(shape) != ndim:
        raise RuntimeError(f"required rank {ndim} tensor to use {name} format")
    return channels_last_strides(shape)
