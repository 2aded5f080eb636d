# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.jit._recursive, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.jit._recursive"
_BECAUSE = "there is no TorchScript compiler"
concrete_type_store = None


class ConcreteTypeStore(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
