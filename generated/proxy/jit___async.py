# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._async, import-only stub."""

from __future__ import annotations

from torch.jit import (
    fork, wait,
)

_MODULE = "torch.jit._async"
