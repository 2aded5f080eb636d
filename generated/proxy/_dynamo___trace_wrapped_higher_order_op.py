# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo._trace_wrapped_higher_order_op, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.vmap import (
    TransformGetItemToIndex,
)

_MODULE = "torch._dynamo._trace_wrapped_higher_order_op"
