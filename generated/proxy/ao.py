# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.ao, import-only stub: quantization and pruning."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.ao"
__getattr__ = lazy_children(_MODULE)
