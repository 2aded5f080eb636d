"""Running CPU kernels: payloads in, ndarrays out that are exactly what the spec says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import errstate, ndarray

from ... import _dtype, _memory
from ..._dispatch.backends import backend_of, no_kernel
from ..._dispatch.native import blocked
from ..._dispatch.operator import Operator
from ..._dtype import unsupported
from ..._payload import contiguous_strides
from ..._pending import settled
from ..._rules.spec import Spec
from ..._tensor import Tensor
from ..common.convert import number
from .creation import empty
from .ops.conversion import to_copy

_HALVES = (_dtype.float16, _dtype.bfloat16)


def run(op: Operator, spec: Any, args: tuple, where: Any = None) -> Any:
    """Results in memory of their own: one ndarray for a Spec, a list for several."""
    try:
        return _run(op, spec, args, where)
    except (MemoryError, ValueError) as error:
        one = spec if spec.__class__ is Spec else next((s for s in spec if s is not None), None)
        refused = None if one is None or one.shape is None else _memory.refusal(error, one.shape, one.dtype.itemsize)
        if refused is None:
            raise
        raise refused from error


def _run(op: Operator, spec: Any, args: tuple, where: Any) -> Any:
    kernel = op.kernels.get("cpu")
    if kernel is None:
        raise no_kernel(op, where)
    if spec.__class__ is Spec:
        if op.mutates is not None:
            target = empty(tuple(spec.shape), spec.stride, spec.dtype)
            np.copyto(target, settled(args[op.mutates]), casting="unsafe")
            run_into(op, spec, args, target, where, copied=True)
            return target
        if op.block and spec.shape is not None:
            return _run_blocked(op, spec, args, kernel)
        made = _of_halves(op, kernel, spec.compute, args)
        if made is not None:
            return laid_out(made, spec)
        if op.takes_out["cpu"] and spec.shape is not None:
            target = empty(tuple(spec.shape), spec.stride, spec.dtype)
            with errstate(all="ignore"):
                _call_into(kernel, payloads(op, spec.compute, args), target, spec)
            return target
        with errstate(all="ignore"):
            result = kernel(*payloads(op, spec.compute, args))
        return laid_out(result, spec)
    compute = next((s.compute for s in spec if s is not None), None)
    results = _of_halves(op, kernel, compute, args)
    if results is None:
        with errstate(all="ignore"):
            results = kernel(*payloads(op, compute, args))
    return [None if s is None else laid_out(r, s) for r, s in zip(results, spec)]


def _of_halves(op: Operator, kernel: Any, compute: Any, args: tuple) -> Any:
    """What a kernel in C gives of half types as they are, as plans of calls have it; None where it takes them in float32 alone."""
    run = getattr(kernel, "of_halves", None)
    if run is None or compute is not _dtype.float32:
        return None
    if not any(isinstance(value, Tensor) and value._dtype in _HALVES for value in args):
        return None
    with errstate(all="ignore"):
        return run(*payloads(op, None, args))


def _run_blocked(op: Operator, spec: Spec, args: tuple, kernel: Any) -> ndarray:
    """By the operator's loop where it takes the arguments, else by its kernel."""
    given = payloads(op, spec.compute, args)
    loop = blocked(op)
    if loop is not None and spec.compute not in (None, spec.dtype) and spec.dtype.category > 1:
        made = loop(given, None)  # half types, which are computed in float32
        if made is not None:
            return laid_out(made, spec)
    if op.takes_out["cpu"] or loop is not None:
        target = empty(tuple(spec.shape), spec.stride, spec.dtype)
        if loop is not None and loop(given, target) is not None:
            return target
        if op.takes_out["cpu"]:
            with errstate(all="ignore"):
                _call_into(kernel, given, target, spec)
            return target
    with errstate(all="ignore"):
        return laid_out(kernel(*given), spec)


def run_into(op: Operator, spec: Spec, args: tuple, target: ndarray, where: Any = None, copied: bool = False) -> None:
    """Results in memory that is given; its dtype may be another than the spec's."""
    kernel = op.kernels.get("cpu")
    if kernel is None:
        raise no_kernel(op, where)
    if "conversion" in op.tags and (source := _elsewhere(op, args)) is not None:
        backend_of(source.device).copy(
            target, settled(source), any(p.name == "non_blocking" and v for p, v in zip(op.params, args))
        )
        return
    with errstate(all="ignore"):
        given = payloads(op, spec.compute, args)
        if op.mutates is not None:
            place = given[op.mutates]
            if not copied and args[op.mutates]._payload is not target:
                np.copyto(target, args[op.mutates]._payload, casting="unsafe")
            if place.dtype == target.dtype:
                given[op.mutates] = target
                kernel(*given)
            else:  # half types, which the kernel sees as float32
                place = given[op.mutates] = np.array(place)
                np.copyto(target, kernel(*given), casting="unsafe")
            return
        if op.block and _blocked_into(op, spec, given, target):
            return
        if target.dtype != spec.dtype.np and spec.compute not in (None, spec.dtype):
            # A half result is rounded as such before it becomes another dtype.
            np.copyto(target, np.asarray(kernel(*given)).astype(spec.dtype.np), casting="unsafe")
        elif op.takes_out["cpu"]:
            _call_into(kernel, given, target, spec)
        else:
            np.copyto(target, kernel(*given), casting="unsafe")


