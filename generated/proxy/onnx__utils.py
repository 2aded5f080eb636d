# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx.utils, import-only stub."""

from __future__ import annotations

from torch.onnx import (
    export, is_in_onnx_export,
)

_MODULE = "torch.onnx.utils"
