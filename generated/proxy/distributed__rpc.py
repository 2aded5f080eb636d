# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.rpc, import-only stub."""

from __future__ import annotations

from torch._C._distributed_rpc import (
    RpcAgent, TensorPipeAgent, WorkerInfo,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, returning

_MODULE = "torch.distributed.rpc"
_BECAUSE = "mindtorch_v2 runs in one process"
is_available = returning("is_available", _MODULE, False)
get_worker_info = import_only_function("get_worker_info", _MODULE, _BECAUSE, NotImplementedError)
init_rpc = import_only_function("init_rpc", _MODULE, _BECAUSE, NotImplementedError)
remote = import_only_function("remote", _MODULE, _BECAUSE, NotImplementedError)
rpc_async = import_only_function("rpc_async", _MODULE, _BECAUSE, NotImplementedError)
rpc_sync = import_only_function("rpc_sync", _MODULE, _BECAUSE, NotImplementedError)
shutdown = import_only_function("shutdown", _MODULE, _BECAUSE, NotImplementedError)


class RRef(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
