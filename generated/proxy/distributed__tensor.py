# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.tensor, import-only stub."""

from __future__ import annotations

from torch.distributed.device_mesh import (
    DeviceMesh, init_device_mesh,
)
from torch.distributed.tensor.placement_types import (
    Partial, Placement, Replicate, Shard,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, lazy_children

_MODULE = "torch.distributed.tensor"
_BECAUSE = "mindtorch_v2 runs in one process"
distribute_module = import_only_function("distribute_module", _MODULE, _BECAUSE, NotImplementedError)
distribute_tensor = import_only_function("distribute_tensor", _MODULE, _BECAUSE, NotImplementedError)
empty = import_only_function("empty", _MODULE, _BECAUSE, NotImplementedError)
full = import_only_function("full", _MODULE, _BECAUSE, NotImplementedError)
ones = import_only_function("ones", _MODULE, _BECAUSE, NotImplementedError)
rand = import_only_function("rand", _MODULE, _BECAUSE, NotImplementedError)
randn = import_only_function("randn", _MODULE, _BECAUSE, NotImplementedError)
zeros = import_only_function("zeros", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class DTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
