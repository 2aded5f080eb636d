# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.fx.passes.infra.pass_base, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.fx.passes.infra.pass_base"
_BECAUSE = "there is no symbolic tracing"


class PassBase(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PassResult(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
