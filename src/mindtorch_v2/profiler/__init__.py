"""`torch.profiler`: which operators a program runs, how long they take, with which shapes, from which module and line, and the memory that they take."""

from __future__ import annotations

from ..autograd.profiler import KinetoStepTracker, record_function
from ..autograd.profiler_util import DeviceType
from . import itt
from .profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    RecordScope,
    _ExperimentalConfig,
    _KinetoProfile,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "RecordScope",
    "_ExperimentalConfig",
    "_KinetoProfile",
    "itt",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
