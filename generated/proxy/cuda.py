# Generated from schema/torch_proxy.yaml; do not edit.
"""torch.cuda, functional stub: there is no CUDA device."""

from __future__ import annotations

from mindtorch_v2 import (
    OutOfMemoryError,
)
from mindtorch_v2._torch_proxy.stubs.devices import (
    device, device_of,
)
from mindtorch_v2._torch_proxy.placeholders import ImportOnly, NoOpContext, import_only_function, lazy_children, returning

_MODULE = "torch.cuda"
_BECAUSE = "Torch not compiled with CUDA enabled"
default_generators = []
has_half = True
has_magma = False
_is_compiled = returning("_is_compiled", _MODULE, False)
_is_in_bad_fork = returning("_is_in_bad_fork", _MODULE, False)
_lazy_call = returning("_lazy_call", _MODULE, None)
device_count = returning("device_count", _MODULE, 0)
empty_cache = returning("empty_cache", _MODULE, None)
get_arch_list = returning("get_arch_list", _MODULE, [])
get_gencode_flags = returning("get_gencode_flags", _MODULE, "")
get_rng_state_all = returning("get_rng_state_all", _MODULE, [])
get_sync_debug_mode = returning("get_sync_debug_mode", _MODULE, 0)
ipc_collect = returning("ipc_collect", _MODULE, None)
is_available = returning("is_available", _MODULE, False)
is_bf16_supported = returning("is_bf16_supported", _MODULE, False)
is_current_stream_capturing = returning("is_current_stream_capturing", _MODULE, False)
is_initialized = returning("is_initialized", _MODULE, False)
is_tf32_supported = returning("is_tf32_supported", _MODULE, False)
manual_seed = returning("manual_seed", _MODULE, None)
manual_seed_all = returning("manual_seed_all", _MODULE, None)
max_memory_allocated = returning("max_memory_allocated", _MODULE, 0)
max_memory_cached = returning("max_memory_cached", _MODULE, 0)
max_memory_reserved = returning("max_memory_reserved", _MODULE, 0)
memory_allocated = returning("memory_allocated", _MODULE, 0)
memory_cached = returning("memory_cached", _MODULE, 0)
memory_reserved = returning("memory_reserved", _MODULE, 0)
memory_stats = returning("memory_stats", _MODULE, {})
reset_accumulated_memory_stats = returning("reset_accumulated_memory_stats", _MODULE, None)
reset_max_memory_allocated = returning("reset_max_memory_allocated", _MODULE, None)
reset_max_memory_cached = returning("reset_max_memory_cached", _MODULE, None)
reset_peak_memory_stats = returning("reset_peak_memory_stats", _MODULE, None)
seed = returning("seed", _MODULE, None)
seed_all = returning("seed_all", _MODULE, None)
set_rng_state_all = returning("set_rng_state_all", _MODULE, None)
_lazy_init = import_only_function("_lazy_init", _MODULE, _BECAUSE, AssertionError)
_sleep = import_only_function("_sleep", _MODULE, _BECAUSE, AssertionError)
caching_allocator_alloc = import_only_function("caching_allocator_alloc", _MODULE, _BECAUSE, AssertionError)
caching_allocator_delete = import_only_function("caching_allocator_delete", _MODULE, _BECAUSE, AssertionError)
can_device_access_peer = import_only_function("can_device_access_peer", _MODULE, _BECAUSE, AssertionError)
change_current_allocator = import_only_function("change_current_allocator", _MODULE, _BECAUSE, AssertionError)
clock_rate = import_only_function("clock_rate", _MODULE, _BECAUSE, AssertionError)
cudart = import_only_function("cudart", _MODULE, _BECAUSE, AssertionError)
current_blas_handle = import_only_function("current_blas_handle", _MODULE, _BECAUSE, AssertionError)
current_device = import_only_function("current_device", _MODULE, _BECAUSE, AssertionError)
current_stream = import_only_function("current_stream", _MODULE, _BECAUSE, AssertionError)
default_stream = import_only_function("default_stream", _MODULE, _BECAUSE, AssertionError)
get_allocator_backend = import_only_function("get_allocator_backend", _MODULE, _BECAUSE, AssertionError)
get_device_capability = import_only_function("get_device_capability", _MODULE, _BECAUSE, AssertionError)
get_device_name = import_only_function("get_device_name", _MODULE, _BECAUSE, AssertionError)
get_device_properties = import_only_function("get_device_properties", _MODULE, _BECAUSE, AssertionError)
get_rng_state = import_only_function("get_rng_state", _MODULE, _BECAUSE, AssertionError)
graph_pool_handle = import_only_function("graph_pool_handle", _MODULE, _BECAUSE, AssertionError)
init = import_only_function("init", _MODULE, _BECAUSE, AssertionError)
initial_seed = import_only_function("initial_seed", _MODULE, _BECAUSE, AssertionError)
list_gpu_processes = import_only_function("list_gpu_processes", _MODULE, _BECAUSE, AssertionError)
make_graphed_callables = import_only_function("make_graphed_callables", _MODULE, _BECAUSE, AssertionError)
mem_get_info = import_only_function("mem_get_info", _MODULE, _BECAUSE, AssertionError)
memory_snapshot = import_only_function("memory_snapshot", _MODULE, _BECAUSE, AssertionError)
memory_summary = import_only_function("memory_summary", _MODULE, _BECAUSE, AssertionError)
memory_usage = import_only_function("memory_usage", _MODULE, _BECAUSE, AssertionError)
power_draw = import_only_function("power_draw", _MODULE, _BECAUSE, AssertionError)
set_device = import_only_function("set_device", _MODULE, _BECAUSE, AssertionError)
set_per_process_memory_fraction = import_only_function("set_per_process_memory_fraction", _MODULE, _BECAUSE, AssertionError)
set_rng_state = import_only_function("set_rng_state", _MODULE, _BECAUSE, AssertionError)
set_stream = import_only_function("set_stream", _MODULE, _BECAUSE, AssertionError)
set_sync_debug_mode = import_only_function("set_sync_debug_mode", _MODULE, _BECAUSE, AssertionError)
synchronize = import_only_function("synchronize", _MODULE, _BECAUSE, AssertionError)
temperature = import_only_function("temperature", _MODULE, _BECAUSE, AssertionError)
utilization = import_only_function("utilization", _MODULE, _BECAUSE, AssertionError)
__getattr__ = lazy_children(_MODULE)


class CudaError(RuntimeError):
    """An error of torch.cuda, which mindtorch_v2 never raises."""


class DeferredCudaCallError(RuntimeError):
    """An error of torch.cuda, which mindtorch_v2 never raises."""


class stream(NoOpContext):
    """Changes nothing."""


class StreamContext(NoOpContext):
    """Changes nothing."""


class BFloat16Tensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class BoolTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class ByteTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class CharTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class CUDAGraph(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class CUDAPluggableAllocator(metaclass=ImportOnly):
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


class ExternalStream(metaclass=ImportOnly):
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


class MemPool(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class ShortTensor(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError


class Stream(metaclass=ImportOnly):
    """Import only."""

    _because = _BECAUSE
    _error = AssertionError
