"""`torch.random`: the default generator."""

from __future__ import annotations

from ._api.functions.randomness import (
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def thread_safe_generator() -> None:
    """The generator of a thread that loads data: None, since the default one serves all threads."""
