# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nested._internal.ops, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.nested._internal.ops"
_BECAUSE = "nested tensors are not implemented"
extract_kwargs = import_only_function("extract_kwargs", _MODULE, _BECAUSE, NotImplementedError)
lookup_jagged = import_only_function("lookup_jagged", _MODULE, _BECAUSE, NotImplementedError)
raggedness_matches = import_only_function("raggedness_matches", _MODULE, _BECAUSE, NotImplementedError)
