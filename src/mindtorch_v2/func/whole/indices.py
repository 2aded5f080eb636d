"""Elements at places that tensors say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._dispatch import ops
from ..._tensor import Tensor
from ..batched import Level, line_up
from ..kinds import front

__all__ = [
    "copied_at",
    "counted_in",
    "filled",
    "filled_at",
    "indexed",
    "masked",
    "put_at",
    "selected",
    "summed_at",
    "taken",
]


def indexed(level: Level, self: Tensor, indices: Sequence[Any]) -> Any:
    """`self[i, j]`, where each of the indices, and self, may be batched."""
    prepared = _with_rows(level, [self, *indices], self, indices)
    if prepared is None:
        return None
    values, places, width, start = prepared
    made = ops.index(values, places)
    if start:  # the dimensions of the indices stand behind those that precede them
        made = made.movedim(list(range(1, 1 + width)), list(range(1 + start, 1 + start + width)))
    return level.wrap(made)


def put_at(level: Level, self: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool) -> Any:
    """A copy of self with values at indices."""
    prepared = _with_rows(level, [self, *indices, values], self, indices)
    if prepared is None:
        return None
    targets, places, width, start = prepared
    count = targets.shape[0]
    rest = targets.dim() - len(places) + sum(p is None for p in places)
    source = line_up(level.wrap(front(level, values, count)), level, width + rest)
    if source.dim() - 1 != width + rest:
        return None
    if start:
        source = source.movedim(list(range(1 + start, 1 + start + width)), list(range(1, 1 + width)))
    return level.wrap(ops.index_put(targets, places, source, accumulate))


def _with_rows(
    level: Level, operands: list, self: Tensor, indices: Sequence[Any]
) -> tuple[Tensor, list, int, int] | None:
    """(self with the batch in front, indices of which the first says which example, how many dimensions the others have, where those come in the
    result of an example); None for masks that differ between examples and for what indices refuse."""
    given = [i for i in indices if i is not None]
    if not given or any(level(i) and i.dtype.category == 0 for i in given):
        return None
    count = next(t for t in operands if level(t))._value.shape[0]
    spread: list = []
    for index in indices:
        if index is None or index.dtype.category or index.dtype.itemsize > 1:
            spread.append(index)
        else:  # a mask
            place = len(spread)
            if tuple(index.shape) != tuple(self.shape[place : place + index.dim()]):
                return None
            spread.extend(ops.unbind(ops.nonzero(index), 1))
    if len(spread) > self.dim():
        return None
    used = [i for i, index in enumerate(spread) if index is not None]
    width = max(spread[i].dim() for i in used)
    rows = ops.arange(count, device=self.device).reshape((count, *([1] * width)))
    places = [rows, *(None if i is None else line_up(i, level, width) for i in spread)]
    start = used[0] if used[-1] - used[0] == len(used) - 1 else 0
    return front(level, self, count), places, width, start


# Along one dimension


def _wrapped(self: Tensor, dim: int, index: Tensor) -> int | None:
    """The dimension as it is counted from the front; None where it or the index is refused."""
    count = max(self.dim(), 1)
    accepted = index.dim() < 2 and index.dtype.category == 1 and index.dtype.itemsize == 8
    return dim % count if accepted and -count <= dim < count else None


def _as_vectors(self: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Tensors without dimensions as vectors of one element."""
    return self if self.dim() else self.reshape([1]), index if index.dim() else index.reshape([1])


def _spread(index: Tensor, dim: int, shape: Sequence[int]) -> Tensor:
    """One position for each element of a shape, which `index` has along `dim`."""
    return index.reshape([-1 if i == dim else 1 for i in range(len(shape))]).expand(shape)


