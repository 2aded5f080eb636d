# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook"
_BECAUSE = "mindtorch_v2 runs in one process"
batched_powerSGD_hook = import_only_function("batched_powerSGD_hook", _MODULE, _BECAUSE, NotImplementedError)
powerSGD_hook = import_only_function("powerSGD_hook", _MODULE, _BECAUSE, NotImplementedError)


class PowerSGDState(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
