"""Running operators on an NPU: the kernel that the schema binds, on payloads that are cast as the rule says."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._dispatch.operator import Operator
from ..._dtype import DTYPES
from ..._payload import contiguous_strides
from ..._pending import settled
from ..._rules.spec import Spec
from ..._tensor import Tensor, wrap
from . import _late, aclnn, copies, fallback
from .creation import empty
from .payload import NpuPayload

_float32, _halves = DTYPES["float32"], (DTYPES["float16"], DTYPES["bfloat16"])


class Results(list):
    """The payloads of the results, allocated when a kernel first asks for them."""

    def __init__(self, spec: Any, where: Any) -> None:
        self.spec = spec
        self.specs = [spec] if spec.__class__ is Spec else list(spec)
        super().__init__([None] * len(self.specs))
        self.where = where

    def __getitem__(self, index: int) -> Any:  # type: ignore[override]
        found = list.__getitem__(self, index)
        spec = self.specs[index]
        if found is None and spec is not None and spec.shape is not None:
            found = empty(tuple(spec.shape), spec.stride, spec.dtype, self.where)
            self[index] = found
        return found


def run(op: Operator, spec: Any, args: tuple, where: Any) -> Any:
    """Results in memory of their own: one payload for a Spec, a list for several."""
    _settle(op, args)
    results = Results(spec, where)
    specs = results.specs
    with aclnn.running(op.full_name, _compute(specs)):
        if _late.hurries() and _writes_to_results_alone(op):
            with _late.fresh():
                _execute(op, specs, args, results)
        else:
            _execute(op, specs, args, results)
        found = [results[i] for i in range(len(specs))]
        aclnn.watched()
    return found[0] if spec.__class__ is Spec else found


def _writes_to_results_alone(op: Operator) -> bool:
    """Whether a call that makes its results launches nothing that writes to other memory: not known of kernels that are Python functions, whose operators may leave results for later themselves."""
    if "conversion" in op.tags:
        return True
    return op.mutates is None and "updates_statistics" not in op.tags and _wrapper(op) is not None


def run_into(op: Operator, spec: Spec, args: tuple, target: NpuPayload, where: Any) -> None:
    """The result of one spec, written into a payload of its shape; its dtype may be another than the spec's."""
    _settle(op, args)
    direct = target.dtype is spec.dtype and spec.shape is not None and (op.is_inplace or not _reads(op, args, target))
    with aclnn.running(op.full_name, _compute([spec])):
        if "conversion" in op.tags:
            copies.copy(target, _source(op, args)._payload, _non_blocking(op, args))
            return
        results = Results(spec, where)
        if direct:
            results[0] = target
        _execute(op, [spec], args, results)
        if results[0] is not target:
            copies.copy_on_device(target, results[0])


def supports(op: Operator, specs: Sequence[Any]) -> bool:
    """Whether the schema binds a kernel, or the CPU's may stand for it."""
    from ..._generated.npu import FAMILIES

    if "conversion" in op.tags or op.full_name in FAMILIES:
        return True
    return fallback.allowed() and fallback.possible(op)


def _settle(op: Operator, args: tuple) -> None:
    """Have the elements of tensors that a pipeline computed."""
    for index in op.tensors:
        for value in args[index] if args[index].__class__ is list else (args[index],):
            if isinstance(value, Tensor):
                settled(value)


def _reads(op: Operator, args: tuple, target: NpuPayload) -> bool:
    """Whether writing the result early could spoil an input: one that shares the memory, except element by element."""
    for index in op.tensors:
        for value in args[index] if args[index].__class__ is list else (args[index],):
            if (
                isinstance(value, Tensor)
                and isinstance(value._payload, NpuPayload)
                and value._payload.storage is target.storage
            ):
                same = value._payload.offset == target.offset and value._payload.stride == target.stride
                if not (same and "pointwise" in op.tags):
                    return True
    return False


def _execute(op: Operator, specs: list, args: tuple, results: Results) -> None:
    """Run the operator's kernel; the results are filled."""
    if "conversion" in op.tags:
        copies.copy(results[0], _source(op, args)._payload, _non_blocking(op, args))
        return
    module = _family(op)
    if module is None:
        fallback.execute(op, args, results)
        return
    function = module.FUNCTIONS.get(op.full_name)
    if function is not None:
        compute = _compute(specs)
        given = [_on_device(value, compute if i in op.cast else None, results.where) for i, value in enumerate(args)]
        made = function(results, *given)
        if made is NotImplemented:
            fallback.execute(op, args, results, "none for these arguments")
        else:
            _adopt(made, results)
        return
    if all(spec is None or _is_empty(spec) for spec in specs):
        for index in range(len(specs)):
            results[index]
        return
    module.KERNELS[op.full_name](results, *_payloads(op, _compute(specs), args, results.where))


