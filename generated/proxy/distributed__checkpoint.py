# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint, import-only stub."""

from __future__ import annotations

from torch.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner, DefaultSavePlanner,
)
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader, HuggingFaceStorageWriter,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children

_MODULE = "torch.distributed.checkpoint"
_BECAUSE = "mindtorch_v2 runs in one process"
async_save = import_only_function("async_save", _MODULE, _BECAUSE, NotImplementedError)
load = import_only_function("load", _MODULE, _BECAUSE, NotImplementedError)
load_state_dict = import_only_function("load_state_dict", _MODULE, _BECAUSE, NotImplementedError)
save = import_only_function("save", _MODULE, _BECAUSE, NotImplementedError)
save_state_dict = import_only_function("save_state_dict", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class CheckpointException(RuntimeError):
    """An error of torch.distributed.checkpoint, which mindtorch_v2 never raises."""


class FileSystemReader(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FileSystemWriter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class LoadPlan(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class LoadPlanner(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Metadata(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SavePlan(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SavePlanner(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class StorageReader(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class StorageWriter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
