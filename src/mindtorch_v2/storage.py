"""`torch.storage`: the objects behind tensors."""

from __future__ import annotations

import io
from typing import Any

from . import serialization
from ._storage import UntypedStorage
from ._typed_storage import TypedStorage, _LegacyStorage

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]

_StorageBase = StorageBase = UntypedStorage


def _load_from_bytes(b: bytes) -> Any:
    """What `torch.save` wrote into `b`."""
    return serialization.load(io.BytesIO(b), weights_only=False)
