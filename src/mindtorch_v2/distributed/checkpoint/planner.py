"""`torch.distributed.checkpoint.planner`: what plans of saving and loading are made of, and what makes them.

Programs subclass `DefaultSavePlanner` and `DefaultLoadPlanner` (`default_planner`): a planner of one's own is asked at each step, in the order of PyTorch's.
"""

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(Enum):
    """What is written: a whole tensor, a part of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes there are."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A chunk of a tensor of some size."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Any


@dataclass(frozen=True)
class WriteItem:
    """One thing that a rank writes."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of a tensor."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One thing that a rank reads: a part of a chunk of the checkpoint (storage_*) into a part of a tensor (dest_*)."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Any
    storage_index: MetadataIndex
    storage_offsets: Any
    lengths: Any


@dataclass(frozen=True)
class SavePlan:
    """What a rank writes. planner_data: of the planner, merged by the global plan."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """What plans of saving are made by: `set_up_planner` and `create_local_plan` on each rank, `create_global_plan` on the first, then `finish_plan` and, for each item, `resolve_data`."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """The state dict that is saved; objects with a state have given it."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank has."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """What each rank writes, and what the checkpoint has: of what each has."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """This rank's part of the global plan."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor, or the io.BytesIO, to write."""


class LoadPlanner(abc.ABC):
    """What plans of loading are made by: `set_up_planner` and `create_local_plan` on each rank, `create_global_plan` on the first, then `finish_plan` and, for each item, `load_bytes`, or
    `resolve_tensor` and `commit_tensor`."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """The state dict to fill, and what the checkpoint has."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank wants."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """What each rank reads."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """This rank's part of the global plan."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take what is no tensor: what `torch.save` wrote of it."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where the bytes go."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The tensor of `read_item.lengths` to copy into."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """The tensor that `resolve_tensor` gave has been filled."""
