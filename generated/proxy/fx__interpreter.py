# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.interpreter, import-only stub."""

from __future__ import annotations

from torch.fx import (
    Interpreter, Transformer,
)

_MODULE = "torch.fx.interpreter"
