"""Buffers for results, `out=`: what may be one, its size, and copies of results into it."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _payload
from .._device import device
from .._pending import settled
from .._state import TLS
from .._tensor import Tensor, bump_version
from . import planned
from .backends import backend_of, empty
from .below import needs_grad
from .operator import Operator
from .return_types import return_type


def require_tensors(op: Operator, out: Any) -> None:
    """TypeError for a result that is to be written to something else than tensors."""
    several = len(op.returns) > 1
    if (several or op.composite is not None) and isinstance(out, (tuple, list)):  # a composite may give a list
        wrong = next((item for item in out if not isinstance(item, Tensor)), None)
        if wrong is not None:
            raise TypeError(
                f"expected Tensor as element {out.index(wrong)} in argument 'out', but got {type(wrong).__name__}"
            )
    elif several or not isinstance(out, Tensor):
        kind = "tuple of Tensors" if several else "Tensor"
        raise TypeError(f"{op.name}(): argument 'out' must be {kind}, not {type(out).__name__}")


def with_dtype_of(op: Operator, args: tuple, out: Any) -> tuple:
    """The arguments with the dtype of `out` where none is given. RuntimeError when a factory is given another one."""
    at = op.dtype_of_out
    given = args[at]
    if (given is None or given is op.params[at].default) and isinstance(out, Tensor):
        if op.out_refuses_input and (error := op.out_refusal(args[0]._dtype, out._dtype, op.name)) is not None:
            raise error
        return (*args[:at], out._dtype, *args[at + 1 :])
    if op.factory and isinstance(out, Tensor) and given is not out._dtype:
        raise RuntimeError(f"dtype {given.cpp} does not match dtype of out parameter ({out._dtype.cpp})")
    return args


def check_buffer(op: Operator, args: tuple, out: Tensor, where: device) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if out.device != where:
        if op.factory:
            raise RuntimeError(
                f"device type {where.type} does not match device type of out parameter ({out.device.type})"
            )
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {where} and {out.device}!"
        )
    check_gradients(op, args, out)


def check_gradients(op: Operator, args: tuple, out: Tensor) -> None:
    """RuntimeError when a buffer or an argument has a history."""
    if TLS.grad_enabled and any(needs_grad(a) for a in (out, *args)):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )


def check_dtype(op: Operator, kind: Any, out: Tensor, field: str = "") -> None:
    if kind is not out._dtype:
        error = op.out_refusal(kind, out._dtype, op.name, field)
        if error is not None:
            raise error


def resize_out(out: Tensor, shape: tuple, stride: tuple | None, op: Operator | None = None) -> None:
    """Give an `out=` buffer the shape of the result; warns, as PyTorch does, when it held something else."""
    before = out._payload.shape
    if before == shape:
        return
    if op is not None and op.out_is_counted and (held := out.numel()):
        warnings.warn(
            f"The number of elements in the out tensor of shape {list(before)} is {held} which does not match the computed number of "
            f"elements {shape[0]}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of "
            f"shape ({shape[0]},).",
            UserWarning,
            stacklevel=6 + planned.ACTIVE,
        )
    elif out._payload.size and not (op is not None and op.factory):
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(before)}, which does not match the "
            f"required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs will "
            "not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to "
            "zero elements with t.resize_(0).",
            UserWarning,
            stacklevel=6 + planned.ACTIVE,
        )
    out._payload = empty(shape, stride, out._dtype, out.device)


def write_out(op: Operator, result: Any, out: Any, field: str = "") -> Any:
    """Copy results that were computed apart into `out=` buffers."""
    if isinstance(result, tuple):
        buffers = tuple(out)
        if len(buffers) != len(result):
            raise TypeError(f"{op.name}(): argument 'out' must be tuple of {len(result)} Tensors, not {len(buffers)}")
        for number, (tensor, buffer) in enumerate(zip(result, buffers)):
            write_out(op, tensor, buffer, op.returns[number] if number < len(op.returns) else "")
        if len(op.returns) == 1:  # a list of tensors, which PyTorch gives back nothing for
            return None
        return return_type(op, list(buffers), out=True)
    if isinstance(out, (tuple, list)) and len(out) == 1:
        out = out[0]
    check_buffer(op, (result,), out, result.device)
    check_dtype(op, result._dtype, out, field)
    resize_out(out, result._payload.shape, None if op.out_is_contiguous else _payload.stride_of(result._payload), op)
    target = settled(out)
    if TLS.pipeline is not None:
        TLS.pipeline.before_write(target)
    backend_of(out.device).copy(target, settled(result))
    bump_version(out)
    return out
