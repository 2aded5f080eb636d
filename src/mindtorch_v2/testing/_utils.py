"""`torch.testing._utils`: what PyTorch's operator database uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def wrapper_set_seed(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call `op` under a fixed seed, and leave the default generator as it was."""
    from .._api.functions.randomness import fork_rng, manual_seed

    with fork_rng():
        manual_seed(42)
        return op(*args, **kwargs)
