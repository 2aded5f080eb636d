# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.utils, import-only stub: helpers of distributed modules."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function

_MODULE = "torch.distributed.utils"
_BECAUSE = "mindtorch_v2 runs in one process"
_sync_module_states = import_only_function("_sync_module_states", _MODULE, _BECAUSE, NotImplementedError)
_sync_params_and_buffers = import_only_function("_sync_params_and_buffers", _MODULE, _BECAUSE, NotImplementedError)
_to_kwargs = import_only_function("_to_kwargs", _MODULE, _BECAUSE, NotImplementedError)
_verify_param_shape_across_processes = import_only_function("_verify_param_shape_across_processes", _MODULE, _BECAUSE, NotImplementedError)
