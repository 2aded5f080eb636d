"""What `torch.use_deterministic_algorithms` and its kin have said: kernels on the CPU are deterministic, and still say what PyTorch's say."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ._state import enter_special, leave_special


class _Settings:
    wanted = False
    warn_only = False
    fill = True  # whether fresh memory is filled while algorithms are to be deterministic


SETTINGS = _Settings()


LISTENERS: list[Callable[[bool], None]] = []
"""What devices are told by, whose kernels have a choice."""


def want(mode: bool, only_warn: bool) -> None:
    """Ask for deterministic algorithms, or no longer."""
    if mode and not SETTINGS.wanted:
        enter_special(everywhere=True)
    elif SETTINGS.wanted and not mode:
        leave_special(everywhere=True)
    SETTINGS.wanted, SETTINGS.warn_only = mode, only_warn
    for tell in LISTENERS:
        tell(mode)


def largest(kind: Any) -> Any:
    """What fresh memory of a dtype is filled with: NaN, True or the largest number."""
    return math.nan if kind.category > 1 else True if kind.name == "bool" else np.iinfo(kind.np).max


def alert(name: str) -> None:
    """Say that PyTorch has no deterministic algorithm. RuntimeError, or a warning, while one is asked for."""
    if not SETTINGS.wanted:
        return
    words = f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True"
    if SETTINGS.warn_only:
        warnings.warn(
            f"{words}, warn_only=True)'. You can file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
            "deterministic support for this operation.",
            stacklevel=3,
        )
        return
    raise RuntimeError(
        f"{words})'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's acceptable "
        "for your application. You can also file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding "
        "deterministic support for this operation."
    )
