# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.operator_schemas, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.fx.operator_schemas"
_BECAUSE = "there is no symbolic tracing"
get_signature_for_torch_op = import_only_function("get_signature_for_torch_op", _MODULE, _BECAUSE, NotImplementedError)
normalize_function = import_only_function("normalize_function", _MODULE, _BECAUSE, NotImplementedError)
