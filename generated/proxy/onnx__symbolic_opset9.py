# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx.symbolic_opset9, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.onnx.symbolic_opset9"
_BECAUSE = "there is no graph to export"
dropout = import_only_function("dropout", _MODULE, _BECAUSE, NotImplementedError)
masked_fill = import_only_function("masked_fill", _MODULE, _BECAUSE, NotImplementedError)
softmax = import_only_function("softmax", _MODULE, _BECAUSE, NotImplementedError)
squeeze = import_only_function("squeeze", _MODULE, _BECAUSE, NotImplementedError)
unsqueeze = import_only_function("unsqueeze", _MODULE, _BECAUSE, NotImplementedError)
