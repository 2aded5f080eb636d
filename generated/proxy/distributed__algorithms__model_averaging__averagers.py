# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.model_averaging.averagers, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.distributed.algorithms.model_averaging.averagers"
_BECAUSE = "mindtorch_v2 runs in one process"


class ModelAverager(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PeriodicModelAverager(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
