# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.graph_module, import-only stub."""

from __future__ import annotations

from torch.fx import (
    GraphModule,
)

_MODULE = "torch.fx.graph_module"
