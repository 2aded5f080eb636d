# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C._distributed_c10d, import-only stub."""

from __future__ import annotations

from torch.distributed import (
    ProcessGroup, ReduceOp, Reducer, Store, Work,
)

_MODULE = "torch._C._distributed_c10d"
