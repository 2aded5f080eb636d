"""`torch.autograd.profiler`: `record_function` blocks, which nothing records here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class record_function:
    """Names a block for a profiler. There is none, so it only marks the place."""

    def __init__(self, name: str, args: str | None = None):
        self.name = name

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, function: Callable) -> Callable:
        return function


class profile:
    """PyTorch's profiler: not implemented, and it says so when it is started."""

    def __init__(self, *args: Any, enabled: bool = True, **kwargs: Any):
        self.enabled = enabled

    def __enter__(self) -> profile:
        if self.enabled:
            raise NotImplementedError("torch.autograd.profiler.profile is not implemented")
        return self

    def __exit__(self, *exc: object) -> None:
        pass
