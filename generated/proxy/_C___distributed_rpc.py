# Generated from schema/torch_proxy.yaml; do not edit.
"""torch._C._distributed_rpc, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly

_MODULE = "torch._C._distributed_rpc"
_BECAUSE = "mindtorch_v2 runs in one process"


class PyRRef(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class RpcAgent(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class TensorPipeAgent(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class WorkerInfo(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
