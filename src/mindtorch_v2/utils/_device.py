"""`set_device` and `DeviceContext`: where a function or a block puts the tensors that it makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _device
from .._device import decorate


def set_device(device: Any) -> Callable[[Callable], Callable]:
    """A decorator: what the function makes is on `device` where nothing else is said."""
    chosen = _device.placed(device)
    return lambda function: decorate(function, lambda: chosen)


class DeviceContext:
    """A block whose new tensors are on `device`; `with device:` says the same."""

    def __init__(self, device: Any) -> None:
        self.device = _device.placed(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.device.__exit__(*exc)


def __getattr__(name: str) -> Any:
    if name == "CURRENT_DEVICE":  # what is chosen in this thread, or None
        return _device.chosen_device()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
