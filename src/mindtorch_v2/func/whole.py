"""What operators do to whole batches of examples, by the words of their entries: `vmap: product(self, mat2, 2, 2)`.

Each function takes the level, and the arguments as the examples show them; what is batched there has the whole batch as `_value`. It returns the
result as the examples show it, or None where they are to run one by one, which also says what is wrong with their arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._dispatch import ops
from .._layout import contiguous_format, preserve_format
from .._tensor import Tensor
from .batched import Level, line_up, mapped


def each(level: Level) -> None:
    """One by one, though the operator is a view."""


def dynamic(level: Level, name: str) -> None:
    """RuntimeError: the result has another shape for each example."""
    raise RuntimeError(
        f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over aten::{name}. Please file an "
        "issue at https://github.com/pytorch/pytorch/issues if you need this feature."
    )


def by_mask(level: Level, mask: Tensor) -> None:
    """RuntimeError where each example has a mask of its own."""
    if level(mask):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each batch this would "
            "return a differently shaped Tensor. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )


def reduced(level: Level, name: str, self: Any, dtype: Any) -> Any:
    """All elements of each example reduced by the operator of a name."""
    if not self.dim():
        return None
    value = self._value
    return level.wrap(getattr(ops, name)(value, list(range(1, value.dim())), dtype=dtype))


def no_tensor(level: Level, name: str) -> None:
    """RuntimeError: the result is one number for all examples."""
    raise RuntimeError(
        f"Batching rule not implemented for aten::{name}. We could not generate a fallback since it gives no tensors."
    )


def cloned(level: Level, self: Any, memory_format: Any) -> Any:
    """Copies of the examples. RuntimeError for orders of elements that a batch cannot have."""
    if memory_format not in (None, preserve_format, contiguous_format):
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format torch.preserve_format or "
            f"torch.contiguous_format (got {memory_format})"
        )
    return level.wrap(ops.clone(self._value, memory_format=memory_format))


def matrices(level: Level, name: str, self: Any, *rest: Any) -> Any:
    """What an operator that takes batches of matrices by itself gives of all of them."""
    return mapped(getattr(ops, name)(self._value, *rest), level.wrap) if self.dim() > 1 else None


# Views


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


# Products of matrices


def product(
    level: Level, a: Tensor, b: Tensor, rows: int | None = None, columns: int | None = None, name: str = ""
) -> Any:
    """`a @ b`; `rows`, `columns`: how many dimensions the operands must have, where not any: RuntimeError for others."""
    if rows is not None and (a.dim(), b.dim()) != (rows, columns):
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for {name}(a, b). a has dim {a.dim()} and b has dim {b.dim()} but expected them to have dim "
            f"{rows} and dim {columns}"
        )
    return level.wrap(_product(a, b, level)) if a.dim() and b.dim() else None


def linear(level: Level, input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """`input @ weight.T + bias`."""
    if not input.dim() or weight.dim() != 2:
        return None
    flipped = level.wrap(weight._value.transpose(-2, -1)) if level(weight) else weight.transpose(-2, -1)
    made: Any = level.wrap(_product(input, flipped, level)) if level(input) or level(flipped) else input @ flipped
    return made if bias is None else made + bias


def _product(a: Tensor, b: Tensor, level: Level) -> Tensor:
    """`a @ b` of every example."""
    row, column = a.dim() == 1, b.dim() == 1
    width = max(a.dim() + row, b.dim() + column)
    left = _as_matrix(a, -2, level) if row else a
    right = _as_matrix(b, -1, level) if column else b
    result = line_up(left, level, width) @ line_up(right, level, width)
    if row:
        result = result.squeeze(-2 + column) if column else result.squeeze(-2)
    return result.squeeze(-1) if column else result


def _as_matrix(t: Tensor, place: int, level: Level) -> Any:
    return level.wrap(t._value.unsqueeze(place)) if level(t) else t.unsqueeze(place)


# Batches of images


def folded(level: Level, name: str, tensors: Sequence[Tensor], options: Sequence[Any], dims: Sequence[int]) -> Any:
    """The operator of a name whose tensors, of `dims` dimensions, begin with a batch: all examples' batches are one; the options are the same for all."""
    if any(isinstance(option, Tensor) and level(option) for option in options):
        return None
    first = tensors[0]
    own = first.shape[0] if first.dim() in dims else 0
    if not own or any(tensor.dim() not in dims or tensor.shape[0] != own for tensor in tensors):
        return None
    count = next(tensor._value.shape[0] for tensor in tensors if level(tensor))
    values = [t._value if level(t) else t.expand((count, *t.shape)) for t in tensors]
    result = getattr(ops, name)(*[value.flatten(0, 1) for value in values], *options)
    return level.wrap(result.unflatten(0, (count, own)))
