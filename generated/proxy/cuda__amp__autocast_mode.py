# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.amp.autocast_mode, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.amp import (
    autocast, custom_bwd, custom_fwd,
)

_MODULE = "torch.cuda.amp.autocast_mode"
