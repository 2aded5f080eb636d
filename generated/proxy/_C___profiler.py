# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C._profiler, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.core import (
    gather_traceback, symbolize_tracebacks,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch._C._profiler"
_BECAUSE = "there is no profiler"


class _ExperimentalConfig(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class RecordScope(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
