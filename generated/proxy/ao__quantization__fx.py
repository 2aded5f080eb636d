# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.ao.quantization.fx, import-only stub: quantization of graphs."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.ao.quantization.fx"
__getattr__ = lazy_children(_MODULE)
