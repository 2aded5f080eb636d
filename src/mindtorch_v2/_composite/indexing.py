"""Indexing made of other operators."""

from __future__ import annotations

from collections.abc import Sequence

from mindtorch_v2 import _dtype
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def unsafe_index_put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """`index_put`."""
    return F.index_put(self, indices, values, accumulate)


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements of `self` along `dim`, the other dimensions broadcast; without `dim`, of the flat tensor."""
    if indices.dtype is _dtype.int32:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.cpp}")
    if dim is None:
        return F.gather(F.reshape(self, [-1]), 0, F.reshape(indices, [-1]))
    if self.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {self.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    at = dim % self.dim() if self.dim() else 0
    source, places = list(self.shape), list(indices.shape)
    for d in range(self.dim()):
        if d != at:
            if source[d] != places[d] and 1 not in (source[d], places[d]):
                raise RuntimeError(
                    f"The size of tensor a ({source[d]}) must match the size of tensor b ({places[d]}) at non-singleton "
                    f"dimension {d}"
                )
            source[d] = places[d] = places[d] if source[d] == 1 else source[d]
    return F.gather(F.expand(self, source), dim, F.expand(indices, places))


def nonzero_numpy(self: Tensor) -> tuple[Tensor, ...]:
    """The coordinates of what is not zero, one tensor for each dimension."""
    if not self.dim():
        self = F.reshape(self, [1])
    return tuple(F.unbind(F.nonzero(self), 1))


def argwhere(self: Tensor) -> Tensor:
    """`nonzero`."""
    return F.nonzero(self)
