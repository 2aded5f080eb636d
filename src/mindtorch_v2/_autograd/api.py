"""`torch.autograd.backward` and `grad`: argument checks before the engine runs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .._dispatch import ops, overrides
from .._state import TLS
from .._tensor import Size, Tensor
from .._warnings import warn_once
from .engine import root_edge, run_backward
from .node import GradientEdge, requires_grad


def _tuple(value: Any) -> tuple:
    return (value,) if isinstance(value, (Tensor, GradientEdge)) or value is None else tuple(value)


def _edges_or_tensors(values: tuple, what: str) -> tuple:
    for value in values:
        if not isinstance(value, (Tensor, GradientEdge)):
            raise RuntimeError(f"all {what} have to be Tensors or GradientEdges, but got {type(value).__name__}")
    return values


def _cotangents(outputs: tuple, given: Any) -> tuple:
    if given is None:
        given = (None,) * len(outputs)
    else:
        given = _tuple(given)
    made = []
    for position, (out, grad) in enumerate(zip(outputs, given)):
        if out.__class__ is GradientEdge:
            shape = tuple(out.node.outputs[out.output_nr][0])
            if grad is None and math.prod(shape) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if grad is not None and tuple(grad._payload.shape) != shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{position}] has a shape of {grad.shape} and output[{position}] has a shape of "
                    f"{Size(shape)}."
                )
            made.append(_ones_for(out) if grad is None else grad)
            continue
        if grad is None:
            if not requires_grad(out):
                made.append(None)
                continue
            if out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            if not (out._dtype.is_floating_point):
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out._dtype}")
            grad = ops.ones_like(out)
        elif not isinstance(grad, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        elif grad._payload.shape != out._payload.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{position}] has a shape of {grad.shape} and output[{position}] has a shape of "
                f"{out.shape}."
            )
        elif grad.device.type != out.device.type:
            raise RuntimeError(
                f"invalid gradient at index {position} - expected device {out.device} but got {grad.device}"
            )
        elif (out._dtype.is_complex or grad._dtype.is_complex) and grad._dtype is not out._dtype:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output["
                f"{position}] has a dtype of {grad._dtype} and output[{position}] has a dtype of {out._dtype}."
            )
        made.append(grad)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return tuple(made)


def _check_flag(value: Any) -> None:
    """TypeError for what stands for no truth value where PyTorch wants one as a whole number."""
    if isinstance(value, Tensor):
        value.__index__()
    elif not hasattr(value, "__index__"):
        raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")


def _ones_for(edge: GradientEdge) -> Tensor:
    shape, kind, where = edge.node.outputs[edge.output_nr]
    return ops.ones(shape, dtype=kind, device=where)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves that they were computed from.

    grad_tensors: cotangents, one per tensor; None for tensors of one element. inputs: the leaves to reach, all by default.
    RuntimeError when a tensor has no history, or the tape was freed.
    """
    if TLS.transforms:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead or call "
            "backward() outside of functorch transforms."
        )
    if grad_tensors is not None and grad_variables is not None:
        raise RuntimeError(
            "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
        )
    outputs = _tuple(tensors)
    if create_graph:
        warn_once(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a "
            "memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure "
            "to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak.",
            stacklevel=3,
        )
    if inputs is not None:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        _edges_or_tensors(inputs, "inputs")
    grads = _cotangents(outputs, grad_tensors if grad_tensors is not None else grad_variables)
    _check_history(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    for flag in (keep, create_graph):
        if flag.__class__ is not bool:
            _check_flag(flag)
    run_backward(outputs, grads, keep, create_graph, inputs=inputs, accumulate=True)


def _check_history(outputs: tuple) -> None:
    for position, out in enumerate(outputs):
        if root_edge(out) is None:
            raise RuntimeError(f"element {position} of tensors does not require grad and does not have a grad_fn")


_OPTIONS = ("grad_outputs", "retain_graph", "create_graph", "allow_unused", "is_grads_batched", "materialize_grads")


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; nothing is accumulated.

    only_inputs: of old, ignored with a FutureWarning where it is False.
    allow_unused: give None for an input that was not used (RuntimeError otherwise); materialize_grads: give zeros.
    """
    taking_over = overrides.find_for(
        (*_tuple(outputs), *_tuple(inputs), *(() if grad_outputs is None else _tuple(grad_outputs)))
    )
    if taking_over is not None:
        given = (grad_outputs, retain_graph, create_graph, allow_unused, is_grads_batched, materialize_grads)
        named = {n: v for n, v in zip(_OPTIONS, given) if v is not None and v is not False}
        return overrides.run_function(grad, taking_over, (outputs, inputs), named)
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if is_grads_batched:
        return _batched(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
    outs = _tuple(outputs)
    wanted = _tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = _cotangents(outs, grad_outputs)
    _check_history(outs)
    edges = [t.__class__ is GradientEdge for t in _edges_or_tensors(wanted, "inputs")]
    for tensor, is_edge in zip(wanted, edges):
        if not is_edge and not requires_grad(tensor):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    keep = create_graph if retain_graph is None else retain_graph
    for flag in (keep, create_graph, allow_unused):
        if flag.__class__ is not bool:
            _check_flag(flag)
    found = run_backward(outs, grads, keep, create_graph, wanted, allow_unused, accumulate=False)
    if materialize_grads:
        if any(is_edge and g is None for is_edge, g in zip(edges, found)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        found = tuple(_zeros_for(t, create_graph) if g is None else g for g, t in zip(found, wanted))
    return found


def _zeros_for(tensor: Tensor, create_graph: bool) -> Tensor:
    zeros = ops.zeros_like(tensor)
    return zeros.requires_grad_() if create_graph else zeros


def _batched(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool,
    materialize_grads: bool,
) -> tuple:
    """One pass per row of the batched cotangents, stacked."""
    cotangents = _tuple(grad_outputs)
    if any(cotangent is None for cotangent in cotangents):
        _cotangents(_tuple(outputs), grad_outputs)
    for position, (out, cotangent) in enumerate(zip(_tuple(outputs), cotangents)):
        if cotangent is not None and tuple(cotangent._payload.shape[1:]) != tuple(out._payload.shape):
            raise RuntimeError(
                f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                f"remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: grad_output["
                f"{position}] has a shape of {cotangent.shape} and output[{position}] has a shape of {out.shape}. If you only want some tensors "
                "in `grad_output` to be considered batched, consider using vmap."
            )
    count = cotangents[0].shape[0]
    rows: list[Sequence] = []
    for row in range(count):
        last = row == count - 1
        keep = True if not last else (create_graph if retain_graph is None else retain_graph)
        rows.append(
            grad(
                outputs,
                inputs,
                tuple(None if c is None else c[row] for c in cotangents),
                keep,
                create_graph,
                allow_unused=allow_unused,
                materialize_grads=materialize_grads,
            )
        )
    return tuple(None if column[0] is None else ops.stack(list(column)) for column in zip(*rows))
