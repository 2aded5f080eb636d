# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.profiler.profiler, functional stub."""

from __future__ import annotations

from torch.profiler import (
    ProfilerAction, profile, schedule, supported_activities, tensorboard_trace_handler,
)

_MODULE = "torch.profiler.profiler"
