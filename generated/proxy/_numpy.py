# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._numpy, import-only stub: numpy functions on tensors."""

from __future__ import annotations

_MODULE = "torch._numpy"
