"""Plans of calls: what is the same for every call of an operator with arguments of one geometry, so that only memory is left, and one call of the extension.

Note [Plans of launches]
A plan is made of the second call of a kind: the kernel's one launch is watched, and each of its arguments is an argument of the operator, the result, or
a constant that follows from what the key holds. What takes several launches, casts, draws numbers or reads elements is not planned; neither is a kernel that is a Python function,
which may look at anything. A rule is asked as `_dispatch/plans.py` asks it: without elements. The key has the geometry and dtypes of tensors, which of them are one, the device, the values of numbers,
the default dtype and the precision that products may have. Nothing of CANN is kept between calls: the extension makes the descriptors, calls both phases and destroys them, see native/runtime/launching.c.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..._dispatch import native, plans
from ..._dispatch.operator import Operator
from ..._dtype import get_default_dtype
from ..._payload import contiguous_strides, extent
from ..._rules.spec import Spec
from ..._state import PLAIN
from . import aclnn, allocator, precision
from .payload import NpuPayload
from .runtime import NpuError, get_runtime
from .storage import quick_storage
from .streams import current_stream

_MOST = 4096  # plans that are kept
_NUMBERS = frozenset((int, float, bool, str, type(None)))
_REFUSED = frozenset(("random", "nondeterministic_seeded", "conversion", "data_dependent", "creation", "uninitialized"))
_plans: dict[tuple, Any] = {}
_seen: set[tuple] = set()


class _Plan:
    """One launch with its result."""

    __slots__ = ("spec", "shape", "stride", "nbytes", "where", "index", "function", "launcher", "sources", "settings")

    def __init__(self, spec: Spec, result: NpuPayload, function: Any, where: Any, launcher: Any, sources: list) -> None:
        self.spec = spec
        self.shape, self.stride = result.shape, result.stride
        self.nbytes = extent(result.shape, result.stride) * result.dtype.itemsize
        self.where, self.index = where, where.index
        self.function = function
        self.launcher = launcher
        self.sources = sources
        self.settings = _settings()


def quick(op: Operator, args: tuple) -> tuple[Spec, NpuPayload] | None:
    """(the spec, the result) of a call that has a plan; None for all others, which the general way runs."""
    parts: list[Any] = [op]
    given: list[NpuPayload] = []
    where = None
    for value in args:
        kind = value.__class__
        if kind in PLAIN:
            payload = value._data
            if payload.__class__ is not NpuPayload:
                return None
            storage = payload.storage
            where = storage._where
            same = next((i for i, other in enumerate(given) if other is payload), None) if given else None
            given.append(payload)
            parts.append((payload.shape, payload.stride, payload.dtype, where, same))
        elif kind in _NUMBERS:
            parts.append((kind, value) if kind is not float or value else (kind, str(value)))  # -0.0 equals 0.0
        elif kind is tuple or kind is list:
            for item in value:
                if item.__class__ not in _NUMBERS or item.__class__ is float and not item:
                    return None
            parts.append((kind, *value))
        else:
            return None
    if where is None:
        return None
    key = tuple(parts)
    plan = _plans.get(key)
    if plan is None:
        _plan_later(op, args, key, where)
        return None
    if plan.spec is None:
        return None
    if plan.settings != _settings():
        del _plans[key]
        return None
    return plan.spec, _run(plan, args, op)


def _settings() -> tuple:
    return get_default_dtype(), *precision.ALLOW_HF32.values()


def _run(plan: _Plan, args: tuple, op: Operator) -> NpuPayload:
    runtime = get_runtime()
    index = plan.index
    if runtime.current_device() != index:
        with runtime.on(index):
            return _run(plan, args, op)
    stream = current_stream(index).handle
    result = NpuPayload(plan.shape, plan.stride, plan.spec.dtype, 0, quick_storage(plan.nbytes, plan.where, stream, op))
    numbers = []
    for source, item in plan.sources:
        payload = result if source is None else args[source]._data
        storage = payload.storage
        block = storage._block
        numbers += (0 if block is None else block.address, payload.offset, storage._nbytes // item)
    workspace = _Workspace(op, plan, runtime, stream)
    try:
        failure = plan.launcher(stream, workspace, *numbers)
    finally:
        if workspace.block is not None:
            workspace.allocator.free(workspace.block)
    if failure is not None:
        raise _failed(runtime, plan, op, "GetWorkspaceSize" if failure[0] == 1 else "", failure[1], args, result)
    return result


class _Workspace:
    """Gives the second phase its memory, if it wants some."""

    __slots__ = ("op", "plan", "runtime", "stream", "block", "allocator")

    def __init__(self, op: Operator, plan: _Plan, runtime: Any, stream: int) -> None:
        self.op, self.plan, self.runtime, self.stream = op, plan, runtime, stream
        self.block: Any = None

    def __call__(self, size: int) -> int:
        self.allocator = allocator.get(self.plan.index)
        with aclnn.running(self.op.full_name):
            self.block = aclnn.workspace_block(self.plan.function, self.plan.index, size, self.stream)
        return self.block.address


def _failed(runtime: Any, plan: _Plan, op: Operator, phase: str, status: int, args: tuple, result: Any) -> NpuError:
    with aclnn.running(op.full_name):
        return aclnn.error_of(runtime, plan.function, phase, status, (*args, result))


# Making plans


def _plan_later(op: Operator, args: tuple, key: tuple, where: Any) -> None:
    """The next call of this kind is watched."""
    if len(_plans) >= _MOST:
        _plans.clear()
    if len(_seen) >= _MOST:
        _seen.clear()
    if key not in _seen:
        _seen.add(key)
        if not _plannable(op):
            _plans[key] = _NONE
        return
    _seen.discard(key)
    _plans[key] = _NONE
    specs, asked = plans._asked(op, args)
    if (
        specs.__class__ is not Spec
        or asked
        or specs.shape is None
        or 0 in specs.shape
        or specs.compute is not None
        and not _as_they_are(op, args, specs)
    ):
        return
    aclnn.watch(lambda function, launched: _made(op, specs, args, key, where, function, launched))


def _as_they_are(op: Operator, args: tuple, spec: Spec) -> bool:
    """Whether no operand is cast."""
    from .run import _compute

    kind = _compute([spec])
    return all(args[i].__class__ in PLAIN and args[i]._dtype is kind for i in op.cast if not aclnn.is_number(args[i]))


def _plannable(op: Operator) -> bool:
    from ..._generated.npu import FAMILIES

    if not getattr(native.extension, "LAUNCHES", 0):
        return False
    family = FAMILIES.get(op.full_name)
    if family is None or op.is_view or op.is_inplace or _REFUSED.intersection(op.tags):
        return False
    module = importlib.import_module(family if "." in family else f"mindtorch_v2._generated.npu.{family}")
    return op.full_name in module.KERNELS


def _made(op: Operator, spec: Spec, args: tuple, key: tuple, where: Any, function: Any, launched: tuple) -> None:
    """Keep the plan of a launch that was watched, if its arguments are the operator's."""
    sources = {id(value._data): i for i, value in enumerate(args) if value.__class__ in PLAIN}
    results = [a for a in launched if a.__class__ is NpuPayload and id(a) not in sources]
    stride = contiguous_strides(tuple(spec.shape)) if spec.stride is None else tuple(spec.stride)
    if len({id(r) for r in results}) != 1:
        return
    result = results[0]
    if (
        tuple(result.shape) != tuple(spec.shape)
        or tuple(result.stride) != stride
        or result.dtype is not spec.dtype
        or result.offset
    ):
        return
    runtime = get_runtime()
    tensors, scalars, values, places = [], [], [], []
    for place, (kind, value) in enumerate(zip(function.kinds, launched, strict=True)):
        values.append(0)
        if value is None:
            if kind == "float":
                return
        elif kind == "tensor":
            if value.__class__ is not NpuPayload:
                return
            tensors.append(
                (
                    place,
                    tuple(value.shape),
                    tuple(value.stride),
                    aclnn.acl_dtype(value.dtype),
                    aclnn.FORMATS.get(value.ndim, 2),
                )
            )
            places.append((sources.get(id(value)), value.dtype.itemsize))
        elif kind == "scalar":
            cell, name = aclnn.scalar_cell(runtime.ffi, value)
            scalars.append((place, bytes(runtime.ffi.buffer(cell)), aclnn.ACL_DTYPES[name]))
        elif kind in ("int", "uint", "bool"):
            values[-1] = int(value)
        else:
            return
    if len(values) > _ARGUMENTS or len(tensors) > _TENSORS or len(scalars) > _SCALARS:
        return
    symbols = [runtime.symbol(name) for name in _SYMBOLS] + list(function.phases)
    addresses = tuple(int(runtime.ffi.cast("uintptr_t", symbol)) for symbol in symbols)
    launcher = native.extension.Launcher(addresses, tuple(tensors), tuple(scalars), tuple(values))
    _plans[key] = _Plan(spec, result, function, where, launcher, places)


_SYMBOLS = ("aclCreateTensor", "aclDestroyTensor", "aclCreateScalar", "aclDestroyScalar", "aclDestroyAclOpExecutor")
_ARGUMENTS, _TENSORS, _SCALARS = 16, 6, 4  # that a launcher takes
_NONE: Any = type("_None", (), {"spec": None})()


def forget() -> None:
    """Make all plans anew."""
    _plans.clear()
    _seen.clear()
