# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed._tensor.api, import-only stub."""

from __future__ import annotations

from torch.distributed.tensor import (
    DTensor, distribute_module, distribute_tensor,
)

_MODULE = "torch.distributed._tensor.api"
