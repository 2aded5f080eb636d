# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx.operators, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.onnx import (
    reshape_from_tensor_shape, shape_as_tensor,
)

_MODULE = "torch.onnx.operators"
