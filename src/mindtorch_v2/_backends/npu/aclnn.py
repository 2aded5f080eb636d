"""Calls of aclnn functions: descriptors, workspace, the two phases, release, and errors that name the operator.

Note [Two phases]
The first phase checks the arguments and says how much workspace the second one needs; the second puts the work on the current stream and consumes the executor,
whatever it returns. Descriptors may go as soon as it has returned. The workspace returns to the allocator at once too: its next user is behind this call on the same
stream.
"""

from __future__ import annotations

import numbers
import threading
from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from . import _late, allocator, launchers
from ._leases import held
from .creation import empty
from .dtypes import ACL_DTYPES, acl_dtype, is_number, scalar
from .function import Function
from .payload import NpuPayload
from .runtime import NpuError, NpuOutOfMemory, get_runtime
from .streams import current_stream

_LARGEST_WORKSPACE = 1 << 46
_thread = threading.local()


def current_operator() -> str:
    """The operator that this thread runs, for messages."""
    return getattr(_thread, "operator", "")


class running:
    """Names the operator of the calls inside, and the dtype of numbers that stand for tensors there (None: that of the call's first tensor)."""

    def __init__(self, operator: str, numbers: Any = None) -> None:
        self.state = operator, numbers

    def __enter__(self) -> None:
        self.before = current_operator(), getattr(_thread, "numbers", None)
        _thread.operator, _thread.numbers = self.state

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _thread.operator, _thread.numbers = self.before
        if error is not None:
            _thread.__dict__.pop("record", None)  # a call that failed is no pattern for others
        if isinstance(error, NpuOutOfMemory) and self.state[0] not in str(error):
            error.args = (f"{error} (in {self.state[0]})",)


def watch(planner: Any) -> None:
    """Note the launches of the operator that this thread runs next, for `watched`."""
    _thread.record = planner, []


def watched() -> None:
    """Hand what was noted to the planner: the function and its arguments, if there was one launch whose results' shapes are known."""
    record = _thread.__dict__.pop("record", None)
    if record is not None and len(record[1]) == 1 and record[1][0][2] is None:
        record[0](*record[1][0][:2])


def launch(function: Function, *args: Any) -> None:
    """Run an aclnn function on the current stream of its tensors' device, with arguments in C order."""
    _launch(function, args, None)


def launch_with_shape(function: Function, position: int, *args: Any) -> tuple[int, ...]:
    """`launch` of a function whose result's shape depends on the data: waits, and returns that of the tensor at `position`."""
    return _launch(function, args, position)


def _launch(function: Function, args: tuple, position: int | None) -> Any:
    if _late.hurries():
        _settle()
    runtime = get_runtime()
    record = _thread.__dict__.get("record")
    if record is not None:
        record[1].append((function, args, position))
    index = next((d for d in map(_device_index, args) if d is not None), None)
    if index is None:
        index = runtime.current_device()
    stream = current_stream(index).handle
    if launchers.launches():
        return _launch_at_once(runtime, function, args, position, index, stream)
    with runtime.on(index), held(), _Descriptors(runtime, args) as made:
        first, second = function.phases
        given = [made.convert(kind, value) for kind, value in zip(function.kinds, args, strict=True)]
        size, executor = runtime.ffi.new("uint64_t *"), runtime.ffi.new("aclOpExecutor **")
        status = first(*given, size, executor)
        if status:
            raise error_of(runtime, function, "GetWorkspaceSize", status, args)
        workspace = workspace_of(runtime, function, executor[0], index, size[0], stream)
        address = runtime.ffi.cast("void *", 0 if workspace is None else workspace.address)
        status = second(address, size[0], executor[0], runtime.ffi.cast("aclrtStream", stream))
        if status:
            raise error_of(runtime, function, "", status, args)
        if position is None:
            return None
        runtime.synchronize_stream(stream)
        return _view_shape(runtime, given[position])


def _settle() -> None:
    """Launch what is late, since this launch may write to what that reads; it is no part of what is watched."""
    record = _thread.__dict__.pop("record", None)
    _late.settle()
    if record is not None:
        _thread.record = record


def _launch_at_once(
    runtime: Any, function: Function, args: tuple, position: int | None, index: int, stream: int
) -> Any:
    """By the extension, between whose calls no signal comes: see Note [Nothing between the phases] in native/runtime/launching.c."""
    tensors: list[NpuPayload] = []
    kinds = function.kinds
    if len(kinds) != len(args):
        raise ValueError(f"{function.name} takes {len(kinds)} arguments, not {len(args)}")
    given = tuple(
        launchers.argument(
            kind, number_tensor(value, args) if kind == "tensor" and is_number(value) else value, tensors
        )
        for kind, value in zip(kinds, args)
    )
    run = launchers.launcher(function, given, position)
    with runtime.on(index):
        found = run(stream, lambda size: workspace_block(function, index, size, stream), *launchers.numbers_of(tensors))
    if found.__class__ is list:
        phase, status = found
        if phase > 2:
            raise NpuError.of(runtime, "aclrtSynchronizeStream" if phase == 3 else "aclGetViewShape", status, "")
        raise error_of(runtime, function, "GetWorkspaceSize" if phase == 1 else "", status, args)
    return found


