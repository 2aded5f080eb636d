"""`torch.distributed.checkpoint`: state dicts that several ranks save, and any other number loads. See docs/distributed.md."""

from __future__ import annotations

from ._files import (
    FileSystemReader as FileSystemReader,
    FileSystemWriter as FileSystemWriter,
    StorageReader as StorageReader,
    StorageWriter as StorageWriter,
)
from ._loading import load as load, load_state_dict as load_state_dict
from ._saving import async_save as async_save, save as save, save_state_dict as save_state_dict
from .api import CheckpointException as CheckpointException
from .default_planner import (
    DefaultLoadPlanner as DefaultLoadPlanner,
    DefaultSavePlanner as DefaultSavePlanner,
)
from .metadata import (
    BytesStorageMetadata as BytesStorageMetadata,
    ChunkStorageMetadata as ChunkStorageMetadata,
    Metadata as Metadata,
    TensorStorageMetadata as TensorStorageMetadata,
)
from .planner import (
    LoadPlan as LoadPlan,
    LoadPlanner as LoadPlanner,
    ReadItem as ReadItem,
    SavePlan as SavePlan,
    SavePlanner as SavePlanner,
    WriteItem as WriteItem,
)
