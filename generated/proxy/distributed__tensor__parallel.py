# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.tensor.parallel, import-only stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, import_only_function

_MODULE = "torch.distributed.tensor.parallel"
_BECAUSE = "mindtorch_v2 runs in one process"
parallelize_module = import_only_function("parallelize_module", _MODULE, _BECAUSE, NotImplementedError)


class loss_parallel(NoOpContext):
    """Changes nothing."""


class ColwiseParallel(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class ParallelStyle(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PrepareModuleInput(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PrepareModuleInputOutput(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class PrepareModuleOutput(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class RowwiseParallel(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class SequenceParallel(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