def _view_shape(runtime: Any, tensor: Any) -> tuple[int, ...]:
    """The shape that a kernel gave its result. ACL allocates the array and has nothing to release it with: a few bytes are lost each time."""
    dims, count = runtime.ffi.new("int64_t **"), runtime.ffi.new("uint64_t *")
    status = runtime.symbol("aclGetViewShape")(tensor, dims, count)
    if status:
        raise NpuError.of(runtime, "aclGetViewShape", status, "")
    return tuple(int(dims[0][i]) for i in range(count[0]))


def workspace_of(runtime: Any, function: Function, executor: Any, index: int, size: int, stream: int) -> Any:
    """Memory for the second phase; an executor that cannot be run is destroyed."""
    if not size:
        return None
    try:
        return workspace_block(function, index, size, stream)
    except RuntimeError:  # no memory, or none that makes sense
        runtime.symbol("aclDestroyAclOpExecutor")(executor)
        raise


def workspace_block(function: Function, index: int, size: int, stream: int) -> Any:
    """A lease of a size that the first phase asked for. RuntimeError where that makes no sense, or there is no memory."""
    if size > _LARGEST_WORKSPACE:
        raise RuntimeError(f"{_named(function)}: the first phase asks for a workspace of {size} bytes")
    return allocator.get(index).lease(size, stream)


def _device_index(value: Any) -> int | None:
    if isinstance(value, NpuPayload):
        return value.device.index
    if isinstance(value, (list, tuple)):
        return next((d for d in map(_device_index, value) if d is not None), None)
    return None


# Descriptors


