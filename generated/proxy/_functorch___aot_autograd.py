# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._functorch._aot_autograd, import-only stub: ahead-of-time autograd."""

from __future__ import annotations

_MODULE = "torch._functorch._aot_autograd"
