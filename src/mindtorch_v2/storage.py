"""`torch.storage`: the objects behind tensors."""

from __future__ import annotations

import io
from typing import Any

from . import serialization
from ._storage import StorageBase as _StorageBase, UntypedStorage
from ._typed_storage import LEGACY_STORAGES, TypedStorage, _LegacyStorage

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]

StorageBase = _StorageBase


def _dtype_to_storage_type_map() -> dict:
    """The names of the storages of former times by dtype."""
    return {cls.dtype: name for name, cls in LEGACY_STORAGES.items()}


def _storage_type_to_dtype_map() -> dict:
    """The dtypes of the storages of former times by name."""
    return {name: cls.dtype for name, cls in LEGACY_STORAGES.items()}


def _load_from_bytes(b: bytes) -> Any:
    """What `torch.save` wrote into `b`."""
    return serialization.load(io.BytesIO(b), weights_only=False)


def _reduced(storage: Any) -> tuple[Any, tuple[bytes]]:
    """What a pickle that PyTorch can read has of a storage."""
    written = io.BytesIO()
    serialization.save(storage, written, _use_new_zipfile_serialization=False)
    return _load_from_bytes, (written.getvalue(),)
