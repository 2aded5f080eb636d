# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.optim, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.distributed.optim"
_BECAUSE = "mindtorch_v2 runs in one process"


class DistributedOptimizer(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PostLocalSGDOptimizer(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ZeroRedundancyOptimizer(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
