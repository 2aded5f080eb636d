# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.tensor.experimental, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext, import_only_function, lazy_children

_MODULE = "torch.distributed.tensor.experimental"
_BECAUSE = "mindtorch_v2 runs in one process"
context_parallel = import_only_function("context_parallel", _MODULE, _BECAUSE, NotImplementedError)
local_map = import_only_function("local_map", _MODULE, _BECAUSE, NotImplementedError)
register_sharding = import_only_function("register_sharding", _MODULE, _BECAUSE, NotImplementedError)
__getattr__ = lazy_children(_MODULE)


class implicit_replication(NoOpContext):
    """Changes nothing."""
