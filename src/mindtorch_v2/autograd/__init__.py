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
from .._autograd.saved import SavedTensor
from .._dispatch.native import unbound
from .._state import TLS
from . import forward_ad, function, functional, grad_mode, graph, profiler, variable
from .grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    is_multithreading_enabled,
    is_view_replay_enabled,
    set_multithreading_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "SavedTensor",
    "Variable",
    "_force_original_view_tracking",
    "_unsafe_preserve_version_counter",
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
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "once_differentiable",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


@unbound
def _profiler_enabled() -> bool:
    """Whether a profiler records this thread."""
    return TLS.profiler is not None


@unbound
def _disable_profiler() -> None:
    """Nothing to end."""
