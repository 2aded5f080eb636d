# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.experimental, import-only stub: symbolic shapes and proxy tensors."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.fx.experimental"
__getattr__ = lazy_children(_MODULE)
