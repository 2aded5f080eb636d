# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper, import-only stub."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function

_MODULE = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
_BECAUSE = "mindtorch_v2 runs in one process"
apply_activation_checkpointing = import_only_function("apply_activation_checkpointing", _MODULE, _BECAUSE, NotImplementedError)
checkpoint_wrapper = import_only_function("checkpoint_wrapper", _MODULE, _BECAUSE, NotImplementedError)
offload_wrapper = import_only_function("offload_wrapper", _MODULE, _BECAUSE, NotImplementedError)


class CheckpointImpl(enum.Enum):
    """An enumeration of torch.distributed.algorithms._checkpoint.checkpoint_wrapper."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class CheckpointWrapper(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError


class OffloadWrapper(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
