"""`torch.backends.cpu`."""

from __future__ import annotations

from .internals import _get_cpu_capability

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The vectors of this processor: DEFAULT, AVX2 or AVX512."""
    return _get_cpu_capability()