class _Descriptors:
    """The descriptors of one call; all are destroyed at its end, in the reverse order."""

    def __init__(self, runtime: Any, args: Sequence) -> None:
        self.runtime = runtime
        self.ffi = runtime.ffi
        self.args = args
        self.made: list[tuple[str, Any]] = []
        self.kept: list[Any] = []

    def __enter__(self) -> _Descriptors:
        return self

    def __exit__(self, *exc: object) -> None:
        for destroy, descriptor in reversed(self.made):
            self.runtime.symbol(destroy)(descriptor)

    def convert(self, kind: str, value: Any) -> Any:
        """The C value of an argument."""
        if value is None:
            return 0 if kind in ("int", "uint", "bool", "float", "single") else self.ffi.NULL
        return getattr(self, f"_{kind}")(value)

    def _keep(self, kind: str, descriptor: Any) -> Any:
        if descriptor == self.ffi.NULL:
            raise NpuError.of(self.runtime, f"aclCreate{kind}", 0, "gave no descriptor")
        self.made.append((f"aclDestroy{kind}", descriptor))
        return descriptor

    def _tensor(self, value: Any) -> Any:
        if is_number(value):
            value = number_tensor(value, self.args)
        return self._keep("Tensor", self._create_tensor(value))

    def _create_tensor(self, value: NpuPayload) -> Any:
        ffi = self.ffi
        shape, item = value.shape, value.dtype.itemsize
        # Storages of some bytes more than whole elements (a view as another dtype) count whole ones.
        stored = ffi.new("int64_t[]", [value.storage.nbytes() // item])
        return self.runtime.symbol("aclCreateTensor")(
            ffi.new("int64_t[]", list(shape)),
            len(shape),
            acl_dtype(value.dtype),
            ffi.new("int64_t[]", list(value.stride)),
            value.offset,
            launchers.FORMATS.get(len(shape), 2),
            stored,
            1,
            ffi.cast("void *", value.storage.data_ptr()),
        )

    def _tensors(self, value: Sequence) -> Any:
        # The list owns its tensors: destroying it destroys them.
        items = [self._create_tensor(item) for item in value]
        array = self.ffi.new("aclTensor *[]", items)
        return self._keep("TensorList", self.runtime.symbol("aclCreateTensorList")(array, len(items)))

    def _scalar(self, value: Any) -> Any:
        return self._keep("Scalar", self._create_scalar(value))

    def _create_scalar(self, value: Any) -> Any:
        name, items = scalar(value)
        return self.runtime.symbol("aclCreateScalar")(
            self.ffi.cast("void *", self.ffi.from_buffer(items)), ACL_DTYPES[name]
        )

    def _scalars(self, value: Sequence) -> Any:
        array = self.ffi.new("aclScalar *[]", [self._create_scalar(item) for item in value])
        return self._keep("ScalarList", self.runtime.symbol("aclCreateScalarList")(array, len(value)))

    def _ints(self, value: Any) -> Any:
        items = [int(value)] if isinstance(value, numbers.Integral) else [int(item) for item in value]
        array = self.ffi.new("int64_t[]", items or 1)
        return self._keep("IntArray", self.runtime.symbol("aclCreateIntArray")(array, len(items)))

    def _bools(self, value: Sequence) -> Any:
        array = self.ffi.new("bool[]", [bool(item) for item in value] or 1)
        return self._keep("BoolArray", self.runtime.symbol("aclCreateBoolArray")(array, len(value)))

    def _floats(self, value: Sequence) -> Any:
        array = self.ffi.new("float[]", [float(item) for item in value] or 1)
        return self._keep("FloatArray", self.runtime.symbol("aclCreateFloatArray")(array, len(value)))

    def _int(self, value: Any) -> int:
        return int(value)

    def _uint(self, value: Any) -> int:
        return int(value) % (1 << 64)  # -1 means the largest, as in C

    def _bool(self, value: Any) -> bool:
        return bool(value)

    def _float(self, value: Any) -> float:
        return float(value)

    _single = _float

    def _text(self, value: str) -> Any:
        text = self.ffi.new("char[]", value.encode())
        self.kept.append(text)  # cffi frees it with the last reference
        return text

    def _dtype(self, value: Any) -> int:
        return acl_dtype(value)


def number_tensor(value: Any, args: Sequence) -> NpuPayload:
    """A 0-dim tensor of a number among arguments."""
    like = next(a for a in args if isinstance(a, NpuPayload))
    return scalar_tensor(value, getattr(_thread, "numbers", None) or like.dtype, like.device)


def scalar_tensor(value: Any, dtype: Any, where: Any) -> NpuPayload:
    """A 0-dim tensor that is filled on the device: no copy from the host, no wait."""
    from ..._generated.npu.functions import aclnnInplaceFillScalar

    made = empty((), (), dtype, where)
    launch(aclnnInplaceFillScalar, made, value)
    return made


# Errors


def _named(function: Function) -> str:
    operator = current_operator()
    return f"{operator} ({function.name})" if operator else function.name


def error_of(runtime: Any, function: Function, phase: str, status: int, args: Sequence) -> NpuError:
    detail = describe(args) + (_remedy(function, args) if status == _INVALID else "")
    return NpuError.of(runtime, f"{_named(function)}{': ' + phase if phase else ''}", status, detail)


_INVALID = 161002


def _remedy(function: Function, args: Sequence) -> str:
    """What to do about a dtype that the function does not take; nothing where the table does not say that one is."""
    from ..._generated.npu.dtypes import DTYPES as taken

    for (parameter, names), value in zip(*_tabled(function, taken.get(function.name, {}), args), strict=True):
        if isinstance(value, NpuPayload):
            name = str(value.dtype).rpartition(".")[2]
            if name not in names.split():
                what = f"; {function.name} does not take {name} for {parameter} on this chip, but {names.replace(' ', ', ')}: "
                nearest = _NEAREST.get(name, "float32")
                if name.startswith("complex") and nearest not in names.split():
                    return f"{what}take real and imaginary part apart by torch.view_as_real, or compute on the CPU"
                nearest = nearest if nearest in names.split() else names.split()[-1]
                return f"{what}convert the tensor, for instance by .to(torch.{nearest}), or compute on the CPU"
    return ""


_NEAREST = {
    "float64": "float32", "complex64": "complex128", "complex128": "complex64", "int8": "int64", "uint8": "int64", "int16": "int64", "int32": "int64", "bool": "int64",
}  # fmt: skip


def _tabled(function: Function, rows: dict[str, str], args: Sequence) -> tuple[list[tuple[str, str]], list]:
    """(parameters of the table with what they take, the arguments in their places)."""
    names = function.parameters
    chosen = [(name, rows[name]) for name in names if name in rows]
    return chosen, [args[names.index(name)] for name, _ in chosen]


def describe(args: Sequence) -> str:
    """Arguments for a message: tensors by dtype and shape."""
    return f"arguments: {', '.join(map(_described, args))}"


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        value = value._payload
    if isinstance(value, NpuPayload):
        name = str(value.dtype).rpartition(".")[2]
        return f"{name}{list(value.shape)}" + ("" if value.is_contiguous else f" strides {list(value.stride)}")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_described, value))}]"
    return repr(value)
