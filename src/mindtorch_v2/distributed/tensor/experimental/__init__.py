"""`torch.distributed.tensor.experimental`: functions over pieces, and attention over sequences of which each rank has a part."""

from __future__ import annotations

from .. import implicit_replication as implicit_replication
from ._attention import context_parallel as context_parallel
from ._func_map import local_map as local_map
from ._register_sharding import register_sharding as register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]
