"""`torch.distributed.tensor`: tensors of which each rank of a mesh has a piece. See docs/distributed.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..device_mesh import DeviceMesh as DeviceMesh, init_device_mesh as init_device_mesh
from . import _random as _random
from ._api import (
    DTensor as DTensor,
    distribute_module as distribute_module,
    distribute_tensor as distribute_tensor,
    empty as empty,
    full as full,
    ones as ones,
    rand as rand,
    randn as randn,
    zeros as zeros,
)
from ._dispatch import replicating
from ._random import manual_seed as manual_seed
from .placement_types import Partial as Partial, Placement as Placement, Replicate as Replicate, Shard as Shard

__all__ = ["DTensor", "distribute_tensor", "distribute_module", "Shard", "Replicate", "Partial", "Placement",
           "ones", "empty", "full", "rand", "randn", "zeros"]  # fmt: skip


@contextmanager
def implicit_replication() -> Iterator[Any]:
    """Inside, plain tensors that meet DTensors are taken for whole ones that every rank has."""
    before = getattr(replicating, "on", False)
    replicating.on = True
    try:
        yield
    finally:
        replicating.on = before
