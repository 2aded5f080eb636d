"""`save` and `load` by a planner of the program's own: each step is the planner's, in PyTorch's order."""

from __future__ import annotations

import io
from typing import Any

import mindtorch_v2 as torch

from ._files import Bytes, StorageReader
from .default_planner import is_default as is_default
from .metadata import Metadata, StorageMeta
from .planner import LoadItemType, LoadPlanner, ReadItem, SavePlanner, WriteItem, WriteItemType


def check(planner: Any, kind: type) -> None:
    """TypeError for a planner that is none."""
    if planner is not None and not isinstance(planner, kind):
        raise TypeError(f"planner must be a {kind.__name__}, not {type(planner).__name__}")


class Saving:
    """The plan of a save: what the checkpoint will have, and what this rank writes."""

    def __init__(self, planner: SavePlanner, state_dict: dict[str, Any], ranks: Any, token: str) -> None:
        self.planner = planner
        meta = StorageMeta(save_id=token)

        def local() -> Any:
            planner.set_up_planner(state_dict, meta, ranks.rank == 0)
            return planner.create_local_plan()

        plans = ranks.each("plan", local)
        made, self.metadata = ranks.first_only("plan", lambda: planner.create_global_plan(plans))
        assert isinstance(self.metadata, Metadata)
        if self.metadata.storage_data is None:
            self.metadata.storage_data = {}
        self.metadata.version = self.metadata.version or "1.0.0"
        self.plan = planner.finish_plan(made[ranks.rank])

    def data(self) -> list[tuple[Any, Any]]:
        """What this rank writes, with its places."""
        return [(item.index, self._resolved(item)) for item in self.plan.items]

    def _resolved(self, item: WriteItem) -> Any:
        value = self.planner.resolve_data(item)
        if item.type is WriteItemType.BYTE_IO:
            if not isinstance(value, io.BytesIO):
                raise TypeError(f"resolve_data of {item.index.fqn} gives a {type(value).__name__}, not an io.BytesIO")
            return Bytes(value.getvalue())
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"resolve_data of {item.index.fqn} gives a {type(value).__name__}, not a tensor")
        return value


def fill(planner: LoadPlanner, asked: dict[str, Any], reader: StorageReader, ranks: Any) -> None:
    """Load what the planner asks for into where it says."""
    metadata: list[Metadata] = []

    def local() -> Any:
        metadata.append(reader.read_metadata())
        planner.set_up_planner(asked, metadata[0], ranks.rank == 0)
        return planner.create_local_plan()

    plans = ranks.each("plan", local)
    made = ranks.first_only("plan", lambda: planner.create_global_plan(plans))

    def read() -> None:
        plan = planner.finish_plan(made[ranks.rank])
        with torch.no_grad():
            for item in plan.items:
                _read(planner, item, metadata[0], reader)

    ranks.each("read", read)


def _read(planner: LoadPlanner, item: ReadItem, metadata: Metadata, reader: StorageReader) -> None:
    place = metadata.storage_data.get(item.storage_index)
    if place is None:
        raise RuntimeError(f"the checkpoint has no place of {item.storage_index}")
    value = reader.read_item(place)
    if item.type is LoadItemType.BYTE_IO:
        buffer = io.BytesIO()
        torch.save(value, buffer)
        buffer.seek(0)
        planner.load_bytes(item, buffer)
        return
    if not isinstance(value, torch.Tensor):
        raise RuntimeError(f"the checkpoint has no tensor at {item.storage_index}")
    for dim, (offset, length) in enumerate(zip(item.storage_offsets, item.lengths, strict=True)):
        value = value.narrow(dim, offset, length)
    target = planner.resolve_tensor(item).detach()
    if target.shape != value.shape:
        raise RuntimeError(f"{item.dest_index.fqn}: the planner's tensor is of {tuple(target.shape)}, what is read of {tuple(value.shape)}")  # fmt: skip
    target.copy_(value)
    planner.commit_tensor(item, target)
