# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C._autograd, import-only stub."""

from __future__ import annotations

from torch.profiler import (
    DeviceType,
)

_MODULE = "torch._C._autograd"
