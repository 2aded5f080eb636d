# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.mps, functional stub: there is no MPS device."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.placeholders import ImportOnly, import_only_function, returning

_MODULE = "torch.mps"
_BECAUSE = "there is no MPS device"
_is_in_bad_fork = returning("_is_in_bad_fork", _MODULE, False)
current_allocated_memory = returning("current_allocated_memory", _MODULE, 0)
device_count = returning("device_count", _MODULE, 0)
driver_allocated_memory = returning("driver_allocated_memory", _MODULE, 0)
empty_cache = returning("empty_cache", _MODULE, None)
is_available = returning("is_available", _MODULE, False)
manual_seed = returning("manual_seed", _MODULE, None)
seed = returning("seed", _MODULE, None)
compile_shader = import_only_function("compile_shader", _MODULE, _BECAUSE, RuntimeError)
get_rng_state = import_only_function("get_rng_state", _MODULE, _BECAUSE, RuntimeError)
recommended_max_memory = import_only_function("recommended_max_memory", _MODULE, _BECAUSE, RuntimeError)
set_per_process_memory_fraction = import_only_function("set_per_process_memory_fraction", _MODULE, _BECAUSE, RuntimeError)
set_rng_state = import_only_function("set_rng_state", _MODULE, _BECAUSE, RuntimeError)
synchronize = import_only_function("synchronize", _MODULE, _BECAUSE, RuntimeError)


class Event(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = RuntimeError
