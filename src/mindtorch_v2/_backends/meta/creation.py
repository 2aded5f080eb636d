"""Meta payloads: a geometry over a storage that has a size and no memory."""

from __future__ import annotations

from typing import Any

from ..._payload import MetaPayload, contiguous_strides, extent
from ..._storage import MetaStorage


def empty(shape: tuple, stride: tuple | None, dtype: Any, where: Any = None) -> MetaPayload:
    """A payload with a storage of its own; `stride` in elements, None for contiguous."""
    if stride is None:
        stride = contiguous_strides(shape)
    return MetaPayload(shape, stride, dtype, 0, MetaStorage(extent(shape, stride) * dtype.itemsize))
