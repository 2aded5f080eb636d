"""`torch.autograd.variable`: the former name of Tensor, and what else stood there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.engine import queue_callback, run_backward
from .._dispatch import ops
from .._state import TLS
from .._tensor import Tensor, alias_as

__all__ = ["Variable"]


class ImperativeEngine:
    """The engine of the backward pass, as far as programs ask for it."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Call a function when the backward pass that is running has come to its end. RuntimeError when none is running."""
        queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether reentrant checkpoints can work in the backward pass that is running."""
        return TLS.whole_backward

    run_backward = staticmethod(run_backward)


class VariableMeta(type):
    """Lets every tensor be a Variable."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=False)`: a tensor that shares the memory of another one. Every tensor is an instance.

    TypeError when it is given something else, RuntimeError when a tensor of integers should require a gradient.
    """

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if data is None:
            return ops.empty((0,))
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and data._dtype.category < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return alias_as(Tensor, data, requires_grad)
