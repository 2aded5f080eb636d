"""The choice of how attention is computed: by the fused operator for CPUs (FLASH_ATTENTION), or by plain ones (MATH)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from ..._state import TLS

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS",
    "SDPBackend",
    "activate_flash_attention_impl",
    "current_flash_attention_impl",
    "list_flash_attention_impls",
    "register_flash_attention_impl",
    "restore_flash_attention_impl",
    "sdpa_kernel",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(Enum):
    """The ways in which scaled dot-product attention may be computed."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


_ALL = (
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.OVERRIDEABLE,
)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The ways that are allowed at present."""
    allowed = TLS.attention_backends
    return [backend for backend in _ALL if allowed is None or backend.value in allowed]


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Allow only ``backends`` within it. Raises AssertionError for other objects."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    before = TLS.attention_backends
    TLS.attention_backends = {one.value for one in ([backends] if isinstance(backends, SDPBackend) else backends)}
    try:
        yield {}
    finally:
        TLS.attention_backends = before


@contextmanager
def _sdpa_kernel_variadic(*backends: SDPBackend) -> Iterator[None]:
    with sdpa_kernel(list(backends)):
        yield


_implementations: dict[str, Callable[..., Any]] = {}
_active: tuple[str, Any] | None = None  # the name, and the handle whose `remove` takes it back


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Offer another implementation of fused attention: `register_fn()` puts it in place, and gives an object with `remove()`, or None."""
    _implementations[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """The names that are registered; none is at first."""
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The name of the one that is active, None for the fused operator that is built in."""
    return None if _active is None else _active[0]


def activate_flash_attention_impl(impl: str) -> None:
    """Put a registered implementation in place. ValueError for an unknown name."""
    global _active
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. Available implementations: {list_flash_attention_impls()}"
        )
    restore_flash_attention_impl()
    _active = impl, _implementations[impl]()


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Take the active implementation back."""
    global _active
    handle = None if _active is None else _active[1]
    if handle is not None:
        handle.remove()
    _active = None
