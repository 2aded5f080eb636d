# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nested._internal, import-only stub: nested tensors."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.nested._internal"
__getattr__ = lazy_children(_MODULE)
