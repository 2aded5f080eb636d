# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._subclasses.fake_tensor, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, returning

_MODULE = "torch._subclasses.fake_tensor"
_BECAUSE = "there are no fake tensors; the meta device computes shapes"
is_fake = returning("is_fake", _MODULE, False)


class unset_fake_temporarily(NoOpContext):
    """Changes nothing."""


class FakeTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FakeTensorConverter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class FakeTensorMode(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
