"""Clipping of gradients."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def _no_grad(func: Callable[..., Any]) -> Callable[..., Any]:
    """``func`` without recording history."""

    @functools.wraps(func)
    def _no_grad_wrapper(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return func(*args, **kwargs)

    return _no_grad_wrapper


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


@_no_grad
def _get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors together, as if they were one vector. ``foreach`` does not change the value."""
    tensors = _listed(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    device = tensors[0].device
    # One launch for all of them, where the device has functions of lists.
    near = device.type == "npu" and not any(tensor.is_sparse for tensor in tensors)
    norms = (
        torch._foreach_norm(tensors, norm_type)
        if near
        else [torch.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
    )
    total = torch.linalg.vector_norm(torch.stack([norm.to(device) for norm in norms]), norm_type)
    if error_if_nonfinite and torch.logical_or(total.isnan(), total.isinf()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@_no_grad
def _clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients so that ``total_norm`` becomes at most ``max_norm``."""
    grads = [param.grad for param in _listed(parameters) if param.grad is not None]
    if not grads:
        return
    factor = torch.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
    # Multiplied even when it is 1: looking at it would wait for the device.
    if factor.device.type == "npu" and not any(grad.is_sparse for grad in grads):
        torch._foreach_mul_(grads, factor)
        return
    for grad in grads:
        grad.mul_(factor.to(grad.device))


@_no_grad
def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of ``parameters`` in place so that their norm together is at most ``max_norm``.

    Returns the norm before. Raises RuntimeError for one that is not finite if ``error_if_nonfinite``.
    """
    max_norm = float(max_norm)
    is_generator = isinstance(parameters, types.GeneratorType)
    parameters = _listed(parameters)
    if is_generator and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    grads = [param.grad for param in parameters if param.grad is not None]
    total_norm = _get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    _clip_grads_with_norm_(parameters, max_norm, total_norm, foreach)
    return total_norm


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The former name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@_no_grad
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp the gradients of ``parameters`` in place to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for param in _listed(parameters):
        if param.grad is not None:
            param.grad.clamp_(min=-clip_value, max=clip_value)


get_total_norm = _get_total_norm
clip_grads_with_norm_ = _clip_grads_with_norm_
