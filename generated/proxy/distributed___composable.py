# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed._composable, import-only stub: composable wrappers."""

from __future__ import annotations

from torch.distributed._composable.fsdp import (
    fully_shard,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed._composable"
__getattr__ = lazy_children(_MODULE)
