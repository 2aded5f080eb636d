# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx.symbolic_opset12, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.onnx.symbolic_opset12"
_BECAUSE = "there is no graph to export"
dropout = import_only_function("dropout", _MODULE, _BECAUSE, NotImplementedError)
