"""The general path of a call: overrides, conversion, device, rule, kernel, version, history.

Generated fast paths shorten it for plain CPU tensors; what they leave comes here.
"""

from __future__ import annotations

import math
from typing import Any

from numpy import ndarray

from .. import _payload
from .._above import above
from .._backends.common import view
from .._determinism import SETTINGS, largest
from .._device import CPU, chosen_device, device
from .._dtype import CATEGORY_FLOATING
from .._pending import current, settled
from .._rules.promotion import can_cast
from .._rules.spec import Spec, ViewSpec
from .._state import DISPATCHING, PROFILED, SPARSE, TLS
from .._tensor import Tensor, belongs_to_inference, bump_version, wrap, wrap_view
from . import below, ops, overrides, sparse
from .backends import backend_of, empty
from .buffers import check_buffer, check_dtype, check_gradients, require_tensors, resize_out, with_dtype_of, write_out
from .convert import convert
from .operator import Operator
from .out_dtypes import requires
from .overlap import check_distinct, check_overlap
from .return_types import return_type

QUICK: list[Any] = []
"""What a backend knows of calls that it has run before: (operator, arguments) -> (the spec, the result's payload), or None."""

# Set by the autograd floor, which stands above this one.
autograd: Any = None


def call(op: Operator, args: tuple, out: Any = None, requires_grad: bool = False, method: bool = False) -> Any:
    """Run the functional or `out=` form of an operator on arguments in schema order."""
    special = overrides.find(op, args, out)
    if special is not None:
        return overrides.run(op, special, args, out)
    args = convert(op, args, method or op.is_inplace)
    if op.is_inplace:
        return call_inplace(op, args, converted=True)
    result = (_profiled if PROFILED else _call)(op, args, out)
    if op.pin_at is not None and args[op.pin_at] and out is None:
        result = _pinned(result)
    return _finish(op, result, requires_grad)


def call_converted(op: Operator, args: tuple, out: Any = None, requires_grad: bool = False) -> Any:
    """`call` after overload resolution, which has converted the arguments already."""
    special = overrides.find(op, args, out)
    if special is not None:
        return overrides.run(op, special, args, out)
    if op.is_inplace:
        return call_inplace(op, args, converted=True)
    result = (_profiled if PROFILED else _call)(op, args, out)
    if op.pin_at is not None and args[op.pin_at] and out is None:
        result = _pinned(result)
    return _finish(op, result, requires_grad)


def _profiled(op: Operator, args: tuple, out: Any) -> Any:
    profiler = TLS.profiler
    return _call(op, args, out) if profiler is None else profiler.call(_call, op, args, out)


def _finish(op: Operator, result: Any, requires_grad: bool) -> Any:
    if SETTINGS.wanted and SETTINGS.fill and "uninitialized" in op.tags:
        _fill(result)
    if requires_grad:
        if requires_grad is not True:
            from .refusals import check_bool

            check_bool(op.name, "requires_grad", requires_grad)
        if result._dtype.category < CATEGORY_FLOATING:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        result.requires_grad_(True)
    return result


def _pinned(made: Tensor) -> Tensor:
    """What a factory made, in pinned memory. RuntimeError for a tensor that is not on the CPU."""
    if made.device.type != "cpu":
        raise RuntimeError("Only dense CPU tensors can be pinned")
    return wrap(above("pin_array")(settled(made)), made._dtype)


def _fill(made: Tensor) -> None:
    """Give fresh memory elements that are seen: NaN, or the largest number."""
    if made.device.type != "meta":
        with autograd.no_grad():
            ops.fill_(made, largest(made._dtype))


