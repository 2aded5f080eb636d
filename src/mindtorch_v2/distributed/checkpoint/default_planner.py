"""The planners of PyTorch, to be subclassed. What they plan as they are is what `save` and `load` do without one."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import mindtorch_v2 as torch

from ..tensor import DTensor
from ..tensor._spec import local_part
from ._flat import flatten_state_dict, put
from ._pieces import assigned, described, overlap
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from .planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan", "create_default_local_load_plan", "create_default_local_save_plan"]  # fmt: skip


class DefaultSavePlanner(SavePlanner):
    """State dicts are taken apart by their keys, and what several ranks have is written once, by the lowest of them."""

    mappings: dict[str, Any]

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, dedup_replicated_tensors: Any = None, dedup_save_to_lowest_rank: bool = False, enable_plan_caching: bool = False) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        plans, metadata = create_default_global_save_plan(all_plans)
        if self.flatten_state_dict:
            merged: dict[str, Any] = {}
            for plan in plans:
                merged |= plan.planner_data or {}
            metadata = replace(metadata, planner_data=merged)
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value of a name; of a DTensor, this rank's piece."""
        return _own(self.state_dict[index.fqn])

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written of a value: of what is no tensor, the bytes of `torch.save`."""
        if write_item.type is WriteItemType.BYTE_IO:
            buffer = io.BytesIO()
            torch.save(object, buffer)
            return buffer
        return object


class DefaultLoadPlanner(LoadPlanner):
    """allow_partial_load: leave what the checkpoint does not have as it is."""

    original_state_dict: dict[str, Any]
    mappings: dict[str, Any]

    def __init__(self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict = {}
        self.mappings = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name = read_item.dest_index.fqn
        found = torch.load(value, weights_only=True)
        if self.flatten_state_dict:
            put(self.original_state_dict, self.mappings[name], found)
        else:
            self.state_dict[name] = found

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Nothing: it was filled where it is."""

    def lookup_tensor(self, index: MetadataIndex) -> Any:
        """The tensor of a name; of a DTensor, this rank's piece."""
        return _own(self.state_dict[index.fqn])

    def transform_tensor(self, read_item: ReadItem, tensor: Any) -> Any:
        """The part of it that an item fills."""
        for dim, (offset, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            if length < tensor.size(dim):
                tensor = tensor.narrow(dim, offset, length)
        return tensor


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all that there is, or the keys that are said, into an empty dict: see `format_utils`."""

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys = keys


def _own(value: Any) -> Any:
    return value._local_tensor if isinstance(value, DTensor) else value


def is_default(planner: Any) -> bool:
    """Whether a planner does what `save` and `load` do without one."""
    kinds = (DefaultSavePlanner, DefaultLoadPlanner, _EmptyStateDictLoadPlanner)
    return planner is None or (type(planner) in kinds and planner.flatten_state_dict)


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """All that a rank has."""
    items = []
    for name, (kind, piece) in described(state_dict).items():
        if kind is None:
            items.append(WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO, BytesIOWriteData(0)))
            continue
        properties, size = kind
        chunk = ChunkStorageMetadata(torch.Size(piece[0]), torch.Size(piece[1]))
        what = WriteItemType.SHARD if isinstance(state_dict[name], DTensor) else WriteItemType.TENSOR
        data = TensorWriteData(chunk, properties, size)
        items.append(WriteItem(MetadataIndex(name, piece[0]), what, tensor_data=data))
    return SavePlan(items)


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """(each rank's items without those that a lower rank writes, what the checkpoint has)."""
    named = []
    for plan in all_plans:
        own: dict[tuple[str, Any], Any] = {}
        for item in plan.items:
            data = item.tensor_data
            said = (None, None)
            if data is not None:
                said = (data.properties, data.size), (tuple(data.chunk.offsets), tuple(data.chunk.sizes))
            own[item.index.fqn, item.index.offset] = said
        named.append([(name, said) for (name, _), said in own.items()])
    made, work = assigned(named)
    plans = []
    for plan, writes in zip(all_plans, work, strict=True):
        kept = set(writes)
        items = [
            item for item in plan.items
            if (item.index.fqn, None if item.index.offset is None else tuple(item.index.offset)) in kept
        ]  # fmt: skip
        plans.append(replace(plan, items=items))
    return plans, Metadata(made)


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What a rank needs of the checkpoint's chunks. RuntimeError for a name that it lacks, ValueError for another shape."""
    items = []
    for name, value in state_dict.items():
        entry = metadata.state_dict_metadata.get(name)
        if entry is None:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        if isinstance(entry, BytesStorageMetadata) or not isinstance(value, torch.Tensor):
            index, none = MetadataIndex(name), torch.Size((0,))
            items.append(ReadItem(LoadItemType.BYTE_IO, index, none, index, none, none))
            continue
        if tuple(entry.size) != tuple(value.shape):
            raise ValueError(
                f"Size mismatch between saved {torch.Size(entry.size)} and current: {value.shape} for {name}"
            )
        items += _reads(name, value, entry)
    return LoadPlan(items)


def _reads(name: str, value: Any, entry: TensorStorageMetadata) -> list[ReadItem]:
    """The parts of chunks that make a tensor, or this rank's piece of it."""
    local, offsets = value, (0,) * value.dim()
    if isinstance(value, DTensor):
        spec = value._spec
        place = spec.mesh.get_coordinate()
        if place is None:
            return []
        local = value._local_tensor
        offsets = local_part(spec.shape, spec.mesh.shape, spec.placements, place)[1]
    found = []
    for chunk in entry.chunks:
        parts = overlap(offsets, local.shape, chunk)
        if parts is None or not local.numel():
            continue
        here, there = parts
        found.append(
            ReadItem(
                LoadItemType.TENSOR,
                MetadataIndex(name, offsets),
                torch.Size(part.start for part in here),
                MetadataIndex(name, chunk.offsets),
                torch.Size(part.start for part in there),
                torch.Size(part.stop - part.start for part in here),
            )
        )
    return found


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """As they are: ranks read what they need."""
    return all_plans
