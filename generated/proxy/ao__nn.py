# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.ao.nn, import-only stub: quantized modules."""

from __future__ import annotations

_MODULE = "torch.ao.nn"
