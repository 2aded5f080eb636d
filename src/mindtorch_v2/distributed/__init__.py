"""`torch.distributed`: several processes that work together. See docs/distributed.md."""

from __future__ import annotations

import importlib
from typing import Any

from ._debug import set_debug_level as set_debug_level, set_debug_level_from_env as set_debug_level_from_env
from ._errors import (
    DistBackendError as DistBackendError,
    DistError as DistError,
    DistNetworkError as DistNetworkError,
    DistStoreError as DistStoreError,
    QueueEmptyError as QueueEmptyError,
)
from ._groups import is_available as is_available
from ._stores import FileStore as FileStore, HashStore as HashStore
from ._tcp_store import TCPStore as TCPStore

from . import distributed_c10d as distributed_c10d  # isort: skip
from .distributed_c10d import *  # noqa: F403  (isort: skip)
from .distributed_c10d import (
    ProcessGroupGloo as ProcessGroupGloo,
    _all_gather_base as _all_gather_base,
    _coalescing_manager as _coalescing_manager,
    _CoalescingManager as _CoalescingManager,
    _make_nccl_premul_sum as _make_nccl_premul_sum,
    _reduce_scatter_base as _reduce_scatter_base,
    rendezvous as rendezvous,
)

_LATE = {
    "DeviceMesh": "distributed.device_mesh",
    "init_device_mesh": "distributed.device_mesh",
    "GradBucket": "nn.parallel._buckets",
    "Reducer": "nn.parallel._buckets",
}
_MODULES = ("checkpoint", "device_mesh", "fsdp", "tensor")


def __getattr__(name: str) -> Any:
    """What few programs ask for, and is imported then."""
    if name in _LATE:
        return getattr(importlib.import_module(f"{__name__.rpartition('.')[0]}.{_LATE[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
