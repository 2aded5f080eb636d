"""`torch.npu`: Ascend devices, by the names of `torch.cuda` and torch_npu.

Queries answer on every machine; what needs a device raises a RuntimeError that says what is missing. CANN is initialised with the first use of a device.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._api.functions import randomness as _randomness  # noqa: F401 - with it, states of generators are tensors
from ._backends.npu import generator as _generator, is_available, runtime as _runtime
from ._backends.npu.errors import NpuError, NpuOutOfMemory as OutOfMemoryError
from ._backends.npu.memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_per_process_memory_fraction,
    host_memory_stats,
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
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from ._backends.npu.runtime import device_count, is_initialized
from ._backends.npu.streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream
from ._device import decorate as _decorate, device as _device
from ._state import run_recorded

if TYPE_CHECKING:
    from ._device import DeviceLike
    from ._tensor import Tensor

__all__ = [
    "Event",
    "NpuError",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "disable_peer_access",
    "empty_cache",
    "enable_peer_access",
    "fallbacks",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_soc_name",
    "host_memory_stats",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_pinned",
    "manual_seed",
    "manual_seed_all",
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
    "pin_memory",
    "reset_accumulated_memory_stats",
    "reset_fallbacks",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "stream_priority_range",
    "synchronize",
]

# ------------------------------------------------------------------------------------------------------------------ the runtime


def init() -> None:
    """Initialise CANN; the first use of a device does the same. RuntimeError without an NPU, and in a forked child."""
    _runtime.get_runtime()


def _lazy_init() -> None:
    init()


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had initialised CANN, so that it cannot use NPUs."""
    return _runtime.in_bad_fork()


def _index(device: DeviceLike | None, optional: bool = False) -> int:
    """The index that a device argument means; the current one for None and `npu`. It initialises nothing.

    optional: -1 for None and for negative indices.
    """
    if device is None:
        return -1 if optional else _current()
    if isinstance(device, int) and not isinstance(device, bool):
        if device < 0:
            return -1 if optional else _current()
        return device
    if not isinstance(device, (str, _device)):
        raise TypeError(f"expected a torch.device, a string or an int for an NPU, but got {type(device).__name__}")
    where = _device(device)
    if where.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {where}")
    return _current() if where.index is None else where.index


def _current() -> int:
    # Before the runtime is there, no thread can have chosen another device.
    return _runtime.get_runtime().current_device() if _runtime.is_initialized() else 0


