"""Views of examples as views of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._layout import contiguous_format, preserve_format
from ..._tensor import Tensor
from ..batched import Level
from ..kinds import front

__all__ = [
    "as_complex",
    "cloned",
    "expanded",
    "expanded_as",
    "permuted",
    "shaped",
    "strided",
    "squeezed",
    "squeezed_at",
    "turned",
    "unsqueezed",
    "written",
]


def cloned(level: Level, self: Any, memory_format: Any) -> Any:
    """Copies of the examples. RuntimeError for orders of elements that a batch cannot have."""
    if memory_format not in (None, preserve_format, contiguous_format):
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {memory_format})"
        )
    return level.wrap(ops.clone(self._value, memory_format=memory_format))


def permuted(level: Level, self: Any) -> Any:
    """The dimensions of each example in reverse."""
    return level.wrap(self._value.permute([0, *range(self.dim(), 0, -1)]))


def squeezed(level: Level, self: Any) -> Any:
    """Each example without its dimensions of size 1."""
    return level.wrap(ops.squeeze(self._value, [d + 1 for d, n in enumerate(self.shape) if n == 1]))


def squeezed_at(level: Level, self: Any, dim: Any) -> Any:
    """Each example without some of them; one without dimensions takes 0 and -1 for its own."""
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    count = self.dim()
    if not count and all(d in (0, -1) for d in dims):
        return level.wrap(ops.alias(self._value))
    if not count:
        raise RuntimeError(f"Dimension is out of range (expected to be in range of [-1, 0], but got {dims}")
    if not all(-count <= d < count for d in dims):
        return None
    return level.wrap(ops.squeeze(self._value, [d + 1 if d >= 0 else d for d in dims]))


def as_complex(level: Level, self: Any) -> Any:
    """Each example's pairs as complex numbers."""
    return level.wrap(ops.view_as_complex(self._value)) if self.dim() else None


def unsqueezed(level: Level, self: Any, dim: int) -> Any:
    """Each example with a dimension more."""
    count = self.dim()
    return level.wrap(ops.unsqueeze(self._value, dim + 1 if dim >= 0 else dim)) if -count - 1 <= dim <= count else None


def expanded(level: Level, self: Any, size: Sequence[int]) -> Any:
    """Each example stretched, dimensions of size 1 in front of it first."""
    missing = len(size) - self.dim()
    if missing < 0:
        return None
    value = self._value
    if missing:
        value = value.reshape((value.shape[0], *([1] * missing), *value.shape[1:]))
    return level.wrap(ops.expand(value, [value.shape[0], *size]))


def shaped(level: Level, name: str, self: Any, other: Tensor) -> Any:
    """The view of a name in the shape of another tensor, of which that alone counts."""
    size = list(other.shape)
    if not level(self):
        return getattr(ops, name)(self, size)
    return level.wrap(getattr(ops, name)(self._value, [self._value.shape[0], *size]))


def expanded_as(level: Level, self: Any, other: Tensor) -> Any:
    """`expanded` to the shape of another tensor, of which that alone counts."""
    size = list(other.shape)
    return expanded(level, self, size) if level(self) else ops.expand(self, size)


def written(level: Level, name: str, self: Any, src: Any, *arguments: Any) -> Any:
    """A copy of self with `src` in the view of a name."""
    count = (self if level(self) else src)._value.shape[0]
    copy = level.wrap(ops.clone(front(level, self, count), memory_format=contiguous_format))
    part = getattr(ops, name)(copy, *arguments)
    if part.shape != src.shape:
        return None
    ops.copy_(part, src)
    return copy


def turned(level: Level, self: Any) -> Any:
    """The last two dimensions exchanged."""
    return level.wrap(self._value.transpose(-2, -1)) if self.dim() > 1 else None


def strided(level: Level, self: Any, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Any:
    """Each example in another geometry. RuntimeError for one that leaves the example's memory."""
    value = self._value
    start = value.storage_offset()
    first = (start if offset is None else offset) - start
    if len(size) != len(stride):
        raise RuntimeError(
            f"Tensor.as_strided(size, stride, ...): size and stride must have the same length! Got size {list(size)} and stride {list(stride)}"
        )
    if 0 not in size:
        reached = first + sum((n - 1) * s for n, s in zip(size, stride))
        last = -1 if 0 in self.shape else sum((n - 1) * s for n, s in zip(self.shape, self.stride()))
        if first < 0 or reached > last:
            raise RuntimeError(
                f"result = tensor.as_strided({list(size)},{list(stride)},{start + first}) can access memory outside of `tensor`. `tensor` has "
                f"sizes {list(self.shape)}, strides {list(self.stride())} and storage_offset {start}. This is not supported inside of vmap, "
                "please try to rewrite the `as_strided` call as a sequence of PyTorch view operations"
            )
    return level.wrap(ops.as_strided(value, [value.shape[0], *size], [value.stride()[0], *stride], offset))
