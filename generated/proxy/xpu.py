# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.xpu, functional stub: there is no XPU device."""

from __future__ import annotations

from mindtorch_v2._torch_proxy.stubs.devices import (
    device, device_of,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, import_only_function, lazy_children, returning

_MODULE = "torch.xpu"
_BECAUSE = "Torch not compiled with XPU enabled"
default_generators = []
_is_compiled = returning("_is_compiled", _MODULE, False)
_is_in_bad_fork = returning("_is_in_bad_fork", _MODULE, False)
device_count = returning("device_count", _MODULE, 0)
empty_cache = returning("empty_cache", _MODULE, None)
get_arch_list = returning("get_arch_list", _MODULE, [])
get_rng_state_all = returning("get_rng_state_all", _MODULE, [])
is_available = returning("is_available", _MODULE, False)
is_bf16_supported = returning("is_bf16_supported", _MODULE, False)
is_current_stream_capturing = returning("is_current_stream_capturing", _MODULE, False)
is_initialized = returning("is_initialized", _MODULE, False)
manual_seed = returning("manual_seed", _MODULE, None)
manual_seed_all = returning("manual_seed_all", _MODULE, None)
max_memory_allocated = returning("max_memory_allocated", _MODULE, 0)
max_memory_reserved = returning("max_memory_reserved", _MODULE, 0)
memory_allocated = returning("memory_allocated", _MODULE, 0)
memory_reserved = returning("memory_reserved", _MODULE, 0)
memory_stats = returning("memory_stats", _MODULE, {})
reset_accumulated_memory_stats = returning("reset_accumulated_memory_stats", _MODULE, None)
reset_peak_memory_stats = returning("reset_peak_memory_stats", _MODULE, None)
seed = returning("seed", _MODULE, None)
seed_all = returning("seed_all", _MODULE, None)
set_rng_state_all = returning("set_rng_state_all", _MODULE, None)
current_device = import_only_function("current_device", _MODULE, _BECAUSE, AssertionError)
current_stream = import_only_function("current_stream", _MODULE, _BECAUSE, AssertionError)
get_device_capability = import_only_function("get_device_capability", _MODULE, _BECAUSE, AssertionError)
get_device_name = import_only_function("get_device_name", _MODULE, _BECAUSE, AssertionError)
get_device_properties = import_only_function("get_device_properties", _MODULE, _BECAUSE, AssertionError)
get_rng_state = import_only_function("get_rng_state", _MODULE, _BECAUSE, AssertionError)
init = import_only_function("init", _MODULE, _BECAUSE, AssertionError)
initial_seed = import_only_function("initial_seed", _MODULE, _BECAUSE, AssertionError)
mem_get_info = import_only_function("mem_get_info", _MODULE, _BECAUSE, AssertionError)
set_device = import_only_function("set_device", _MODULE, _BECAUSE, AssertionError)
set_rng_state = import_only_function("set_rng_state", _MODULE, _BECAUSE, AssertionError)
set_stream = import_only_function("set_stream", _MODULE, _BECAUSE, AssertionError)
synchronize = import_only_function("synchronize", _MODULE, _BECAUSE, AssertionError)
__getattr__ = lazy_children(_MODULE)


class stream(NoOpContext):
    """Changes nothing."""


class StreamContext(NoOpContext):
    """Changes nothing."""


class BFloat16Tensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class ByteTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class DoubleTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class Event(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class FloatTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class graph(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class HalfTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class IntTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class LongTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class Stream(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class XPUGraph(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError
