"""What generated methods and operators share."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._dtype import from_numpy_dtype
from .._state import TLS
from .._tensor import Tensor, wrap
from . import dispatcher, overrides
from .dispatcher import call, call_converted, call_inplace
from .operator import Operator
from .resolver import resolve


def is_operand(value: Any) -> bool:
    """Whether an operator of Tensor takes `value`; otherwise it returns NotImplemented and Python asks the other side."""
    return isinstance(value, (Tensor, numbers.Number, np.generic)) or hasattr(type(value), "__torch_function__")


def is_tensor(value: Any) -> bool:
    """The same of an operator that takes no numbers: `x @ 3` is nothing."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def with_array(op: Operator, self: Tensor, other: Any) -> Any:
    """`self OP other` of an operator that numpy's arrays would answer for with the identity of objects: they count as tensors."""
    if not isinstance(other, np.ndarray):
        return NotImplemented
    try:
        kind = from_numpy_dtype(other.dtype)
    except TypeError:  # strings and the like
        return NotImplemented
    return call(op, (self, wrap(np.ascontiguousarray(other).reshape(other.shape), kind)))


def call_overloaded(
    overloads: tuple, args: tuple, kwargs: dict, method: bool = False, has_out: bool = False, is_factory: bool = False
) -> Any:
    """Run the overload that the arguments fit."""
    out = kwargs.pop("out", None) if has_out else None
    requires_grad = _flag(overloads, args, kwargs) if is_factory and "requires_grad" in kwargs else False
    op, bound = resolve(overloads, args, kwargs, method, out)
    return call_converted(op, bound, out, requires_grad)


def _flag(overloads: tuple, args: tuple, kwargs: dict) -> bool:
    """What a call of a factory says of `requires_grad`, which no operator has as a parameter. TypeError for what is no flag."""
    given = kwargs["requires_grad"]
    if given is None:
        given = False
    elif given is not True and given is not False:
        from .refusals import convert_bool, refusal

        flag = convert_bool(given)
        if flag is None:
            unsaid = TypeError(f"{overloads[0].name}(): argument 'requires_grad' must be bool")
            raise refusal(unsaid, overloads[0].name, overloads, args, kwargs, False, False)
        given = flag
    del kwargs["requires_grad"]
    return given


def call_former(op: Operator, args: tuple, named: dict, method: bool = False, inplace: bool = False) -> Any:
    """Run an operator with more positional arguments than it takes, of which some may be factors; see `factors_first`."""
    defaults = {param.name: param.default for param in op.params}
    kwargs = {name: value for name, value in named.items() if value is not defaults.get(name)}
    out = kwargs.pop("out", None)
    _, bound = resolve((op,), args, kwargs, method, out, inplace)
    return call_inplace(op, bound, converted=True) if inplace else call_converted(op, bound, out)


def call_method(op: Operator, args: tuple, out: Any = None, requires_grad: bool = False) -> Any:
    """`call` of a method. TypeError when it is called on the class with something else than a tensor, even where the function takes it."""
    # The tensor is not the first parameter of every operator (polygamma).
    first = args[0] if op.params[0].type == "Tensor" else args[op.tensors[0]]
    if not isinstance(first, Tensor):
        raise TypeError(
            f"descriptor '{op.name}' for 'torch._C.TensorBase' objects doesn't apply to a '{type(first).__name__}' object"
        )
    if first.__class__ is not Tensor or TLS.function_modes:
        special = overrides.find(op, args, out)
        if special is not None:
            return overrides.run(op, special, args, out, getattr(Tensor, op.name, None))
    return call(op, args, out, requires_grad, True)


def reflected(op: Operator, left: Any, right: Tensor, *rest: Any) -> Any:
    """`left OP right` where the tensor stands on the right: a number keeps its weak part in promotion."""
    if not isinstance(right, Tensor):
        raise TypeError(f"a reflected operator needs a Tensor, not {type(right).__name__}")
    if isinstance(left, Tensor):
        return call(op, (left, right, *rest))
    if isinstance(left, np.generic):
        left = left.item()
    special = overrides.find(op, (left, right, *rest), None)
    if special is not None:
        return overrides.run(op, special, (left, right, *rest), None)
    return call_converted(op, (left, right, *rest))


def record_view(op: Operator, out: Tensor, source: Tensor, *args: Any) -> Tensor:
    """Record a view that a fast path made of a tensor with history."""
    if not TLS.grad_enabled or op.record is None:
        return out
    out = op.record(out, source, *args)
    if out._node is None:  # a view of a view without history
        dispatcher.autograd.mark_view(out)
    return out
