# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.join, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.distributed.algorithms.join"
_BECAUSE = "mindtorch_v2 runs in one process"


class Join(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class Joinable(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class JoinHook(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
