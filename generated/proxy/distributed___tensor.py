# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed._tensor, import-only stub."""

from __future__ import annotations

from torch.distributed.tensor import (
    DTensor, DeviceMesh, Partial, Placement, Replicate, Shard, distribute_module, distribute_tensor,
    init_device_mesh,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.distributed._tensor"
__getattr__ = lazy_children(_MODULE)
