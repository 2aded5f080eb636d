# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed._tensor.experimental, import-only stub."""

from __future__ import annotations

from torch.distributed.tensor.experimental import (
    implicit_replication, local_map,
)

_MODULE = "torch.distributed._tensor.experimental"
