# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.profiler, functional stub: profiling runs the block and records nothing."""

from __future__ import annotations

import enum

from mindtorch_v2._torch_proxy.stubs.profiler import (
    profile, record_function, schedule, supported_activities, tensorboard_trace_handler,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, lazy_children, returning

_MODULE = "torch.profiler"
_BECAUSE = "there is no profiler"
kineto_available = returning("kineto_available", _MODULE, False)
__getattr__ = lazy_children(_MODULE)


class DeviceType(enum.Enum):
    """An enumeration of torch.profiler."""

    CPU = enum.auto()
    CUDA = enum.auto()
    XPU = enum.auto()
    PrivateUse1 = enum.auto()


class ProfilerAction(enum.Enum):
    """An enumeration of torch.profiler."""

    NONE = enum.auto()
    WARMUP = enum.auto()
    RECORD = enum.auto()
    RECORD_AND_SAVE = enum.auto()


class ProfilerActivity(enum.Enum):
    """An enumeration of torch.profiler."""

    CPU = enum.auto()
    XPU = enum.auto()
    MTIA = enum.auto()
    CUDA = enum.auto()
    HPU = enum.auto()
    PrivateUse1 = enum.auto()


class ExecutionTraceObserver(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = NotImplementedError
