"""`torch.autograd.variable`: the former name of Tensor."""

from __future__ import annotations

from .._tensor import Tensor as Variable

__all__ = ["Variable"]
