"""Functions of torch itself that only keep settings or describe objects."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import mindtorch_v2

torch = mindtorch_v2  # torch.torch is torch
_PRECISIONS = ("highest", "high", "medium")
_MODES = ("default", "warn", "error")
_settings: dict[str, Any] = {"precision": "highest", "deterministic": "default", "warn_always": False}


def typename(obj: Any) -> str:
    """The name of the type of `obj` with its module; of a tensor, the name of its tensor type."""
    if isinstance(obj, mindtorch_v2.Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    module = cls.__module__
    if module in (None, "builtins"):
        return cls.__qualname__
    return f"{module}.{cls.__qualname__}"


def _running_with_deploy() -> bool:
    """False."""
    return False


def get_float32_matmul_precision() -> str:
    """The precision that was set last; products are computed in float32 whatever it is."""
    return _settings["precision"]


def set_float32_matmul_precision(precision: str) -> None:
    """Keep the wish for a precision; products are computed in float32, which is the highest."""
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; "
            "the current setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _settings["precision"] = precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Keep the wish for deterministic algorithms; all of them are."""
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms(): argument 'mode' must be bool, not {type(mode).__name__}")
    _settings["deterministic"] = ("warn" if warn_only else "error") if mode else "default"


def are_deterministic_algorithms_enabled() -> bool:
    """Whether a program has asked for deterministic algorithms."""
    return _settings["deterministic"] != "default"


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether a program has asked for warnings only."""
    return _settings["deterministic"] == "warn"


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the mode by name (`default`, `warn`, `error`) or number.

    Raises:
        RuntimeError: for any other value.
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _settings["deterministic"] = _MODES[debug_mode]


def get_deterministic_debug_mode() -> int:
    """The mode as a number."""
    return _MODES.index(_settings["deterministic"])


def set_warn_always(b: bool) -> None:
    """Keep the wish for repeated warnings."""
    _settings["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """Whether a program has asked for repeated warnings."""
    return _settings["warn_always"]


def compiled_with_cxx11_abi() -> bool:
    """True: there is no C++ extension with an older ABI."""
    return True


def get_device_module(device: Any = None) -> ModuleType:
    """The module `torch.<device type>`.

    Raises:
        RuntimeError: if there is no such module.
    """
    kind = "cpu" if device is None else torch.device(device).type
    module = getattr(torch, kind, None)
    if not isinstance(module, ModuleType):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return module
