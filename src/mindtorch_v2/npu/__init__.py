"""`torch.npu`: Ascend devices, by the names of `torch.cuda` and torch_npu.

Queries answer on every machine; what needs a device raises a RuntimeError that says what is missing. CANN is initialised with the first use of a device.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .._backends.npu import generator as _generator, is_available
from .._backends.npu.errors import NpuError, NpuOutOfMemory as OutOfMemoryError
from .._backends.npu.runtime import device_count, is_initialized
from .._backends.npu.streams import StreamContext, current_stream, default_stream, set_stream, stream
from ._missing import NAMES as _NAMES
from ._options import (
    CubeMathType,
    are_compatible_impl_enabled,
    config,
    conv,
    disable_deterministic_with_backward,
    enable_deterministic_with_backward,
    get_mm_bmm_format_nd,
    is_jit_compile_false,
    matmul,
    set_compile_mode,
    set_deterministic_level,
    set_mm_bmm_format_nd,
    set_op_timeout_ms,
    set_option,
    use_compatible_impl,
)
from .graphs import (
    NPUGraph,
    graph,
    graph_pool_handle,
    graph_task_group_begin,
    graph_task_group_end,
    graph_task_update_begin,
    graph_task_update_end,
    is_current_stream_capturing,
    make_graphed_callables,
    super_kernel_scope_begin,
    super_kernel_scope_end,
)
from .memory import (
    MemPool,
    NPUPluggableAllocator,
    caching_allocator_alloc,
    caching_allocator_delete,
    change_current_allocator,
    empty_cache,
    empty_virt_addr_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_empty_cache,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    is_pinned,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    pin_memory,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    ExternalEvent,
    Stream,
    SyncLaunchStream,
)
from .utils import (
    _get_device_capability,
    _get_device_name,
    _index,
    _is_in_bad_fork as _is_in_bad_fork,
    _lazy_init as _lazy_init,
    can_device_access_peer,
    current_device,
    device,
    device_of,
    disable_peer_access,
    enable_peer_access,
    get_device_properties,
    get_soc_name,
    get_sync_debug_mode,
    init,
    ipc_collect,
    is_bf16_supported,
    set_device,
    set_sync_debug_mode,
    stream_priority_range,
    synchronize,
)

if TYPE_CHECKING:
    from .._device import DeviceLike

__all__ = [
    "BFloat16Storage",
    "BFloat16Tensor",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "CubeMathType",
    "DoubleStorage",
    "DoubleTensor",
    "Event",
    "ExternalEvent",
    "FloatStorage",
    "FloatTensor",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "MemPool",
    "NPUGraph",
    "NPUPluggableAllocator",
    "NpuError",
    "NpuGraphOpHandler",
    "OutOfMemoryError",
    "ShortStorage",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "SyncLaunchStream",
    "are_compatible_impl_enabled",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "change_current_allocator",
    "check_uce_in_memory",
    "clear_npu_overflow_flag",
    "config",
    "conv",
    "current_blas_handle",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "disable_deterministic_with_backward",
    "disable_peer_access",
    "empty_cache",
    "empty_virt_addr_cache",
    "enable_deterministic_with_backward",
    "enable_peer_access",
    "fallbacks",
    "finalize_dump",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_autocast_dtype",
    "get_device_capability",
    "get_device_limit",
    "get_device_name",
    "get_device_properties",
    "get_mm_bmm_format_nd",
    "get_npu_overflow_flag",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_soc_name",
    "get_stream_limit",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "graph_task_group_begin",
    "graph_task_group_end",
    "graph_task_update_begin",
    "graph_task_update_end",
    "host_empty_cache",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "init_dump",
    "initial_seed",
    "ipc_collect",
    "is_autocast_enabled",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_jit_compile_false",
    "is_pinned",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "matmul",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "mstx",
    "npurt",
    "obfuscation_calculate",
    "obfuscation_finalize",
    "obfuscation_initialize",
    "pin_memory",
    "register_npu_graph_handler",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_fallbacks",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "reset_stream_limit",
    "restart_device",
    "seed",
    "seed_all",
    "set_aoe",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_compile_mode",
    "set_deterministic_level",
    "set_device",
    "set_device_limit",
    "set_dump",
    "set_mm_bmm_format_nd",
    "set_op_timeout_ms",
    "set_option",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_stream_limit",
    "set_sync_debug_mode",
    "stop_device",
    "stream",
    "stream_priority_range",
    "stress_detect",
    "super_kernel_scope_begin",
    "super_kernel_scope_end",
    "synchronize",
    "use_compatible_impl",
    "use_mem_pool",
    "utilization",
]


def _get_allocator(device: DeviceLike | None = None) -> Any:
    """The caching allocator of a device; made with the first call, without an NPU too."""
    from .._backends.npu import allocator

    return allocator.get(_index(device))


# --------------------------------------------------------------------------------------------------- operators without a kernel


def fallbacks() -> dict[str, dict[str, Any]]:
    """The operators without a kernel on NPUs that the CPU computed in this process, by full name: `calls`, `bytes_to_host`, `bytes_to_device`, and
    the `reason`. Empty without an NPU. `MINDTORCH_NPU_FALLBACK=0` in the environment forbids them: such a call is an error then."""
    from .._backends.npu import fallback

    return fallback.counts()


def reset_fallbacks() -> None:
    """Let `fallbacks` count from 0 again."""
    from .._backends.npu import fallback

    fallback.reset()


# ----------------------------------------------------------------------------------------------------------------- names on demand

_MODULES = {name: f".{name}" for name in ("amp", "graphs", "memory", "random", "streams", "utils")}
_LATE = {
    "_autocast": "get_amp_supported_dtype get_autocast_dtype is_autocast_enabled set_autocast_dtype set_autocast_enabled",
    "mstx": "mstx",
}
_HOMES = {name: module for module, names in _LATE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # asked for anew: how many there are shows with the first question for devices
        return tuple(_generator.get(index) for index in range(device_count()))
    if name in _NAMES:
        value: Any = _NAMES[name]
    elif name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    elif name in _MODULES:
        return importlib.import_module(_MODULES[name], __name__)
    else:
        value = None if name.startswith("_") else importlib.import_module("._legacy", __name__).TYPES.get(name)
        if value is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


def get_device_name(device: DeviceLike | None = None) -> str:
    """The name of the chip: `Ascend910B1`, ..."""
    return _get_device_name(device)


def get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    """What TORCH_NPU_DEVICE_CAPABILITY says (`8.0`), for programs that ask; else (0, 0): NPUs have no such number. `get_device_name` tells chips apart."""
    return _get_device_capability(device)
