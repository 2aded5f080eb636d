# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx._internal, import-only stub: the exporter."""

from __future__ import annotations

_MODULE = "torch.onnx._internal"
