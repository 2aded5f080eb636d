"""The reading side of checkpoints in safetensors files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

from ..._serialization.shown import shown
from . import _safetensors
from ._files import FileSystemReader
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)


@dataclass
class _HFStorageInfo:
    """Where a tensor is: the file, what it is, and where in the file it begins."""

    relative_path: str
    shape: Any
    dtype: Any
    begin: int = 0


class HuggingFaceStorageReader(FileSystemReader):
    """Reads all safetensors files of a folder: whole tensors, or the pieces that ranks wrote."""

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self) -> Metadata:
        """What the files have. RuntimeError for one that is damaged, or is something else."""
        entries: dict[str, Any] = {}
        places: dict[MetadataIndex, _HFStorageInfo] = {}
        for file in sorted(Path(self.path).glob("*" + _safetensors.SUFFIX)):
            found, metadata = _safetensors.header_of(file)
            said = metadata.get(_safetensors.SHARDING)
            try:
                offsets = json.loads(said) if said else None
            except (ValueError, RecursionError) as error:
                raise RuntimeError(f"{file} says of no tensor where its piece begins: {error!s:.200}") from error
            for name, (dtype, shape, begin) in found.items():
                try:
                    said_of_it = [0] * len(shape) if offsets is None else offsets[name]["saved_offsets"]
                except (KeyError, TypeError, IndexError):
                    said_of_it = None
                if not isinstance(said_of_it, list) or not all(type(n) is int and 0 <= n < 1 << 62 for n in said_of_it):
                    raise RuntimeError(f"{file} does not say where the piece of {shown(name)} begins")
                offset = torch.Size(said_of_it)
                if len(offset) != len(shape):
                    raise RuntimeError(f"{file} places {shown(name)} of shape {shape} at {tuple(offset)}")
                size = torch.Size([start + length for start, length in zip(offset, shape, strict=True)])
                chunk = ChunkStorageMetadata(offset, torch.Size(shape))
                entry = entries.get(name)
                if entry is None:
                    entries[name] = TensorStorageMetadata(TensorProperties(dtype), size, [chunk])
                else:
                    entry.chunks.append(chunk)
                    entry.size = torch.Size([max(pair) for pair in zip(entry.size, size, strict=True)])
                places[MetadataIndex(name, offset)] = _HFStorageInfo(file.name, torch.Size(shape), dtype, begin)
        return Metadata(entries, None, places, StorageMeta(load_id=self.load_id))

    def read_item(self, place: Any) -> Any:
        return _safetensors.read(Path(self.path) / place.relative_path, place.dtype, tuple(place.shape), place.begin)
