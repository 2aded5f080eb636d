"""Reductions of all elements, and operators of dimensions that no parameter names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor
from ..batched import Level
from ..kinds import front

__all__ = [
    "flattened",
    "found_in",
    "of_whole_batch",
    "on_diagonal",
    "padded",
    "reduced",
    "repeated",
    "rolled",
    "sorted_into",
    "traced",
]


def reduced(level: Level, name: str, self: Any, dtype: Any) -> Any:
    """All elements of each example reduced by the operator of a name, which takes several dimensions."""
    value = self._value
    if not self.dim():
        return level.wrap(getattr(ops, name)(value.unsqueeze(1), [1], dtype=dtype))
    return level.wrap(getattr(ops, name)(value, list(range(1, value.dim())), dtype=dtype))


def flattened(level: Level, name: str, self: Any, dtype: Any = None) -> Any:
    """All elements of each example reduced by the operator of a name along one dimension; of several results the first is meant."""
    value = self._value
    if not self.numel():
        return None
    options = {} if dtype is None else {"dtype": dtype}
    made = getattr(ops, name)(value.flatten(1) if self.dim() else value.unsqueeze(1), 1, **options)
    return level.wrap(made[0] if isinstance(made, tuple) else made)


def of_whole_batch(level: Level, name: str, self: Any) -> Tensor:
    """One answer for all examples, which is no batch."""
    return getattr(ops, name)(self._value)


def traced(level: Level, self: Tensor) -> Any:
    """The sum of a matrix's diagonal."""
    return ops.sum(ops.diagonal(self), [0]) if self.dim() == 2 else None


def on_diagonal(level: Level, self: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Matrices with the last dimension on a diagonal."""
    count = self.dim() + 1
    if not self.dim() or not all(-count <= d < count for d in (dim1, dim2)):
        return None
    return level.wrap(ops.diag_embed(self._value, offset, *(d + 1 if d >= 0 else d for d in (dim1, dim2))))


def rolled(level: Level, self: Any, shifts: Any, dims: Sequence[int]) -> Any:
    """Elements moved along dimensions, or along all of them in a row."""
    count = self.dim()
    if not count or not all(-count <= d < count for d in dims):
        return None
    if not dims:
        return level.wrap(ops.roll(self._value.flatten(1), shifts, [1]).reshape(self._value.shape))
    return level.wrap(ops.roll(self._value, shifts, [d + 1 if d >= 0 else d for d in dims]))


def repeated(level: Level, self: Any, repeats: Sequence[int]) -> Any:
    """Each example several times."""
    missing = len(repeats) - self.dim()
    if missing < 0:
        return None
    value = self._value
    return level.wrap(ops.repeat(value.reshape((value.shape[0], *([1] * missing), *value.shape[1:])), [1, *repeats]))


def padded(level: Level, self: Any, pad: Sequence[int], value: Any) -> Any:
    """Each example with a margin."""
    return level.wrap(ops.constant_pad_nd(self._value, pad, value)) if len(pad) <= 2 * self.dim() else None


def found_in(level: Level, elements: Any, tests: Any, invert: bool) -> Any:
    """Which elements are among the others."""
    if any(isinstance(t, Tensor) and t.dtype.category not in (1, 2) for t in (elements, tests)):
        return None
    if not level(tests):
        return level.wrap(ops.isin(elements._value, tests, invert=invert))
    if isinstance(elements, Tensor):
        elements = elements.unsqueeze(-1)
    found = ops.any(tests.flatten() == elements, -1)
    return ops.logical_not(found) if invert else found


def sorted_into(
    level: Level,
    sequence: Any,
    values: Any,
    sorter: Any = None,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> Any:
    """The places of values in sorted sequences."""
    options = {"out_int32": out_int32, "right": right, "side": side}
    if level(sorter) or (sorter is not None and level(sequence)):
        return None
    if not level(sequence):
        return (
            level.wrap(ops.searchsorted(sequence, values._value, sorter=sorter, **options))
            if sequence.dim() == 1
            else None
        )
    if not isinstance(values, Tensor):
        if isinstance(values, float) and sequence.dtype.category < 2:
            return None
        values = ops.scalar_tensor(values, dtype=sequence.dtype, device=sequence.device)
    count = sequence._value.shape[0]
    value = front(level, values, count)
    if sequence.dim() > 1:
        return (
            level.wrap(ops.searchsorted(sequence._value, value, **options)) if values.dim() == sequence.dim() else None
        )
    found = ops.searchsorted(sequence._value, value.reshape((count, -1)), **options)
    return level.wrap(found.reshape(value.shape))
