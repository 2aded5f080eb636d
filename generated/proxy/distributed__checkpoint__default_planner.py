# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint.default_planner, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.distributed.checkpoint.default_planner"
_BECAUSE = "mindtorch_v2 runs in one process"


class _EmptyStateDictLoadPlanner(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class DefaultLoadPlanner(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class DefaultSavePlanner(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
