"""`torch.autograd`: gradients, custom functions, and checks of derivatives."""

from __future__ import annotations

from .._autograd.api import backward, grad
from .._autograd.function import Function, FunctionCtx, once_differentiable
from .._autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from .._tensor import Tensor as Variable
from . import forward_ad, function, functional, grad_mode, graph, profiler, variable
from .gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "variable",
]


def _profiler_enabled() -> bool:
    """False: nothing is recorded."""
    return False


def _disable_profiler() -> None:
    """Nothing to end."""
