# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.parallel.scatter_gather, import-only stub."""

from __future__ import annotations

from torch.nn.parallel import (
    gather, scatter,
)

_MODULE = "torch.nn.parallel.scatter_gather"
