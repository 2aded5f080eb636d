# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.checkpoint.state_dict, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed.checkpoint.state_dict"
_BECAUSE = "mindtorch_v2 runs in one process"
get_model_state_dict = import_only_function("get_model_state_dict", _MODULE, _BECAUSE, NotImplementedError)
get_optimizer_state_dict = import_only_function("get_optimizer_state_dict", _MODULE, _BECAUSE, NotImplementedError)
get_state_dict = import_only_function("get_state_dict", _MODULE, _BECAUSE, NotImplementedError)
set_model_state_dict = import_only_function("set_model_state_dict", _MODULE, _BECAUSE, NotImplementedError)
set_optimizer_state_dict = import_only_function("set_optimizer_state_dict", _MODULE, _BECAUSE, NotImplementedError)
set_state_dict = import_only_function("set_state_dict", _MODULE, _BECAUSE, NotImplementedError)


class StateDictOptions(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
