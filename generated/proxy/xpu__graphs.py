# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.xpu.graphs, functional stub."""

from __future__ import annotations

from torch.xpu import (
    XPUGraph, graph, is_current_stream_capturing,
)

_MODULE = "torch.xpu.graphs"