def _call(op: Operator, args: tuple, out: Any) -> Any:
    if out is not None:
        require_tensors(op, out)
    if TLS.autocast is not None and out is None:  # as in PyTorch, neither out= nor in-place forms are cast
        args = TLS.autocast.cast(op, args)
    if op.composite is not None:
        if SPARSE and op.sparse is not None and (kernel := sparse.find(op, args, out)) is not None:
            return sparse.run(op, kernel, args, out)
        if op.factory and isinstance(out, Tensor):
            args = _beside(op, args, out)
        if out is not None and op.given_out:
            return op.composite_function()(*args, out=out)
        result = op.composite_function()(*args)
        return result if out is None else write_out(op, result, out)
    if op.missing is not None:
        raise NotImplementedError(f"{op.full_name} is not implemented: {op.missing}")
    if TLS.tangents is not None:
        if SPARSE or op.is_sparse_maker:
            sparse.refuse_tangents(op, args, out)
        result = autograd.run_forward(op, args, out)
        if result is not NotImplemented:
            return result
    if (DISPATCHING or TLS.dispatch_modes) and (special := below.find(op, args)) is not None:
        return below.run(op, special, args, out)
    if (SPARSE or op.is_sparse_maker) and (kernel := sparse.find(op, args, out)) is not None:
        return sparse.run(op, kernel, args, out)
    observer = TLS.observer
    if observer is not None:
        args, out = observer.arguments(op, args), observer.buffer(out)
    if out is not None and op.dtype_of_out is not None:
        args = with_dtype_of(op, args, out)
    if (
        QUICK
        and out is None
        and observer is None
        and TLS.pipeline is None
        and (found := QUICK[0](op, args)) is not None
    ):
        return _fresh(op, found[0], args, found[1])
    where = device_of(op, args, out)
    try:
        spec = op.meta(*args)
    except RuntimeError:
        if isinstance(out, Tensor) and "pointwise" in op.tags:  # what PyTorch looks at first
            check_overlap(op, out, args)
        raise
    if observer is not None:
        return _observed(observer, op, spec, args, out, where)
    if out is not None:
        return _call_out(op, spec, args, out, where)
    if op.is_view:
        return _views(op, spec, args)
    recorder = TLS.pipeline
    if recorder is not None:
        if recorder.defers(op, spec, args, where):
            return _fresh(op, spec, args, recorder.record(op, spec, args, where))
        return _fresh(op, spec, args, recorder.run_now(op, spec, args, where))
    return _fresh(op, spec, args, backend_of(where).run(op, spec, args, where))


def _observed(observer: Any, op: Operator, spec: Any, args: tuple, out: Any, where: device) -> Any:
    """The second half of `_call` while an observer watches."""
    if out is not None:
        result = _call_out(op, spec, args, out, where)
    elif op.is_view:
        result = _views(op, spec, args)
    else:
        result = _fresh(op, spec, args, observer.run(op, spec, args, where))
    observer.ran(op, args, result, out)
    return result


def _fresh(op: Operator, spec: Any, args: tuple, payloads: Any) -> Any:
    """Tensors of fresh payloads, with their history."""
    if spec.__class__ is Spec:
        result: Any = wrap(payloads, spec.dtype)
    else:
        result = _wrap_many(op, spec, payloads)
    if TLS.inference:
        _mark_inference(result)
    if op.record is not None and TLS.grad_enabled:
        return op.record(result, *args)
    return result


def _wrap_many(op: Operator, spec: Any, payloads: Any) -> Any:
    made = [None if s is None else wrap(p, s.dtype) for s, p in zip(spec, payloads)]
    if spec.__class__ is list:
        return tuple(made)
    return return_type(op, made)


def _mark_inference(result: Any) -> None:
    for tensor in result if isinstance(result, tuple) else (result,):
        if tensor is not None:
            tensor._inference = True


# Views


def _views(op: Operator, spec: Any, args: tuple) -> Any:
    source = args[0]
    if spec.__class__ is ViewSpec:
        result = wrap_view(view.apply(current(source), spec), source)
        if spec.dtype is not None:
            result._dtype = spec.dtype
        if "detach" in op.tags:
            result._base = None
            result._shares = source
            if belongs_to_inference(source):
                result._inference = True
            return result
    elif spec.__class__ is Spec:  # a reshape that no view can be
        recorder = TLS.pipeline
        if recorder is not None and TLS.observer is None:
            result = wrap(recorder.record(op, spec, args, source.device, "copy"), source._dtype)
        else:
            result = wrap(reshaped_copy(source, tuple(spec.shape)), source._dtype)
        if TLS.inference:
            _mark_inference(result)
        return result if op.record is None or not TLS.grad_enabled else op.record(result, *args)
    else:
        views = []
        for one in spec:
            made = wrap_view(view.apply(current(source), one), source)
            made._multi_view = True
            views.append(made)
        result = tuple(views)
    if belongs_to_inference(source):  # as of what it is a view, whatever the mode
        _mark_inference(result)
    elif TLS.inference:
        autograd.mark_inference_views(result if result.__class__ is tuple else (result,), source)
    if op.record is None or not TLS.grad_enabled:
        return result
    result = op.record(result, *args)
    if spec.__class__ is ViewSpec:
        if result._node is None:
            autograd.mark_view(result)
    else:
        for one in result:
            if one._node is None:
                autograd.mark_view(one)
    return result


