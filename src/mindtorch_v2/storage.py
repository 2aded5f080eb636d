"""`torch.storage`: the objects behind tensors."""

from __future__ import annotations

from ._storage import UntypedStorage
from ._typed_storage import TypedStorage, _LegacyStorage

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]

_StorageBase = UntypedStorage
