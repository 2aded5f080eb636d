# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.elastic.multiprocessing.errors, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, identity

_MODULE = "torch.distributed.elastic.multiprocessing.errors"
_BECAUSE = "mindtorch_v2 runs in one process"
record = identity("record", _MODULE)


class ChildFailedError(RuntimeError):
    """An error of torch.distributed.elastic.multiprocessing.errors, which mindtorch_v2 never raises."""


class ErrorHandler(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ProcessFailure(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