def reshaped_copy(source: Tensor, shape: tuple) -> Any:
    """A contiguous copy of a payload in another shape."""
    data = settled(source)
    copied = empty(data.shape, None, source._dtype, source.device)
    if data.size:
        backend_of(source.device).copy(copied, data)
    return _payload.as_strided(copied, shape, _payload.contiguous_strides(shape), 0)


# Devices


def device_of(op: Operator, args: tuple, out: Any = None) -> device:
    """The one device of the arguments; factories follow `device=`, then their tensor, then the thread's default.

    RuntimeError when tensors stand on several devices, 0-dim CPU tensors beside others excepted.
    """
    found: Tensor | None = None
    for index in op.tensors:
        value = args[index]
        if value.__class__ is list:
            indices = op.params[index].elements_optional  # of `index` and its kin, which may stand on the CPU
            for item in value:
                if item is not None and not (indices and found is not None and item.device.type == "cpu"):
                    found = item if found is None else _same_device(op, found, item, index, numbers=False)
        elif isinstance(value, Tensor):
            found = value if found is None else _same_device(op, found, value, index)
    if op.factory:
        for param, value in zip(op.params, args):
            if param.name == "device" and value is not None:
                return value
        if found is None:
            return chosen_device() or (out.device if isinstance(out, Tensor) else CPU)
    return CPU if found is None else found.device


def _beside(op: Operator, args: tuple, out: Tensor) -> tuple:
    """The arguments of a factory with its device where none is given: the chosen one, else that of `out`."""
    where = chosen_device() or out.device
    return tuple(where if p.name == "device" and value is None else value for p, value in zip(op.params, args))


def _same_device(op: Operator, a: Tensor, b: Tensor, index: int, numbers: bool = True) -> Tensor:
    """The tensor whose device counts; with `numbers`, one without dimensions on the CPU goes with any other.

    index: which argument `b` is, for the error.
    """
    if a._payload.__class__ is b._payload.__class__ is ndarray:
        return a
    first, second = a.device, b.device
    if first == second:
        return a
    if numbers and b._payload.ndim == 0 and first.type != "cpu" and second.type == "cpu":
        return a
    if numbers and a._payload.ndim == 0 and second.type != "cpu" and first.type == "cpu":
        return b
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {_name(first)} and {_name(second)}! "
        + (
            f"(when checking arguments of {op.full_name})"
            if "pointwise" in op.tags
            else f"(when checking argument for argument {op.params[index].name} in method wrapper_{op.full_name})"
        )
    )


def _name(where: device) -> str:
    return str(where)


# out=


def _call_out(op: Operator, spec: Any, args: tuple, out: Any, where: device) -> Any:
    if TLS.inference is False:
        for one in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(one, Tensor) and belongs_to_inference(one):
                check_gradients(op, args, one)  # what PyTorch says first
            _refuse_inference(one)
    if op.is_view or spec.__class__ is not Spec:
        if op.distinct_out:
            for one in out:
                check_distinct(op, one, args)
        result = _call(op, args, None)
        return write_out(op, result, out)
    check_buffer(op, args, out, where)
    check_dtype(op, spec.dtype, out)
    if op.distinct_out:
        check_distinct(op, out, args)
    if spec.shape is None:
        return write_out(op, wrap(backend_of(where).run(op, spec, args, where), spec.dtype), out)
    if op.out_of_any_shape and out._payload.size == math.prod(spec.shape) and out._payload.shape != tuple(spec.shape):
        made = _payload.as_strided(
            backend_of(where).run(op, spec, args, where),
            out._payload.shape,
            _payload.contiguous_strides(out._payload.shape),
            0,
        )
        return write_out(op, wrap(made, spec.dtype), out)
    resize_out(out, tuple(spec.shape), None if op.out_is_contiguous else spec.stride, op)
    check_overlap(op, out, args)
    write(op, spec, args, out, where)
    return out


def write(op: Operator, spec: Any, args: tuple, target: Tensor, where: device, inplace: bool = False) -> None:
    """The result of one spec into the memory of a tensor, now or by a recorder. inplace: the tensor is the first argument."""
    recorder = TLS.pipeline
    if recorder is None or TLS.observer is not None:
        backend_of(where).run_into(op, spec, args, settled(target), where)
    else:
        recorder.write(op, spec, args, target, where, inplace)
    bump_version(target)


