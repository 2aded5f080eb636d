"""`torch.func`: function transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd import api as _api
from .._tensor import Tensor
from .vmap import vmap

__all__ = ["functional_call", "grad", "grad_and_value", "vmap"]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers."""
    from ..nn.utils.stateless import _functional_call as call

    if isinstance(parameter_and_buffer_dicts, (list, tuple)):
        merged: dict = {}
        for part in parameter_and_buffer_dicts:
            merged.update(part)
        parameter_and_buffer_dicts = merged
    return call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def grad_and_value(func: Callable, argnums: int | tuple = 0, has_aux: bool = False) -> Callable:
    """A function that gives (gradient, value) of a scalar function with respect to the arguments of the given numbers."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        single = isinstance(argnums, int)
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        arguments = list(args)
        for number in numbers:
            arguments[number] = _track(arguments[number])
        output = func(*arguments, **kwargs)
        value, aux = output if has_aux else (output, None)
        leaves = [leaf for number in numbers for leaf in _leaves(arguments[number])]
        found = iter(_api.grad(value, leaves, create_graph=True, allow_unused=True, materialize_grads=True))
        gradients = tuple(_like(arguments[number], found) for number in numbers)
        result = gradients[0] if single else gradients
        return (result, (value, aux)) if has_aux else (result, value)

    return wrapper


def grad(func: Callable, argnums: int | tuple = 0, has_aux: bool = False) -> Callable:
    """A function that gives the gradient of a scalar function with respect to the arguments of the given numbers."""
    both = grad_and_value(func, argnums, has_aux)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def _track(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
    if isinstance(value, dict):
        return {key: _track(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_track(item) for item in value)
    return value


def _leaves(value: Any) -> list:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _leaves(item)]
    return []


def _like(value: Any, found: Any) -> Any:
    if isinstance(value, Tensor):
        return next(found)
    if isinstance(value, dict):
        return {key: _like(item, found) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_like(item, found) for item in value)
    return value
