"""Checkpoints in a folder as one file of `torch.save`, and back."""

from __future__ import annotations

import os
from typing import Any

import mindtorch_v2 as torch

from ._files import FileSystemReader, FileSystemWriter
from ._flat import unflatten_state_dict
from ._loading import _item, whole_tensor
from ._saving import save
from .metadata import BytesStorageMetadata, MetadataIndex

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def whole_state_dict(folder: str | os.PathLike) -> dict[str, Any]:
    """All of a checkpoint, with whole tensors."""
    reader = FileSystemReader(folder)
    metadata = reader.read_metadata()
    flat: dict[str, Any] = {}
    for name, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, BytesStorageMetadata):
            flat[name] = _item(metadata, reader, MetadataIndex(name))
        else:
            flat[name] = whole_tensor(name, entry, metadata, reader)
    return unflatten_state_dict(flat, metadata.planner_data or {name: (name,) for name in flat})


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike, torch_save_path: str | os.PathLike) -> None:
    """Save all of a checkpoint as one file; one process calls it."""
    torch.save(whole_state_dict(dcp_checkpoint_dir), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike, dcp_checkpoint_dir: str | os.PathLike) -> None:
    """Save what one file has as a checkpoint; one process calls it."""
    state = torch.load(torch_save_path, weights_only=True)
    save(state, storage_writer=FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
