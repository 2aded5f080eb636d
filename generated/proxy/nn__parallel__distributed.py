# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.parallel.distributed, import-only stub."""

from __future__ import annotations

from torch.nn.parallel import (
    DistributedDataParallel,
)

_MODULE = "torch.nn.parallel.distributed"