def _family(op: Operator) -> Any:
    """The module of an operator's kernel; None where there is none."""
    from ..._generated.npu import FAMILIES

    family = FAMILIES.get(op.full_name)
    if family is None:
        return None
    # A family with a dot is one of a package of its own.
    return importlib.import_module(family if "." in family else f"mindtorch_v2._generated.npu.{family}")


def _wrapper(op: Operator) -> Any:
    """The generated wrapper that is an operator's kernel, if one is."""
    module = _family(op)
    return None if module is None else module.KERNELS.get(op.full_name)


def _compute(specs: list) -> Any:
    """The dtype that operands are cast to. numpy computes half types in float32; an NPU has arithmetic for them."""
    spec = next((s for s in specs if s is not None), None)
    if spec is None or spec.compute is not _float32 or spec.dtype not in _halves:
        return None if spec is None else spec.compute
    return spec.dtype


def _is_empty(spec: Spec) -> bool:
    return spec.shape is not None and 0 in spec.shape


def _source(op: Operator, args: tuple) -> Tensor:
    """What a conversion copies from: its last tensor."""
    return next(args[i] for i in reversed(op.tensors) if isinstance(args[i], Tensor))


def _non_blocking(op: Operator, args: tuple) -> bool:
    return any(p.name == "non_blocking" and bool(value) for p, value in zip(op.params, args))


def _adopt(returned: Any, results: Results) -> None:
    """Tensors that a Python kernel returned as results, laid out as their specs say."""
    if returned is None:
        return
    for index, made in enumerate(returned if isinstance(returned, (tuple, list)) else (returned,)):
        spec = results.specs[index]
        if made is None or spec is None:
            continue
        payload = made._payload
        if spec.shape is None or _fits(payload, spec, results):
            results[index] = payload
        else:
            copies.copy(results[index], payload)


def _fits(payload: Any, spec: Spec, results: Results) -> bool:
    """Whether a payload is just what the spec describes, and no result was asked for."""
    if list.__getitem__(results, 0) is not None or payload.offset or payload.dtype is not spec.dtype:
        return False
    stride = contiguous_strides(payload.shape) if spec.stride is None else tuple(spec.stride)
    return tuple(payload.shape) == tuple(spec.shape or ()) and tuple(payload.stride) == stride


# Arguments


def _on_device(value: Any, compute: Any, where: Any) -> Any:
    """An argument of a Python kernel: cast where it takes part in promotion, a number among those as a 0-dim tensor; 0-dim CPU tensors are
    brought along."""
    if value.__class__ is list:
        return [_on_device(item, compute, where) for item in value]
    if compute is not None and aclnn.is_number(value):
        return wrap(aclnn.scalar_tensor(value, compute, where), compute)
    if not isinstance(value, Tensor):
        return value
    value = value.detach()
    if isinstance(value._payload, np.ndarray):
        value = value.to(where)
    return value if compute is None or value.dtype is compute else value.to(compute)


def _payloads(op: Operator, compute: Any, args: tuple, where: Any) -> list:
    """The arguments as wrappers see them: payloads, cast where they take part in promotion; 0-dim CPU tensors as numbers."""
    given: list = []
    for index, value in enumerate(args):
        cast = compute if index in op.cast else None
        if value.__class__ is list:
            given.append([_payload(item, cast, where) for item in value])
        else:
            given.append(_payload(value, cast, where))
    return given


def _payload(value: Any, compute: Any, where: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    payload = value._payload
    if isinstance(payload, np.ndarray):
        if payload.ndim == 0:
            return payload.item() if payload.dtype.num < 256 else float(payload)
        moved = empty(payload.shape, None, value._dtype, where)  # an index, which may stand on the CPU
        copies.copy(moved, payload)
        payload = moved
    return payload if compute is None or payload.dtype is compute else cast(payload, compute)


def cast(payload: NpuPayload, dtype: Any) -> NpuPayload:
    """A contiguous copy in another dtype."""
    made = empty(tuple(payload.shape), None, dtype, payload.device)
    copies.copy_on_device(made, payload)
    return made
