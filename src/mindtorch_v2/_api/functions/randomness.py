"""`manual_seed` and the state of the default generator."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._dtype import DTYPES
from ..._random import generator as _generator
from ..._random.generator import Generator, default_generator
from ..._tensor import Tensor, wrap


def _to_tensor(state: np.ndarray) -> Tensor:
    return wrap(state, DTYPES["uint8"])


def _to_array(state: Any) -> np.ndarray:
    if not isinstance(state, Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if state._dtype is not DTYPES["uint8"] or state.device.type != "cpu":
        raise TypeError("RNG state must be a torch.ByteTensor")
    return state.numpy()


_generator.Hooks.wrap = staticmethod(_to_tensor)
_generator.Hooks.unwrap = staticmethod(_to_array)


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of the CPU and of NPUs; equal seeds give equal numbers, on the CPU PyTorch's. Returns the CPU's."""
    made = default_generator.manual_seed(int(seed))
    _seed_accelerators(int(seed))
    return made


def seed() -> int:
    """Seed the default generators from the system's randomness; returns the seed."""
    made = default_generator.seed()
    _seed_accelerators(made)
    return made


def _seed_accelerators(seed: int) -> None:
    # Generators that are made later begin with the CPU's seed.
    loaded = sys.modules.get("mindtorch_v2._backends.npu.generator")
    if loaded is not None:
        loaded.seed_all(seed)


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that `get_rng_state` gave (here or in PyTorch)."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **kwargs: Any) -> Iterator[None]:
    """Leave the default generator after the block as it was before."""
    if not enabled:
        yield
        return
    before = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(before)


__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
