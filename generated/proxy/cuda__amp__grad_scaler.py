# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.amp.grad_scaler, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.amp import (
    GradScaler,
)

_MODULE = "torch.cuda.amp.grad_scaler"
