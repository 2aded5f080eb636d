"""`torch.utils.deterministic`: whether fresh memory is filled while deterministic algorithms are asked for."""

from __future__ import annotations

import sys
import types

from .._determinism import SETTINGS


class _Settings(types.ModuleType):
    """The module's class, which checks what is assigned."""

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` and its kin are filled when `torch.use_deterministic_algorithms(True)` was called."""
        return SETTINGS.fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        SETTINGS.fill = mode


sys.modules[__spec__.name].__class__ = _Settings
