# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook"
_BECAUSE = "mindtorch_v2 runs in one process"
post_localSGD_hook = import_only_function("post_localSGD_hook", _MODULE, _BECAUSE, NotImplementedError)


class PostLocalSGDState(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
