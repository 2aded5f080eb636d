"""`torch.autograd.function`."""

from __future__ import annotations

from .._autograd.function import Function, FunctionCtx, once_differentiable

NestedIOFunction = Function
InplaceFunction = Function

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]
