# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.nn.parallel, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children

_MODULE = "torch.nn.parallel"
_BECAUSE = "mindtorch_v2 runs in one process"
data_parallel = import_only_function("data_parallel", _MODULE, _BECAUSE, NotImplementedError)
gather = import_only_function("gather", _MODULE, _BECAUSE, NotImplementedError)
parallel_apply = import_only_function("parallel_apply", _MODULE, _BECAUSE, NotImplementedError)
replicate = import_only_function("replicate", _MODULE, _BECAUSE, NotImplementedError)
scatter = import_only_function("scatter", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class DataParallel(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class DistributedDataParallel(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
