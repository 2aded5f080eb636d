"""`loss_parallel`: cross entropy of logits whose classes are in parts, without gathering them.

Note [Classes in parts]
Inside `loss_parallel` the axes of `log_softmax` and of the likelihood have one more: that of the classes. A rank's logarithms take the maximum and the sum of exponentials of all ranks, two numbers
for each example; its losses are those of the targets that it has, terms of a sum; and its gradients are those of its classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import locals as here

__all__ = ["loss_parallel"]


@contextmanager
def loss_parallel() -> Iterator[Any]:
    """Inside, cross entropy of logits that are Shard(1), or Shard(-1) of two dimensions, is computed on the parts, and so is its backward pass."""
    before = getattr(here.classes, "on", False)
    here.classes.on = True
    try:
        yield
    finally:
        here.classes.on = before
