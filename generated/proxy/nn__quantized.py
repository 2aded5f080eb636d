# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.quantized, import-only stub: quantized modules."""

from __future__ import annotations

_MODULE = "torch.nn.quantized"
