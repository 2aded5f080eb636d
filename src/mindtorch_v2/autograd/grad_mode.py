"""`torch.autograd.grad_mode`."""

from __future__ import annotations

from .._autograd.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
