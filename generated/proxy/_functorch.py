# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._functorch, import-only stub: function transforms."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch._functorch"
__getattr__ = lazy_children(_MODULE)
