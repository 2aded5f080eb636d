"""Random numbers of NPUs: seeds and states of each device's generator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .._api.functions import randomness as _randomness  # noqa: F401 - with it, states of generators are tensors
from .._backends.npu import generator as _generator, is_available
from .._backends.npu.runtime import device_count
from .utils import _checked, _current

if TYPE_CHECKING:
    from .._device import DeviceLike
    from .._tensor import Tensor

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


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
