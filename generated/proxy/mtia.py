# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.mtia, functional stub: there is no MTIA device."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import import_only_function, returning

_MODULE = "torch.mtia"
_BECAUSE = "Torch not compiled with MTIA enabled"
_is_in_bad_fork = returning("_is_in_bad_fork", _MODULE, False)
device_count = returning("device_count", _MODULE, 0)
empty_cache = returning("empty_cache", _MODULE, None)
is_available = returning("is_available", _MODULE, False)
is_initialized = returning("is_initialized", _MODULE, False)
manual_seed = returning("manual_seed", _MODULE, None)
manual_seed_all = returning("manual_seed_all", _MODULE, None)
max_memory_allocated = returning("max_memory_allocated", _MODULE, 0)
memory_allocated = returning("memory_allocated", _MODULE, 0)
memory_stats = returning("memory_stats", _MODULE, {})
reset_peak_memory_stats = returning("reset_peak_memory_stats", _MODULE, None)
current_device = import_only_function("current_device", _MODULE, _BECAUSE, AssertionError)
get_device_capability = import_only_function("get_device_capability", _MODULE, _BECAUSE, AssertionError)
get_rng_state = import_only_function("get_rng_state", _MODULE, _BECAUSE, AssertionError)
set_device = import_only_function("set_device", _MODULE, _BECAUSE, AssertionError)
set_rng_state = import_only_function("set_rng_state", _MODULE, _BECAUSE, AssertionError)
synchronize = import_only_function("synchronize", _MODULE, _BECAUSE, AssertionError)
