# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.onnx.symbolic_helper, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import identity, import_only_function

_MODULE = "torch.onnx.symbolic_helper"
_BECAUSE = "there is no graph to export"
parse_args = identity("parse_args", _MODULE)
quantized_args = identity("quantized_args", _MODULE)
_get_tensor_dim_size = import_only_function("_get_tensor_dim_size", _MODULE, _BECAUSE, NotImplementedError)
_get_tensor_sizes = import_only_function("_get_tensor_sizes", _MODULE, _BECAUSE, NotImplementedError)
