# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.fsdp.sharded_grad_scaler, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch.distributed.fsdp.sharded_grad_scaler"
_BECAUSE = "mindtorch_v2 runs in one process"


class ShardedGradScaler(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
