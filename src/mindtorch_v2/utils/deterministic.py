"""`torch.utils.deterministic`: whether fresh memory is filled while deterministic algorithms are asked for."""

from __future__ import annotations

import sys
import types


class _Settings(types.ModuleType):
    """The module's class, which checks what is assigned."""

    _fill = True

    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `torch.empty` and its kin are filled when `torch.use_deterministic_algorithms(True)` was called."""
        return self._fill

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        self._fill = mode


sys.modules[__spec__.name].__class__ = _Settings
