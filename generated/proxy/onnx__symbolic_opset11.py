# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx.symbolic_opset11, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.onnx.symbolic_opset11"
_BECAUSE = "there is no graph to export"
add = import_only_function("add", _MODULE, _BECAUSE, NotImplementedError)
clamp = import_only_function("clamp", _MODULE, _BECAUSE, NotImplementedError)
select = import_only_function("select", _MODULE, _BECAUSE, NotImplementedError)
squeeze = import_only_function("squeeze", _MODULE, _BECAUSE, NotImplementedError)
topk = import_only_function("topk", _MODULE, _BECAUSE, NotImplementedError)
unsqueeze = import_only_function("unsqueeze", _MODULE, _BECAUSE, NotImplementedError)
