# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.profiler.profiler, functional stub."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.profiler import (
    _default_schedule_fn,
)
from torch.profiler import (
    ProfilerAction, profile, schedule, supported_activities, tensorboard_trace_handler,
)

_MODULE = "torch.profiler.profiler"
