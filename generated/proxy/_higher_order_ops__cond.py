# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._higher_order_ops.cond, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.higher_order import (
    cond,
)

_MODULE = "torch._higher_order_ops.cond"
