# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.passes.infra, import-only stub: graph passes."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.fx.passes.infra"
__getattr__ = lazy_children(_MODULE)