def _checked(device: DeviceLike | None) -> int:
    """The index of a device that exists. RuntimeError without an NPU, AssertionError for another index, as PyTorch's."""
    _runtime.get_runtime()
    index = _index(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return index


# ---------------------------------------------------------------------------------------------------------------------- devices


def current_device() -> int:
    """The index of this thread's current device."""
    return _runtime.get_runtime().current_device()


def set_device(device: DeviceLike) -> None:
    """Make a device this thread's current one; a negative index changes nothing. RuntimeError when there is no such device."""
    index = _index(device, optional=True)
    if index >= 0:
        _runtime.get_runtime().set_device(index)


def synchronize(device: DeviceLike | None = None) -> None:
    """Wait for all work of a device (the current one). NpuError for a failure of it."""
    run_recorded()
    runtime = _runtime.get_runtime()
    runtime.synchronize_device(_index(device))


class device(contextlib.ContextDecorator):
    """Makes a device this thread's current one for a while: `with npu.device(1):`. None and negative indices change nothing. Also a decorator."""

    def __init__(self, device: DeviceLike | None) -> None:
        self.idx = _index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.prev_idx >= 0:
            set_device(self.prev_idx)

    def __call__(self, func: Any) -> Any:
        return _decorate(func, lambda: device(self.idx))


class device_of(device):
    """Makes the device of a tensor (or storage) the current one for a while; for those of other devices nothing changes."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.device.type == "npu" else -1)


def _get_device_name(device: DeviceLike | None = None) -> str:
    _checked(device)
    return _runtime.get_runtime().soc_name()


def get_device_name(device: DeviceLike | None = None) -> str:
    """The name of the chip: `Ascend910B1`, ..."""
    return _get_device_name(device)


def get_soc_name() -> str:
    """The name of the chip, as CANN gives it."""
    return _runtime.get_runtime().soc_name()


def _get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    _checked(device)
    return 0, 0


def get_device_capability(device: DeviceLike | None = None) -> tuple[int, int]:
    """(0, 0): NPUs have no such number. `get_device_name` tells chips apart."""
    return _get_device_capability(device)


@dataclass(frozen=True)
class _NpuDeviceProperties:
    """What CANN says of a device; None for what this version of it does not say."""

    name: str
    total_memory: int
    multi_processor_count: int | None
    cube_core_num: int | None
    vector_core_num: int | None
    L2_cache_size: int | None
    major: int = 0
    minor: int = 0


def get_device_properties(device: DeviceLike | None = None) -> _NpuDeviceProperties:
    """Name, memory in bytes, and numbers of cores of a device."""
    index = _checked(device)
    runtime = _runtime.get_runtime()
    return _NpuDeviceProperties(
        name=_get_device_name(index),
        total_memory=runtime.mem_get_info(index)[1],
        multi_processor_count=runtime.device_info(index, "aicore_cores"),
        cube_core_num=runtime.device_info(index, "cube_cores"),
        vector_core_num=runtime.device_info(index, "vector_cores"),
        L2_cache_size=runtime.device_info(index, "l2_cache_size"),
    )


_BF16_CHIPS = re.compile(r"Ascend(910B\d|910_\d|950)")  # a bare Ascend910B is older hardware


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the chip computes in bfloat16: from 910B1 on, not 910A and 310P. False without an NPU."""
    return is_available() and _BF16_CHIPS.match(_runtime.get_runtime().soc_name()) is not None


def can_device_access_peer(device: DeviceLike, peer_device: DeviceLike) -> bool:
    """Whether a device can reach the memory of another one. False, with a warning, where CANN cannot say."""
    if not is_available():
        warnings.warn("npu.can_device_access_peer: no NPU is available, so CANN cannot say", UserWarning, stacklevel=2)
        return False
    index, peer = _checked(device), _checked(peer_device)
    if index == peer:
        return False
    try:
        return _runtime.get_runtime().can_access_peer(index, peer)
    except NpuError as error:
        warnings.warn(f"npu.can_device_access_peer: CANN cannot say: {error}", UserWarning, stacklevel=2)
        return False


def enable_peer_access(peer_device: DeviceLike, device: DeviceLike | None = None) -> None:
    """Let a device (the current one) reach the memory of another one. RuntimeError without an NPU, NpuError when CANN refuses."""
    index, peer = _checked(device), _checked(peer_device)
    _runtime.get_runtime().enable_peer_access(index, peer)


def disable_peer_access(peer_device: DeviceLike, device: DeviceLike | None = None) -> None:
    """The reverse of `enable_peer_access`."""
    index, peer = _checked(device), _checked(peer_device)
    _runtime.get_runtime().disable_peer_access(index, peer)


def stream_priority_range() -> tuple[int, int]:
    """(least, greatest) priority of streams; (0, 0) where CANN cannot say, and without an NPU."""
    return _runtime.get_runtime().stream_priority_range() if is_available() else (0, 0)


# ----------------------------------------------------------------------------------------------------------------------- memory


def _get_allocator(device: DeviceLike | None = None) -> Any:
    """The caching allocator of a device; made with the first call, without an NPU too."""
    from ._backends.npu import allocator

    return allocator.get(_index(device))


def pin_memory(tensor: Tensor, device: DeviceLike | None = None) -> Tensor:
    """The tensor in pinned host memory: itself, or a copy."""
    return tensor.pin_memory()


def is_pinned(tensor: Tensor, device: DeviceLike | None = None) -> bool:
    """Whether a tensor lies in pinned host memory."""
    return tensor.is_pinned()


# --------------------------------------------------------------------------------------------------- operators without a kernel


def fallbacks() -> dict[str, dict[str, Any]]:
    """The operators without a kernel on NPUs that the CPU computed in this process, by full name: `calls`, `bytes_to_host`, `bytes_to_device`, and
    the `reason`. Empty without an NPU. `MINDTORCH_NPU_FALLBACK=0` in the environment forbids them: such a call is an error then."""
    from ._backends.npu import fallback

    return fallback.counts()


def reset_fallbacks() -> None:
    """Let `fallbacks` count from 0 again."""
    from ._backends.npu import fallback

    fallback.reset()


# --------------------------------------------------------------------------------------------------------------- random numbers


def manual_seed(seed: int) -> None:
    """Seed the current device's generator. Without an NPU nothing happens."""
    if is_available():
        _generator.get(_current()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices. Without an NPU nothing happens."""
    for index in range(device_count()):
        _generator.get(index).manual_seed(int(seed))


def seed() -> None:
    """Seed the current device's generator from the system's randomness. Without an NPU nothing happens."""
    if is_available():
        _generator.get(_current()).seed()


def seed_all() -> None:
    """Seed the generators of all devices alike from the system's randomness. Without an NPU nothing happens."""
    if is_available():
        manual_seed_all(_generator.get(0).seed())


def initial_seed() -> int:
    """The seed of the current device's generator. RuntimeError without an NPU."""
    return _generator.get(_checked(None)).initial_seed()


def get_rng_state(device: DeviceLike = "npu") -> Tensor:
    """The state of a device's generator: a uint8 tensor on the CPU. RuntimeError without an NPU."""
    return _generator.get(_checked(device)).get_state()


def set_rng_state(new_state: Tensor, device: DeviceLike = "npu") -> None:
    """Put a device's generator into a state that `get_rng_state` gave."""
    _generator.get(_checked(device)).set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Put all devices' generators into states, in the order of the devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # asked for anew: how many there are shows with the first question for devices
        return tuple(_generator.get(index) for index in range(device_count()))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
