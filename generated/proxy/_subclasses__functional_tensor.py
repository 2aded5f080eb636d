# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._subclasses.functional_tensor, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, identity

_MODULE = "torch._subclasses.functional_tensor"
_BECAUSE = "there are no functional tensors"
mb_unwrap_functional_tensor = identity("mb_unwrap_functional_tensor", _MODULE)


class disable_functional_mode(NoOpContext):
    """Changes nothing."""


class FunctionalTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FunctionalTensorMode(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