def _elsewhere(op: Operator, args: tuple) -> Tensor | None:
    """What a conversion copies from, where that is on a device which copies to the host itself."""
    source = next((args[i] for i in reversed(op.tensors) if isinstance(args[i], Tensor)), None)
    return source if source is not None and source.device.type == "npu" else None


def _blocked_into(op: Operator, spec: Spec, given: list, target: ndarray) -> bool:
    """Whether the operator's loop has written the result, rounded to the spec's dtype before it becomes that of `target`."""
    loop = blocked(op)
    if loop is None:
        return False
    if target.dtype == spec.dtype.np and loop(given, target) is not None:
        return True
    made = loop(given, None)
    if made is None:
        return False
    np.copyto(target, made.astype(spec.dtype.np, copy=False), casting="unsafe")
    return True


def _call_into(kernel: Any, given: list, target: ndarray, spec: Spec) -> None:
    if kernel.__class__ is np.ufunc:
        kernel(*given, out=target, casting="unsafe")
        return
    if spec.compute is None or spec.compute.np == target.dtype or target.dtype == bool:
        kernel(*given, out=target)
        return
    np.copyto(target, kernel(*given), casting="unsafe")


def laid_out(result: Any, spec: Spec) -> ndarray:
    """A kernel's result in the dtype and strides of the spec."""
    if result.__class__ is not ndarray:
        result = np.asarray(result)
    want = spec.dtype.np
    if want is None:
        raise RuntimeError(unsupported(spec.dtype))
    if result.dtype != want:
        result = _converted(result, spec.dtype)
    shape = result.shape
    if spec.shape is None:
        return result if spec.stride == () else np.ascontiguousarray(result).reshape(shape)
    if shape != tuple(spec.shape):
        raise RuntimeError(
            f"internal: a kernel returned the shape {list(shape)} where its rule says {list(spec.shape)}"
        )
    strides = contiguous_strides(shape) if spec.stride is None else tuple(spec.stride)
    item = want.itemsize
    if result.strides == tuple([s * item for s in strides]):
        return _whole(result)
    if spec.stride is None:
        return _whole(np.ascontiguousarray(result).reshape(-1).reshape(shape))
    target = _memory.empty_strided(shape, strides, want)
    np.copyto(target, result)
    return target


def _whole(result: ndarray) -> ndarray:
    """A result whose storage is its own: a copy of one that is a part of what the kernel computed."""
    base = result.base
    return result.copy("K") if base.__class__ is ndarray and base.nbytes != result.nbytes else result


def payloads(op: Operator, compute: Any, args: tuple) -> list:
    """The arguments as kernels see them: ndarrays for tensors, cast to `compute` where they take part in promotion."""
    given: list = []
    cast = op.cast
    for index in range(len(args)):
        value = args[index]
        if isinstance(value, Tensor):
            array = value._payload
            if array.__class__ is not ndarray:
                array = settled(value)
                if array.__class__ is not ndarray:
                    array = _host(op, value)
            if compute is not None and index in cast and array.dtype != compute.np:
                array = _converted(array, compute)
            given.append(array)
        elif compute is not None and index in cast and value is not None:
            if value.__class__ is list:
                given.append([_cast(item, compute) for item in value])
            else:
                given.append(number(value, compute))
        elif value.__class__ is list:
            given.append([settled(item) if isinstance(item, Tensor) else item for item in value])
        else:
            given.append(value)
    return given


def _converted(array: ndarray, kind: Any) -> ndarray:
    """The array in another dtype and the same order. Numpy converts half types one by one: the conversion's kernel does it in vectors."""
    halves = array.ndim and array.dtype.itemsize + kind.itemsize == 6 and np.float32 in (array.dtype, kind.np)
    if halves:
        return to_copy(array, kind, None, None, None, False, None)
    with errstate(over="ignore"):  # of a sum, which becomes infinite as PyTorch's does
        return array.astype(kind.np, order="K")


def _cast(item: Any, compute: Any) -> Any:
    if isinstance(item, Tensor):
        array = settled(item)
        return array if array.dtype == compute.np else array.astype(compute.np)
    return item


def _host(op: Operator, value: Tensor) -> ndarray:
    """The array for a tensor of another device: factories that take it as an example only get its geometry, without memory."""
    if op.factory and "conversion" not in op.tags:
        return np.broadcast_to(np.zeros((), value._dtype.np), value._payload.shape)
    if "conversion" in op.tags or value.device.type == "meta":
        return backend_of(value.device).to_host(value._payload)
    raise RuntimeError(f"a tensor on {value.device} cannot be used by a CPU kernel")
