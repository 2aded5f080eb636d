"""Settings of the process: threads, precision, determinism, warnings. Most are kept for programs that ask, and change nothing here."""

from __future__ import annotations

import warnings
from typing import Any

from ... import _dtype
from ..._determinism import SETTINGS, want
from ..._dispatch.native import extension, unbound
from ..._imports import outside
from ..._threads import get_num_threads as _used_threads, set_count
from ..._warnings import always, set_always, warn_once

_PRECISIONS = ("highest", "high", "medium")
_MODES = ("default", "warn", "error")

_settings: dict[str, Any] = {
    "matmul_precision": "highest",
    "interop_threads": 1,
}


def set_default_tensor_type(kind: Any) -> None:
    """Make the dtype of a legacy floating type the default one."""
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    from .types import as_dtype

    _dtype.set_default_dtype(as_dtype(kind))


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Refuse operators that PyTorch has no deterministic algorithm for; those of the CPU are deterministic anyway, and CANN is asked for such. TypeError for a mode that is no bool."""
    if not isinstance(mode, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
        )
    if not isinstance(warn_only, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument 'warn_only' must be bool, not {type(warn_only).__name__}"
        )
    want(mode, bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for."""
    return SETTINGS.wanted


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether the wish was to warn only."""
    return SETTINGS.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by a mode's name (`default`, `warn`, `error`) or number. TypeError or RuntimeError for others."""
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """The mode as a number: 0 default, 1 warn, 2 error."""
    if not SETTINGS.wanted:
        return 0
    return 1 if SETTINGS.warn_only else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Record the precision; CPU products are always in full float32. A warning for an unknown one, which changes nothing."""
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _settings["matmul_precision"] = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` recorded."""
    return _settings["matmul_precision"]


@unbound
def set_flush_denormal(mode: bool) -> bool:
    """Whether denormals can be flushed: numpy has no such switch, so False."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


@unbound
def get_default_dtype() -> _dtype.dtype:
    """The floating dtype of new tensors for which none is given."""
    return _dtype.get_default_dtype()


@unbound
def get_num_threads() -> int:
    """The number of threads of loops and matrix products: as set, else that of the environment or of the machine."""
    return _used_threads()


@unbound
def set_num_threads(count: int) -> None:
    """Use at most `count` threads in loops and matrix products; those of scipy, and all without the extension, where threadpoolctl is installed. RuntimeError below 1."""
    if not isinstance(count, int):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    set_count(int(count))
    if extension is not None:
        extension.use_threads(int(count), True)
    try:
        threadpoolctl = outside("threadpoolctl")
    except ImportError:
        return
    threadpoolctl.threadpool_limits(count)


@unbound
def get_num_interop_threads() -> int:
    """As set, 1 by default."""
    return _settings["interop_threads"]


@unbound
def set_num_interop_threads(count: int) -> None:
    """Record the number; there is no inter-operator parallelism. RuntimeError below 1."""
    if not isinstance(count, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _settings["interop_threads"] = int(count)


def set_warn_always(mode: bool) -> None:
    """Whether warnings that are given once are given each time."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(mode).__name__}")
    set_always(bool(mode))


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` recorded."""
    return always()
