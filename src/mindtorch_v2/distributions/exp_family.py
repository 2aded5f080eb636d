"""The base class of exponential families, under the name of its module in PyTorch."""

from __future__ import annotations

from .distribution import ExponentialFamily

__all__ = ["ExponentialFamily"]
