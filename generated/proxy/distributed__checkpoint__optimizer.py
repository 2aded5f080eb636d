# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint.optimizer, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.checkpoint.optimizer"
_BECAUSE = "mindtorch_v2 runs in one process"
load_sharded_optimizer_state_dict = import_only_function("load_sharded_optimizer_state_dict", _MODULE, _BECAUSE, NotImplementedError)
