"""The CPU: numpy arrays and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from ..._device import CPU, device
from ..._dispatch import backends
from ..._dispatch.operator import Operator
from ..common.convert import number
from .creation import empty
from .run import laid_out, run, run_into

__all__ = ["empty", "is_available", "run", "run_into"]


class _CPU:
    empty = staticmethod(empty)
    run = staticmethod(run)
    run_into = staticmethod(run_into)
    laid_out = staticmethod(laid_out)
    number = staticmethod(number)

    @staticmethod
    def place(where: device) -> device:
        return CPU

    @staticmethod
    def supports(op: Operator, specs: Sequence[Any]) -> bool:
        return "cpu" in op.kernels and all(s is None or s.dtype.np is not None for s in specs)

    @staticmethod
    def copy(target: ndarray, source: ndarray, non_blocking: bool = False) -> None:
        np.copyto(target, source, casting="unsafe")

    @staticmethod
    def to_host(payload: ndarray) -> ndarray:
        return payload


backends.register("cpu", _CPU())


def is_available() -> bool:
    """Always."""
    return True
