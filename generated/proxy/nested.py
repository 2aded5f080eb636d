# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nested, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function, lazy_children

_MODULE = "torch.nested"
_BECAUSE = "nested tensors are not implemented"
as_nested_tensor = import_only_function("as_nested_tensor", _MODULE, _BECAUSE, NotImplementedError)
masked_select = import_only_function("masked_select", _MODULE, _BECAUSE, NotImplementedError)
narrow = import_only_function("narrow", _MODULE, _BECAUSE, NotImplementedError)
nested_tensor = import_only_function("nested_tensor", _MODULE, _BECAUSE, NotImplementedError)
nested_tensor_from_jagged = import_only_function("nested_tensor_from_jagged", _MODULE, _BECAUSE, NotImplementedError)
to_padded_tensor = import_only_function("to_padded_tensor", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)
