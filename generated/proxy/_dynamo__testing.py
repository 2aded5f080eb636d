# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._dynamo.testing, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch._dynamo.testing"
_BECAUSE = "there is no compiler"


class CompileCounter(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class CompileCounterWithBackend(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class EagerAndRecordGraphs(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
