# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._refs, import-only stub: reference operators."""

from __future__ import annotations

_MODULE = "torch._refs"
