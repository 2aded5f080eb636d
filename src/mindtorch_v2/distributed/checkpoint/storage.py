"""What `save` writes to and `load` reads from, under the name by which programs import them."""

from __future__ import annotations

from ._files import StorageReader as StorageReader, StorageWriter as StorageWriter

__all__ = ["StorageReader", "StorageWriter"]
