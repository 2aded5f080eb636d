# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._namedtensor_internals, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch._namedtensor_internals"
_BECAUSE = "there are no named tensors"
check_serializing_named_tensor = import_only_function("check_serializing_named_tensor", _MODULE, _BECAUSE, NotImplementedError)
resolve_ellipsis = import_only_function("resolve_ellipsis", _MODULE, _BECAUSE, NotImplementedError)
update_names = import_only_function("update_names", _MODULE, _BECAUSE, NotImplementedError)
