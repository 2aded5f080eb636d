# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.xnnpack, functional stub."""

from __future__ import annotations

_MODULE = "torch.backends.xnnpack"
enabled = False
