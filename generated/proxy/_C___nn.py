# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C._nn, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.nn import (
    _parse_to, gelu, linear, one_hot, scaled_dot_product_attention, softplus,
)

_MODULE = "torch._C._nn"
