# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.graph, import-only stub."""

from __future__ import annotations

from torch.fx import (
    CodeGen, Graph,
)

_MODULE = "torch.fx.graph"
