# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._higher_order_ops.map, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.higher_order import (
    map,
)

_MODULE = "torch._higher_order_ops.map"
