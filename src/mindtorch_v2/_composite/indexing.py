"""Indexing made of other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import wrap_existing_dim
from mindtorch_v2._tensor import Tensor


def unsafe_index_put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`index_put`."""
    return F.index_put(self, indices, values, accumulate)


def _inside(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The indices, kept in range where the mask is not set."""
    places = []
    for dim, index in enumerate(indices):
        if index is not None:
            index = F.where(mask, F.clamp(index, -self.shape[dim], self.shape[dim] - 1), 0)
        places.append(index)
    return places


def unsafe_masked_index(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Any) -> Tensor:
    """self at the indices where the mask is set, `fill` elsewhere."""
    if not self.numel():  # nothing to read, so `fill` everywhere
        self = F.new_full(self, [max(size, 1) for size in self.shape], fill)
    return F.masked_fill(F.index(self, _inside(self, mask, indices)), F.logical_not(mask), fill)


def unsafe_masked_index_put_accumulate(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    """self with the values added at the indices where the mask is set."""
    kept = F.masked_fill(values, F.logical_not(mask), 0)
    if not self.numel():  # nothing to add to, but all must be on one device
        F.cat([F.reshape(self, [-1]), F.reshape(kept, [-1])])
        return F.clone(self)
    return F.index_put(self, _inside(self, mask, indices), kept, True)


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements of `self` along `dim`, the other dimensions broadcast; without `dim`, of the flat tensor."""
    if indices.dtype is not _dtype.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.cpp}")
    if dim is None:
        return F.gather(F.reshape(self, [-1]), 0, _from_front(F.reshape(indices, [-1]), self.numel()))
    if self.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {self.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    at = wrap_existing_dim(dim, self.dim())
    source, places = list(self.shape), list(indices.shape)
    for d in range(self.dim()):
        if d != at:
            if source[d] != places[d] and 1 not in (source[d], places[d]):
                raise RuntimeError(
                    f"The size of tensor a ({source[d]}) must match the size of tensor b ({places[d]}) at non-singleton "
                    f"dimension {d}"
                )
            source[d] = places[d] = places[d] if source[d] == 1 else source[d]
    return F.gather(F.expand(self, source), dim, F.expand(_from_front(indices, source[at] if source else 1), places))


def _from_front(indices: Tensor, size: int) -> Tensor:
    """Indices that count from the end, or go round more often, counted from the front."""
    return F.remainder(indices, size) if size else indices


def nonzero_numpy(self: Tensor) -> tuple[Tensor, ...]:
    """The coordinates of what is not zero, one tensor for each dimension."""
    if not self.dim():
        self = F.reshape(self, [1])
    return tuple(F.unbind(F.nonzero(self), 1))


def argwhere(self: Tensor) -> Tensor:
    """`nonzero`."""
    return F.nonzero(self)
