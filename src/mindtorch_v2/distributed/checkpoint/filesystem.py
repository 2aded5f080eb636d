"""Checkpoints in a folder, under the name by which programs import them."""

from __future__ import annotations

from ._files import (
    FileSystemReader as FileSystemReader,
    FileSystemWriter as FileSystemWriter,
    _StorageInfo as _StorageInfo,
)

__all__ = ["FileSystemReader", "FileSystemWriter"]
