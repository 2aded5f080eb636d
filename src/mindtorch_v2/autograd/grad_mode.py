"""`torch.autograd.grad_mode`: modes of recording, and switches of PyTorch's engine that change nothing here."""

from __future__ import annotations

from typing import Any

from .._autograd.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from .._tensor import Tensor, counter

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class _Switch:
    """A setting that is remembered: turned at once as a function, and until its end as a context manager."""

    state: dict[str, bool]

    def __init__(self, mode: bool):
        self.before = self.state["on"]
        self.mode = mode
        self.state["on"] = bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self.state["on"] = self.before

    def clone(self) -> Any:
        """A switch to the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):
    """Whether a backward pass may use threads; it uses none here, whatever this says."""

    state = {"on": True}


class _force_original_view_tracking(_Switch):
    """Whether views are replayed; the setting alone."""

    state = {"on": False}


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` said last."""
    return set_multithreading_enabled.state["on"]


def is_view_replay_enabled() -> bool:
    """What `_force_original_view_tracking` said last."""
    return _force_original_view_tracking.state["on"]


class _unsafe_preserve_version_counter:
    """Changes in place inside are not counted."""

    def __init__(self, tensors: Any):
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.versions = tuple(counter(tensor)._v for tensor in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        for tensor, version in zip(self.tensors, self.versions):
            counter(tensor)._v = version
