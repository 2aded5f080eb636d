"""The private name under which programs written for older versions of PyTorch find what `torch.library` offers."""

from __future__ import annotations

from .library import custom_op, impl_abstract

__all__ = ["custom_op", "impl_abstract"]
