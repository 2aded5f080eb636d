"""Which pieces of tensors ranks have, which of them each writes, and where pieces and chunks overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import mindtorch_v2 as torch

from ..tensor import DTensor
from ..tensor._spec import local_part
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, TensorProperties, TensorStorageMetadata


def described(flat: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """By name, (what it is, offset and shape of this rank's piece: None of no tensor)."""
    found: dict[str, tuple[Any, Any]] = {}
    for name, value in flat.items():
        if isinstance(value, DTensor):
            spec = value._spec
            place = spec.mesh.get_coordinate()
            if place is None:
                continue
            sizes, offsets = local_part(spec.shape, spec.mesh.shape, spec.placements, place)
            if any(p.is_partial() for p in spec.placements):
                raise ValueError(
                    f"{name} has terms of a reduction, {spec.placements}: redistribute it before it is saved"
                )
            found[name] = (TensorProperties.create_from_tensor(value), torch.Size(spec.shape)), (offsets, sizes)
        elif isinstance(value, torch.Tensor):
            kind = TensorProperties.create_from_tensor(value), torch.Size(value.shape)
            found[name] = kind, ((0,) * value.dim(), tuple(value.shape))
        else:
            found[name] = None, None
    return found


def assigned(
    all_ranks: Sequence[Iterable[tuple[str, tuple[Any, Any]]]],
) -> tuple[dict[str, Any], list[list[tuple[str, Any]]]]:
    """(what the checkpoint has, by rank the names and offsets that it writes)."""
    made: dict[str, Any] = {}
    seen: set[tuple[str, Any]] = set()
    work: list[list[tuple[str, Any]]] = [[] for _ in all_ranks]
    for rank, named in enumerate(all_ranks):
        for name, (kind, piece) in named:
            if kind is None:
                if made.setdefault(name, BytesStorageMetadata()) != BytesStorageMetadata():
                    raise ValueError(f"{name} is a tensor on some ranks only")
                key = name, None
            else:
                properties, size = kind
                entry = made.setdefault(name, TensorStorageMetadata(properties, size, []))
                if not isinstance(entry, TensorStorageMetadata) or tuple(entry.size) != tuple(size):
                    raise ValueError(
                        f"{name} is not of the same shape on all ranks: {getattr(entry, 'size', None)}, {size}"
                    )
                key = name, tuple(piece[0])
                if 0 in piece[1] and 0 not in size:
                    continue  # a rank without a part
            if key in seen:
                continue
            seen.add(key)
            work[rank].append(key)
            if kind is not None:
                made[name].chunks.append(ChunkStorageMetadata(torch.Size(piece[0]), torch.Size(piece[1])))
    return made, work


def overlap(offsets: Any, shape: Any, chunk: ChunkStorageMetadata) -> tuple[list[slice], list[slice]] | None:
    """(where in a piece at these offsets, where in the chunk) both have the same elements; None where they share none."""
    here, there = [], []
    for start, size, chunk_start, chunk_size in zip(offsets, shape, chunk.offsets, chunk.sizes, strict=True):
        first, last = max(start, chunk_start), min(start + size, chunk_start + chunk_size)
        if first >= last:
            return None
        here.append(slice(first - start, last - start))
        there.append(slice(first - chunk_start, last - chunk_start))
    return here, there
