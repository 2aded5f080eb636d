# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.utils._sympy, import-only stub: symbolic expressions."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import lazy_children

_MODULE = "torch.utils._sympy"
__getattr__ = lazy_children(_MODULE)
