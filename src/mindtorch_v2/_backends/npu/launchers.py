"""Launches by the extension: what a function is given, as `native/runtime/launching.c` reads it.

Each argument is a letter with what it stands for: `w` a word (an integer, a bool, NULL), `d` and `f` a double and a float, `t` a tensor (shape, strides, dtype, format) whose address, offset
and number of stored elements the call gives, `s` a scalar (bytes, dtype), `T` and `S` lists of those, `I`, `B` and `F` the bytes of an array of integers, bools and floats, `C` a text.
"""

from __future__ import annotations

import numbers
import os
from array import array
from collections.abc import Sequence
from typing import Any

from ..._dispatch import native
from . import dtypes
from .function import Function
from .payload import NpuPayload
from .runtime import get_runtime

FORMATS = {3: 47, 4: 0, 5: 30}  # NCL, NCHW, NCDHW; ND (2) for all other ranks
_FUNCTIONS = (
    "aclCreateTensor aclDestroyTensor aclCreateScalar aclDestroyScalar aclDestroyAclOpExecutor aclCreateTensorList aclDestroyTensorList aclCreateScalarList aclDestroyScalarList "
    "aclCreateIntArray aclDestroyIntArray aclCreateBoolArray aclDestroyBoolArray aclCreateFloatArray aclDestroyFloatArray aclrtSynchronizeStream aclGetViewShape"
).split()
_REPEATING = "aclSetAclOpExecutorRepeatable", "aclSetTensorAddr"  # acl_meta.h of CANN's public opbase
_calls: dict[int, Any] = {}


def launches() -> bool:
    """Whether the extension is there, and launches on this processor."""
    return bool(getattr(native.extension, "LAUNCHES", 0))


def launcher(function: Function, arguments: tuple, position: int | None = None) -> Any:
    """What runs both phases of a function; with `position` it gives the shape of the tensor there."""
    runtime = get_runtime()
    calls = _calls.get(id(runtime))
    if calls is None:
        calls = _calls[id(runtime)] = native.extension.Calls(*(_address(runtime.symbol(name)) for name in _FUNCTIONS))
    phases = function.addresses
    if phases is None:
        phases = function.addresses = tuple(_address(phase) for phase in function.phases)
    return native.extension.Launcher(calls, phases, arguments, -1 if position is None else position)


def repeat(launcher: Any, function: Function, arguments: Sequence) -> None:
    """Let a launcher keep its executor between launches, where this CANN has what that takes. Positions are those among the function's tensors, absent ones counted."""
    runtime = get_runtime()
    if not all(map(runtime.has, _REPEATING)) or os.environ.get("MINDTORCH_NPU_REPEAT") == "0":
        return
    tensors = [value for kind, value in zip(function.kinds, arguments, strict=True) if kind == "tensor"]
    positions = tuple(place for place, value in enumerate(tensors) if value is not None)
    launcher.repeat(*(_address(runtime.symbol(name)) for name in _REPEATING), positions)


def _address(symbol: Any) -> int:
    ffi = get_runtime().ffi
    return int(ffi.cast("uintptr_t", symbol))


def argument(kind: str, value: Any, tensors: list[NpuPayload]) -> tuple[str, Any]:
    """A C argument of a kind (`codegen/aclnn.py` has them); its tensors are added to the list."""
    if kind == "tensor":
        if value is None:
            return "w", 0
        tensors.append(value)
        return "t", _tensor(value)
    if kind == "single":
        return "f", 0.0 if value is None else float(value)
    if kind == "float":
        return "d", 0.0 if value is None else float(value)
    if value is None:
        return "w", 0
    return _OTHERS[kind](value, tensors)


def _tensor(value: NpuPayload) -> tuple:
    shape = value.shape
    return tuple(shape), tuple(value.stride), dtypes.acl_dtype(value.dtype), FORMATS.get(len(shape), 2)


def _tensors(value: Sequence, tensors: list[NpuPayload]) -> tuple[str, tuple]:
    tensors += value
    return "T", tuple(map(_tensor, value))


def _scalar(value: Any) -> tuple[bytes, int]:
    kind, items = dtypes.scalar(value)
    return bytes(items), dtypes.ACL_DTYPES[kind]


def _ints(value: Any, tensors: list) -> tuple[str, bytes]:
    items = [int(value)] if isinstance(value, numbers.Integral) else [int(item) for item in value]
    return "I", bytes(array("q", items))


_OTHERS = {
    "tensors": _tensors,
    "scalar": lambda value, tensors: ("s", _scalar(value)),
    "scalars": lambda value, tensors: ("S", tuple(map(_scalar, value))),
    "ints": _ints,
    "bools": lambda value, tensors: ("B", bytes(bool(item) for item in value)),
    "floats": lambda value, tensors: ("F", bytes(array("f", value))),
    "int": lambda value, tensors: ("w", int(value)),
    "uint": lambda value, tensors: ("w", int(value)),  # -1 means the largest, as in C
    "bool": lambda value, tensors: ("w", int(bool(value))),
    "text": lambda value, tensors: ("C", value.encode()),
    "dtype": lambda value, tensors: ("w", dtypes.acl_dtype(value)),
}


def numbers_of(tensors: list[NpuPayload]) -> list[int]:
    """Address, offset and number of stored elements of each tensor. Storages of some bytes more than whole elements (a view as another dtype) count whole ones."""
    found: list[int] = []
    for tensor in tensors:
        storage = tensor.storage
        found += (storage.data_ptr(), tensor.offset, storage.nbytes() // tensor.dtype.itemsize)
    return found
