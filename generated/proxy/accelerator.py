# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.accelerator, functional stub: no accelerator takes the place of the CPU by itself."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import NoOpContext, import_only_function, lazy_children, returning

_MODULE = "torch.accelerator"
_BECAUSE = "there is no accelerator"
current_accelerator = returning("current_accelerator", _MODULE, None)
device_count = returning("device_count", _MODULE, 0)
empty_cache = returning("empty_cache", _MODULE, None)
empty_host_cache = returning("empty_host_cache", _MODULE, None)
is_available = returning("is_available", _MODULE, False)
max_memory_allocated = returning("max_memory_allocated", _MODULE, 0)
max_memory_reserved = returning("max_memory_reserved", _MODULE, 0)
memory_allocated = returning("memory_allocated", _MODULE, 0)
memory_reserved = returning("memory_reserved", _MODULE, 0)
memory_stats = returning("memory_stats", _MODULE, {})
reset_peak_memory_stats = returning("reset_peak_memory_stats", _MODULE, None)
current_device_idx = import_only_function("current_device_idx", _MODULE, _BECAUSE, RuntimeError)
current_device_index = import_only_function("current_device_index", _MODULE, _BECAUSE, RuntimeError)
current_stream = import_only_function("current_stream", _MODULE, _BECAUSE, RuntimeError)
get_device_capability = import_only_function("get_device_capability", _MODULE, _BECAUSE, RuntimeError)
get_memory_info = import_only_function("get_memory_info", _MODULE, _BECAUSE, RuntimeError)
set_device_idx = import_only_function("set_device_idx", _MODULE, _BECAUSE, RuntimeError)
set_device_index = import_only_function("set_device_index", _MODULE, _BECAUSE, RuntimeError)
set_stream = import_only_function("set_stream", _MODULE, _BECAUSE, RuntimeError)
synchronize = import_only_function("synchronize", _MODULE, _BECAUSE, RuntimeError)
__getattr__ = lazy_children(_MODULE)


class device_index(NoOpContext):
    """Changes nothing."""
