# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda.amp, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.amp import (
    GradScaler, autocast, custom_bwd, custom_fwd,
)
from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.cuda.amp"
__getattr__ = lazy_children(_MODULE)
