# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.graphs, functional stub."""

from __future__ import annotations

from torch.cuda import (
    CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables,
)

_MODULE = "torch.cuda.graphs"
