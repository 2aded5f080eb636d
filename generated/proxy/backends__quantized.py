# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.backends.quantized, functional stub."""

from __future__ import annotations

_MODULE = "torch.backends.quantized"
engine = "none"
supported_engines = ['none']
