# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cpu.amp, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.amp import (
    cpu_autocast,
)
from mindtorch_v2.amp import (
    GradScaler,
)

_MODULE = "torch.cpu.amp"
