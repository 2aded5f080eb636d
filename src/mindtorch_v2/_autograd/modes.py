"""Grad modes: what is recorded on the tape, as context managers and decorators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _state
from .._device import decorate
from .._dispatch.native import count_modes, unbound
from .._state import TLS


class _Mode:
    """A context manager that also decorates functions and generators: each call enters a fresh one."""

    def _clone(self) -> _Mode:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def __call__(self, function: Callable) -> Callable:
        if isinstance(function, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To "
                "preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
        return decorate(function, self._clone)


class set_grad_enabled(_Mode):
    """Turn recording on or off: at once as a function, and until its end as a context manager."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.before = TLS.grad_enabled
        self.mode = mode
        TLS.grad_enabled = self.mode

    def __call__(self, function: Callable) -> Callable:
        TLS.grad_enabled = self.before
        return super().__call__(function)

    def _clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        TLS.grad_enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        TLS.grad_enabled = self.before


class _FixedMode(_Mode):
    mode: bool

    def __new__(cls, orig_func: Callable | None = None) -> Any:
        made = object.__new__(cls)
        return made if orig_func is None else made(orig_func)

    def __enter__(self) -> None:
        self.before = TLS.grad_enabled
        TLS.grad_enabled = self.mode

    def __exit__(self, *exc: object) -> None:
        TLS.grad_enabled = self.before


class no_grad(_FixedMode):
    """Operations inside are not recorded."""

    mode = False


class enable_grad(_FixedMode):
    """Operations inside are recorded, also within `no_grad`."""

    mode = True


class inference_mode(_Mode):
    """No recording, and results that never take part in it: `inference_mode()`, or `inference_mode(False)` to lift it."""

    def __new__(cls, mode: Any = True) -> Any:
        if callable(mode) and not isinstance(mode, bool):
            return cls()(mode)
        return object.__new__(cls)

    def __init__(self, mode: bool = True):
        self.mode = bool(mode)

    def _clone(self) -> inference_mode:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.before = (TLS.grad_enabled, TLS.inference)
        TLS.grad_enabled, TLS.inference = (False, True) if self.mode else (True, False)
        if self.mode:
            count_modes(inference=1)

    def __exit__(self, *exc: object) -> None:
        TLS.grad_enabled, TLS.inference = self.before
        if self.mode:
            count_modes(inference=-1)


@unbound
def is_grad_enabled() -> bool:
    """Whether this thread records operations."""
    return TLS.grad_enabled


@unbound
def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside `inference_mode`."""
    return TLS.inference


def _check_flags(enabled: Any, check_nan: Any) -> None:
    if enabled.__class__ is not bool or check_nan.__class__ is not bool:
        from .._dispatch.refusals import check_bool

        check_bool("set_anomaly_enabled", "enabled", enabled, 1)
        check_bool("set_anomaly_enabled", "check_nan", check_nan, 2)


class set_detect_anomaly:
    """Check gradients for NaN, with the failing function named: as a function, and as a context manager."""

    def __init__(self, mode: bool, check_nan: bool = True):
        _check_flags(mode, check_nan)
        self.before = TLS.anomaly
        TLS.anomaly = bool(mode) and ("nan" if check_nan else True)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        TLS.anomaly = self.before


class detect_anomaly(set_detect_anomaly):
    """`set_detect_anomaly(True)` for a block."""

    def __init__(self, check_nan: bool = True):
        super().__init__(True, check_nan)


@unbound
def is_anomaly_enabled() -> bool:
    """Whether this thread detects anomalies."""
    return bool(TLS.anomaly)


@unbound
def is_anomaly_check_nan_enabled() -> bool:
    """Whether this thread, where it detects anomalies, looks for NaN."""
    return TLS.anomaly is not True


@unbound
def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Detect anomalies in this thread from now on, or no more."""
    _check_flags(enabled, check_nan)
    TLS.anomaly = bool(enabled) and ("nan" if check_nan else True)


class saved_tensors_hooks:
    """Inside, nodes save `pack_hook(tensor)` in place of tensors, and call `unpack_hook` on it when they need the tensor."""

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        self.hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        if TLS.hooks_refusal is not None:
            raise RuntimeError(TLS.hooks_refusal)
        TLS.saved_tensor_hooks = (*TLS.saved_tensor_hooks, self.hooks)
        _state.enter_special()

    def __exit__(self, *exc: object) -> None:
        TLS.saved_tensor_hooks = TLS.saved_tensor_hooks[:-1]
        _state.leave_special()


class disable_saved_tensors_hooks(_Mode):
    """Inside, entering saved-tensor hooks raises a RuntimeError with the given message."""

    def __init__(self, error_message: str):
        self.message = error_message

    def _clone(self) -> disable_saved_tensors_hooks:
        return disable_saved_tensors_hooks(self.message)

    def __enter__(self) -> None:
        if TLS.saved_tensor_hooks:
            raise RuntimeError(self.message)
        self.before = TLS.hooks_refusal
        TLS.hooks_refusal = self.message

    def __exit__(self, *exc: object) -> None:
        TLS.hooks_refusal = self.before
