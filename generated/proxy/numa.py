# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.numa, import-only stub: binding of processes to memory nodes."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.numa"
__getattr__ = lazy_children(_MODULE)
