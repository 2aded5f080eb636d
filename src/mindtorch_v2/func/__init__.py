"""`torch.func`: function transforms."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from . import batched as _batched, rules as _rules
from .gradients import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .vmap import chunk_vmap as chunk_vmap, vmap

_batched.run = _rules.run
_generated = importlib.import_module("mindtorch_v2._generated.vmap")  # which stands above them
_rules.RULES.update(_generated.RULES)
_rules.KINDS.update(_generated.KINDS)

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, given in one dict or in several without a common name.

    ValueError for a name that is in two dicts, and for what is no dict.
    """
    from ..nn.utils.stateless import _functional_call as call

    if isinstance(parameter_and_buffer_dicts, (list, tuple)):
        if not all(isinstance(part, dict) for part in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        counts = Counter(name for part in parameter_and_buffer_dicts for name in part)
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        parameter_and_buffer_dicts = {
            name: value for part in parameter_and_buffer_dicts for name, value in part.items()
        }
    elif not isinstance(parameter_and_buffer_dicts, dict):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """The function itself: nothing here is traced that would have to be free of in-place changes."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their out-of-place "
            "equivalents.\n     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be replaced with "
            "their non-aliasing counterparts, {view}_copy.\n"
        )
    return func


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of modules of one class, stacked by name: for `vmap` over `functional_call`."""
    import mindtorch_v2 as torch

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(states: list, trained: bool) -> dict[str, Any]:
        made = {}
        for name, first in states[0].items():
            joined = torch.stack([state[name] for state in states])
            if trained and all(state[name].is_leaf for state in states):
                joined = joined.detach().requires_grad_(first.requires_grad)
            made[name] = joined
        return made

    return (
        stacked([dict(m.named_parameters()) for m in models], trained=True),
        stacked([dict(m.named_buffers()) for m in models], trained=False),
    )


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch norm of a module keep no running statistics, in place: `vmap` cannot write to them. Returns the module."""
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """What a tensor of an example holds: the whole batch, and with `recurse` that of all levels of `vmap`. For looking at, not for computing with."""
    if not isinstance(tensor, _batched.BatchedTensor):
        return tensor
    return _batched.innermost(tensor) if recurse else tensor._value
