# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cpu, functional stub: the CPU as a device."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext, lazy_children, returning

_MODULE = "torch.cpu"
_BECAUSE = "the CPU has no such thing"
current_device = returning("current_device", _MODULE, "cpu")
current_stream = returning("current_stream", _MODULE, None)
device_count = returning("device_count", _MODULE, 1)
is_available = returning("is_available", _MODULE, True)
is_initialized = returning("is_initialized", _MODULE, True)
set_device = returning("set_device", _MODULE, None)
synchronize = returning("synchronize", _MODULE, None)
__getattr__ = lazy_children(_MODULE)


class Stream(NoOpContext):
    """Changes nothing."""


class stream(NoOpContext):
    """Changes nothing."""


class StreamContext(NoOpContext):
    """Changes nothing."""
