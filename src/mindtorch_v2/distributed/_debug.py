"""How much is said: PyTorch's levels, which here only remember what they were set to."""

from __future__ import annotations

import enum
import os


class DebugLevel(enum.Enum):
    """How much is said."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """The level; TORCH_DISTRIBUTED_DEBUG unless it was set."""
    if _level is None:
        set_debug_level_from_env()
    assert _level is not None
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Set the level."""
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Set the level to what TORCH_DISTRIBUTED_DEBUG says. RuntimeError for a word that is no level."""
    word = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if word not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[word])
