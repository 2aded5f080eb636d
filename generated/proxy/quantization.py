# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.quantization, import-only stub."""

from __future__ import annotations

from torch.ao.quantization import (
    DeQuantStub, QConfig, QuantStub, QuantType, QuantWrapper, convert, fuse_modules, get_default_qconfig, prepare,
    prepare_qat, quantize, quantize_dynamic,
)

_MODULE = "torch.quantization"
_BECAUSE = "quantization is not implemented"
