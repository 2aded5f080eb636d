# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.xeon, import-only stub: launch scripts for Xeon."""

from __future__ import annotations

_MODULE = "torch.backends.xeon"
