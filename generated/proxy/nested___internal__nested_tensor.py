# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nested._internal.nested_tensor, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.nested._internal.nested_tensor"
_BECAUSE = "nested tensors are not implemented"
_tensor_symint_registry = {}


class NestedTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
