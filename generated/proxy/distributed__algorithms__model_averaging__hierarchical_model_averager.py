# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.model_averaging.hierarchical_model_averager, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.distributed.algorithms.model_averaging.hierarchical_model_averager"
_BECAUSE = "mindtorch_v2 runs in one process"


class HierarchicalModelAverager(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
