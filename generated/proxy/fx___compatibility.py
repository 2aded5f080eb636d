# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx._compatibility, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.fx import (
    compatibility,
)

_MODULE = "torch.fx._compatibility"
