"""`load`: the pieces that this rank needs, of whatever pieces a checkpoint has."""

from __future__ import annotations

import os
from typing import Any

import mindtorch_v2 as torch

from ..tensor import DTensor
from ..tensor._spec import local_part
from . import _planned
from ._files import FileSystemReader, StorageReader
from ._flat import flatten_state_dict, put
from ._pieces import overlap
from ._saving import Ranks, stateful_to_dict
from .metadata import BytesStorageMetadata, Metadata, MetadataIndex, TensorStorageMetadata
from .planner import LoadPlanner
from .stateful import Stateful

__all__ = ["load", "load_state_dict"]


def _reader_of(reader: Any, checkpoint_id: Any, planner: Any) -> StorageReader:
    _planned.check(planner, LoadPlanner)
    if reader is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader and storage_writer are None.")
        return FileSystemReader(checkpoint_id)
    if not isinstance(reader, StorageReader):
        raise NotImplementedError(
            f"a StorageReader of one's own ({type(reader).__name__}) is not supported; FileSystemReader is"
        )
    if checkpoint_id is not None and isinstance(reader, FileSystemReader):
        reader.reset(checkpoint_id)
    return reader


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill the tensors of a state dict with what a checkpoint has, each rank its pieces, however many ranks wrote it and however its tensors lay; other values are replaced, and objects with
    `load_state_dict` get their state.

    Raises:
        CheckpointException: on every rank, with the errors of those that failed: RuntimeError for a key that the checkpoint does not have, ValueError for another shape, and what
            FileSystemReader raises.
    """
    reader = _reader_of(storage_reader, checkpoint_id, planner)
    ranks = Ranks(process_group, no_dist)
    asked = stateful_to_dict(state_dict)
    partial = bool(getattr(planner, "allow_partial_load", False))

    def work() -> None:
        _fill(asked, reader, partial)

    if _planned.is_default(planner):
        ranks.each("read", work)
    else:
        _planned.fill(planner, asked, reader, ranks)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(asked[key])
        else:
            state_dict[key] = asked[key]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: Any,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Any = None,
) -> None:
    """`load`, as it was called before."""
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)


def _fill(asked: dict[str, Any], reader: StorageReader, partial: bool) -> None:
    metadata = reader.read_metadata()
    flat, paths = flatten_state_dict(asked)
    for name, value in flat.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            if partial:
                continue
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        if isinstance(entry, BytesStorageMetadata):
            put(asked, paths[name], _item(metadata, reader, MetadataIndex(name)))
        elif isinstance(value, torch.Tensor):
            _fill_tensor(name, value, entry, metadata, reader)
        else:
            put(asked, paths[name], whole_tensor(name, entry, metadata, reader))


def _item(metadata: Metadata, reader: StorageReader, index: MetadataIndex) -> Any:
    place = metadata.storage_data.get(index)
    if place is None:
        raise RuntimeError(f"the checkpoint has no place of {index}")
    return reader.read_item(place)


def _fill_tensor(
    name: str, value: Any, entry: TensorStorageMetadata, metadata: Metadata, reader: StorageReader
) -> None:
    if tuple(entry.size) != tuple(value.shape):
        raise ValueError(f"Size mismatch between saved {torch.Size(entry.size)} and current: {value.shape} for {name}")
    local, offsets = value.detach(), (0,) * value.dim()
    if isinstance(value, DTensor):
        spec = value._spec
        place = spec.mesh.get_coordinate()
        if place is None:
            return
        local = value._local_tensor
        offsets = local_part(spec.shape, spec.mesh.shape, spec.placements, place)[1]
    filled = 0
    with torch.no_grad():
        for chunk in entry.chunks:
            filled += _copy_overlap(name, local, offsets, chunk, metadata, reader)
    if filled != local.numel():
        raise RuntimeError(f"the checkpoint has {filled} of the {local.numel()} elements of {name} that are asked for")


def _copy_overlap(
    name: str, local: torch.Tensor, offsets: Any, chunk: Any, metadata: Metadata, reader: StorageReader
) -> int:
    """Copy what a chunk has of a piece; how many elements that were."""
    parts = overlap(offsets, local.shape, chunk)
    if parts is None:
        return 0
    here, there = parts
    if not local.numel():
        return 0
    data = _item(metadata, reader, MetadataIndex(name, chunk.offsets))
    if not isinstance(data, torch.Tensor) or tuple(data.shape) != tuple(chunk.sizes):
        raise RuntimeError(f"the checkpoint has no tensor of {tuple(chunk.sizes)} for {name} at {tuple(chunk.offsets)}")
    target = local[tuple(here)] if here else local
    target.copy_(data[tuple(there)] if there else data)
    return target.numel()


def whole_tensor(name: str, entry: TensorStorageMetadata, metadata: Metadata, reader: StorageReader) -> torch.Tensor:
    """All of a tensor."""
    made = torch.empty(tuple(entry.size), dtype=entry.properties.dtype)
    _fill_tensor(name, made, entry, metadata, reader)
    return made
