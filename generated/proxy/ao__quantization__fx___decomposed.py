# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.ao.quantization.fx._decomposed, import-only stub: decomposed quantization operators."""

from __future__ import annotations

_MODULE = "torch.ao.quantization.fx._decomposed"