def selected(level: Level, self: Any, dim: int, index: Any) -> Any:
    """The parts of self at the positions."""
    place = _wrapped(self, dim, index)
    if place is None or not self.dim():
        return None
    self, index = _as_vectors(self, index)
    if not level(index):
        return level.wrap(ops.index_select(self._value, place + 1, index))
    shape = [index.shape[0] if i == place else n for i, n in enumerate(self.shape)]
    return ops.gather(self, place, _spread(index, place, shape))


def _alike(self: Tensor, place: int, index: Tensor, source: Tensor) -> bool:
    """Whether the source has self's shape, but for one part for each position."""
    wanted = [index.shape[0] if i == place else n for i, n in enumerate(self.shape)]
    return list(source.shape) == wanted and source.dtype is self.dtype


def summed_at(level: Level, self: Any, dim: int, index: Any, source: Any, alpha: Any) -> Any:
    """self with the parts of the source added at the positions."""
    place = _wrapped(self, dim, index)
    if place is None or not index.dim() or not _alike(self, place, index, source):
        return None
    if level(index):
        return ops.scatter_add(
            self, place, _spread(index, place, source.shape), source if alpha == 1 else source * alpha
        )
    count = (self if level(self) else source)._value.shape[0]
    targets, parts = front(level, self, count), front(level, source, count)
    return level.wrap(ops.index_add(targets, place + 1, index, parts, alpha=alpha))


def copied_at(level: Level, self: Any, dim: int, index: Any, source: Any) -> Any:
    """self with the parts of the source at the positions."""
    place = _wrapped(self, dim, index)
    if place is None or not index.dim() or not _alike(self, place, index, source):
        return None
    if level(index):
        return ops.scatter(self, place, _spread(index, place, source.shape), source)
    count = (self if level(self) else source)._value.shape[0]
    return level.wrap(ops.index_copy(front(level, self, count), place + 1, index, front(level, source, count)))


def filled_at(level: Level, self: Any, dim: int, index: Any, value: Any) -> Any:
    """self with one number at the positions."""
    place = _wrapped(self, dim, index)
    batched = isinstance(value, Tensor) and level(value)
    if place is None or (isinstance(value, Tensor) and value.dim()):
        return None
    own = self.shape
    self, index = _as_vectors(self, index)
    if not level(index) and not batched and own:
        return level.wrap(ops.index_fill(self._value, place + 1, index, value))
    shape = [index.shape[0] if i == place else n for i, n in enumerate(self.shape)]
    positions = _spread(index, place, shape)
    fill = value.to(self.dtype).expand(shape) if isinstance(value, Tensor) else value
    return ops.scatter(self, place, positions, fill).reshape(own)


# Elements


def taken(level: Level, self: Tensor, index: Any) -> Any:
    """Elements of self in a row."""
    if not level(self):
        return level.wrap(ops.take(self, index._value))
    if not self.numel():
        return None
    flat = index.reshape([-1])
    return ops.gather(self.reshape([-1]), 0, ops.where(flat < 0, flat + self.numel(), flat)).reshape(index.shape)


def masked(level: Level, self: Tensor, mask: Tensor, value: Tensor) -> Any:
    """self with the value where the mask is true."""
    if value.dim() or mask.dtype.category:
        return None
    if level(value):
        return ops.where(mask, value.to(self.dtype), self)
    width = max(self.dim(), mask.dim())
    return level.wrap(ops.masked_fill(line_up(self, level, width), line_up(mask, level, width), value))


def filled(level: Level, self: Any, value: Any) -> Any:
    """A tensor of self's shape with the value everywhere."""
    if not (isinstance(value, Tensor) and level(value)):
        return None if isinstance(value, Tensor) and value.dim() else level.wrap(ops.fill(self._value, value))
    return None if value.dim() else ops.clone(value.to(self.dtype).expand(self.shape))


def counted_in(level: Level, self: Any, num_classes: int) -> Any:
    """One hot vectors; of as many classes as a number says, not as the values do."""
    return level.wrap(ops.one_hot(self._value, num_classes)) if num_classes > 0 else None
