"""Plans of calls: what is the same for every call of an operator with arguments of one geometry, so that only memory is left, and one call of the extension.

Note [Plans of launches]
A plan is made of the second call of a kind: the kernel's one launch is watched, and each of its arguments is an argument of the operator, the result, or
a constant that follows from what the key holds. What takes several launches, casts, draws numbers or reads elements is not planned; neither is a kernel that is a Python function,
which may look at anything. A rule is asked as `_dispatch/plans.py` asks it: without elements. The key has the geometry and dtypes of tensors, which of them are one, the device and the values of numbers; plans are
forgotten when the default dtype or the precision that products may have change. Where CANN allows it the executor of a plan's first launch is kept and given new addresses, see Note [Repeated launches] in native/runtime/launching.c.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ..._dispatch import native, plans
from ..._dispatch.operator import Operator
from ..._payload import contiguous_strides, extent
from ..._rules.spec import Spec
from ..._state import FORGETTERS, PLAIN
from . import _blocks, aclnn, allocator, composing, launchers, streams
from .payload import NpuPayload
from .runtime import NpuError, get_runtime
from .storage import NpuStorage
from .streams import Stream, current_stream

_MOST = 4096  # plans that are kept
_REFUSED = frozenset(("random", "nondeterministic_seeded", "conversion", "data_dependent", "creation", "uninitialized"))
_plans: dict[tuple, Any] = {}
_seen: set[tuple] = set()
_begins: set[Operator] = set()  # whose plans the extension leaves to `quick`, as they may begin a composition


def quick(op: Operator, args: tuple) -> tuple[Spec, NpuPayload] | None:
    """(the spec, the result) of a call that has a plan; None for all others, which the general way runs."""
    index = next(
        (
            value._payload.storage._index
            for value in args
            if value.__class__ in PLAIN and value._payload.__class__ is NpuPayload
        ),
        None,
    )
    if index is None:
        return None
    found = composing.quick(op, args)
    if found is not None:
        return found
    with get_runtime().on(index):
        current_stream(index)  # where the extension looks for it
        return _launched(op, args)


def _workspace(op: Operator, function: Any, index: int, stream: int, size: int) -> Any:
    """What the second phase works in."""
    with aclnn.running(op.full_name):
        return aclnn.workspace_block(function, index, size, stream)


def _failed(op: Operator, args: tuple, result: NpuPayload, function: Any, phase: int, status: int) -> NpuError:
    with aclnn.running(op.full_name):
        name = "GetWorkspaceSize" if phase == 1 else ""
        return aclnn.error_of(get_runtime(), function, name, status, (*args, result))


# Making plans


def _plan_later(op: Operator, args: tuple, key: tuple) -> None:
    """The next call of this kind is watched."""
    if len(_plans) >= _MOST:
        _plans.clear()
    if len(_seen) >= _MOST:
        _seen.clear()
    if not _plannable(op):
        _plans[key] = None
        return
    if op.full_name in composing.BEGINS:
        _begins.add(op)
    if key not in _seen:
        _seen.add(key)
        return
    _seen.discard(key)
    _plans[key] = None
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
    aclnn.watch(lambda function, launched: _made(op, specs, args, key, function, launched))


def _as_they_are(op: Operator, args: tuple, spec: Spec) -> bool:
    """Whether no operand is cast."""
    from .run import _compute

    kind = _compute([spec])
    return all(args[i].__class__ in PLAIN and args[i]._dtype is kind for i in op.cast if not aclnn.is_number(args[i]))


def _plannable(op: Operator) -> bool:
    from ..._generated.npu import FAMILIES

    if not launchers.launches():
        return False
    family = FAMILIES.get(op.full_name)
    if family is None or op.is_view or op.is_inplace or _REFUSED.intersection(op.tags):
        return False
    module = importlib.import_module(family if "." in family else f"mindtorch_v2._generated.npu.{family}")
    return op.full_name in module.KERNELS


def _made(op: Operator, spec: Spec, args: tuple, key: tuple, function: Any, launched: tuple) -> None:
    """Keep the plan of a launch that was watched, if its arguments are the operator's."""
    sources = {id(value._payload): i for i, value in enumerate(args) if value.__class__ in PLAIN}
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
    tensors: list[NpuPayload] = []
    arguments = []
    for kind, value in zip(function.kinds, launched, strict=True):
        if kind == "tensor" and value is not None and value.__class__ is not NpuPayload or kind in _LISTS:
            return
        arguments.append(launchers.argument(kind, value, tensors))
    if len(tensors) > _TENSORS:
        return
    places = tuple((sources.get(id(tensor), -1), tensor.dtype.itemsize) for tensor in tensors)
    storage = result.storage
    nbytes = extent(result.shape, result.stride) * result.dtype.itemsize
    shape, stride = tuple(result.shape), tuple(result.stride)
    run = launchers.launcher(function, tuple(arguments))
    launchers.repeat(run, function, launched)
    shelf = allocator.get(storage._index)._shelf
    _plans[key] = native.extension.Planned(
        run, spec, shape, stride, spec.dtype, nbytes, storage._where, storage._index, function, shelf, places
    )


_LISTS = ("tensors", "scalars")
_TENSORS = 16  # that a plan has


def forget() -> None:
    """Make all plans anew."""
    _plans.clear()
    _seen.clear()


def connect() -> None:
    """Let the extension run what has a plan, in this process and while the runtime lives."""
    if launchers.launches():
        runtime = get_runtime()
        native.extension.connect_npu(
            block=_blocks.Block, segment=_blocks.Segment, pool=_blocks.Pool, payload=NpuPayload, storage=NpuStorage, stream=Stream, plans=_plans, later=_plan_later,
            failed=_failed, workspace=_workspace, devices=runtime._thread, streams=streams._thread,
            begins=_begins,
        )  # fmt: skip
        runtime.on_finalize(_disconnect)


def _disconnect() -> None:
    """Before the runtime ends: what plans keep of CANN goes first."""
    forget()
    native.extension.disconnect_npu()


_launched = native.extension.launched if launchers.launches() else lambda op, args: None
FORGETTERS.append(forget)
os.register_at_fork(after_in_child=native.extension.disconnect_npu if launchers.launches() else forget)
