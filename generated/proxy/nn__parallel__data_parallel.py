# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.parallel.data_parallel, import-only stub."""

from __future__ import annotations

from torch.nn.parallel import (
    DataParallel, data_parallel,
)

_MODULE = "torch.nn.parallel.data_parallel"
