# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed._functional_collectives, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed._functional_collectives"
_BECAUSE = "mindtorch_v2 runs in one process"
all_gather_tensor = import_only_function("all_gather_tensor", _MODULE, _BECAUSE, NotImplementedError)
all_gather_tensor_autograd = import_only_function("all_gather_tensor_autograd", _MODULE, _BECAUSE, NotImplementedError)
all_reduce = import_only_function("all_reduce", _MODULE, _BECAUSE, NotImplementedError)
all_to_all_single = import_only_function("all_to_all_single", _MODULE, _BECAUSE, NotImplementedError)
all_to_all_single_autograd = import_only_function("all_to_all_single_autograd", _MODULE, _BECAUSE, NotImplementedError)
broadcast = import_only_function("broadcast", _MODULE, _BECAUSE, NotImplementedError)
permute_tensor = import_only_function("permute_tensor", _MODULE, _BECAUSE, NotImplementedError)
reduce_scatter_tensor = import_only_function("reduce_scatter_tensor", _MODULE, _BECAUSE, NotImplementedError)
reduce_scatter_tensor_autograd = import_only_function("reduce_scatter_tensor_autograd", _MODULE, _BECAUSE, NotImplementedError)
wait_tensor = import_only_function("wait_tensor", _MODULE, _BECAUSE, NotImplementedError)


class AsyncCollectiveTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