def _check_cast(kind: Any, target: Tensor) -> None:
    if not can_cast(kind, target._dtype):
        raise RuntimeError(f"result type {kind.cpp} can't be cast to the desired output type {target._dtype.cpp}")


# In place


def call_inplace(op: Operator, args: tuple, converted: bool = False) -> Tensor:
    """Run an operator with its first argument as the place of the result; returns that argument."""
    special = overrides.find(op, args, None)
    if special is not None:
        return overrides.run_inplace(op, special, args)
    if not converted:
        if not isinstance(args[0], Tensor) and not op.params[0].is_list:
            raise TypeError(f"{op.name}_(): argument 'input' (position 1) must be Tensor, not {type(args[0]).__name__}")
        args = convert(op, args, method=True, inplace=True)
    profiler = TLS.profiler if PROFILED else None
    return _inplace(op, args) if profiler is None else profiler.call(_inplace, op, args, inplace=True)


def _inplace(op: Operator, args: tuple) -> Tensor:
    observer = TLS.observer
    if observer is not None and op.composite is None:
        args = observer.arguments(op, args)
    target = args[0]
    if TLS.inference is False and target.__class__ is not list:
        _refuse_inference(target)
    if op.composite is not None:
        if SPARSE and op.sparse is not None and (kernel := sparse.find(op, args, inplace=True)) is not None:
            return sparse.run_inplace(op, kernel, args)
        if op.is_inplace:
            return op.composite_function()(*args)
        result = op.composite_function()(*args)
        if op.out_refusal is requires and result._dtype is not target._dtype:
            raise requires(result._dtype, target._dtype, f"{op.name}_", "base")
        _check_cast(result._dtype, target)
        _check_target_shape(target, result._payload.shape)
        return autograd.copy_(target, result)
    if op.missing is not None:
        raise NotImplementedError(f"{op.full_name} is not implemented: {op.missing}")
    if TLS.tangents is not None:
        if SPARSE:
            sparse.refuse_tangents(op, args)
        result = autograd.run_forward_inplace(op, args)
        if result is not NotImplemented:
            return result
    if (DISPATCHING or TLS.dispatch_modes) and (special := below.find(op, args)) is not None:
        return below.run_inplace(op, special, args)
    if SPARSE and (kernel := sparse.find(op, args, inplace=True)) is not None:
        return sparse.run_inplace(op, kernel, args)
    # A copy is what goes from one device to another.
    where = target.device if "conversion" in op.tags else device_of(op, args)
    if where.type != target.device.type:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {target.device} and {where}!"
        )
    recorded = TLS.grad_enabled and autograd.may_write(op, args)
    if "real_result" in op.tags and target._dtype.is_complex:
        raise RuntimeError(f"In-place {op.name} is not supported for complex tensors.")
    try:
        spec = op.meta(*args)
        if spec.__class__ is Spec and not op.is_inplace:
            _check_cast(spec.dtype, target)
            _check_target_shape(target, tuple(spec.shape))
    except RuntimeError:
        if "pointwise" in op.tags:  # what PyTorch looks at first
            check_overlap(op, target, args)
        raise
    if spec.__class__ is not Spec:
        if spec.__class__ is ViewSpec:
            result = _inplace_view(op, spec, args)
            if observer is not None:
                observer.ran(op, args, result)
            return result
        spec = spec[0]
    check_overlap(op, target, args)
    before = args
    if recorded and op.saves_self:
        before = (autograd.snapshot(target), *args[1:])
    write(op, spec, args, target, where, inplace=True)
    if recorded:
        autograd.record_write(op, args, before)
    if observer is not None:
        observer.ran(op, args, target, target)
    return target


def _refuse_inference(target: Tensor) -> None:
    if belongs_to_inference(target):
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
            "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def _inplace_view(op: Operator, spec: ViewSpec, args: tuple) -> Tensor:
    """`squeeze_` and its kin: the tensor itself becomes the view."""
    target = args[0]
    before = autograd.snapshot_view(target)
    target._payload = view.apply(current(target), spec)
    bump_version(target)
    if op.record is not None and TLS.grad_enabled:
        node = target._node
        op.record(target, before, *args[1:])
        target._nr = 0
        if target._base is None and target._node is not node:
            target._epoch += 1  # views of it, too, come from what it is now
    return target


def _check_target_shape(target: Tensor, shape: tuple) -> None:
    if target._payload.shape != shape:
        raise RuntimeError(
            f"output with shape {list(target._payload.shape)} doesn't match the broadcast shape {list(shape)}"
        )
