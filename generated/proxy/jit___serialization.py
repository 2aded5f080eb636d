# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._serialization, import-only stub."""

from __future__ import annotations

from torch.jit import (
    load, save,
)

_MODULE = "torch.jit._serialization"
