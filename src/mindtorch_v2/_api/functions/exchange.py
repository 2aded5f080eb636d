"""DLPack capsules of CPU tensors, made by numpy."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from ..._dtype import DTYPES


class DLDeviceType(IntEnum):
    """Device numbers of the DLPack standard."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14


# Note [Types that numpy does not exchange]. numpy exports and imports the types that it knows. Elements of others travel as integers
# of their width, and the type that stands in the capsule is set beside it: DLPack's struct begins with the address (8 bytes), the
# device (8) and the number of dimensions (4), which the type's code (1 byte) follows; a capsule with a version has 32 bytes before it.

_CODES = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13}
NAMES = {code: name for name, code in _CODES.items()}
UNSIGNED = 1


def code_in(capsule: Any) -> Any:
    """The byte in a capsule that says which type its elements are of."""
    import ctypes

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    versioned = '"dltensor_versioned"' in repr(capsule)
    start = get(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    return ctypes.c_uint8.from_address(start + 20 + (32 if versioned else 0))


def exported(tensor: Any, **options: Any) -> Any:
    """The capsule of a CPU tensor; `options` are those of numpy's `__dlpack__`. See Note [Types that numpy does not exchange]."""
    code = _CODES.get(str(tensor.dtype).removeprefix("torch."))
    if code is None:
        return tensor.numpy().__dlpack__(**options)
    width = DTYPES["uint16"] if tensor.dtype.itemsize == 2 else DTYPES["uint8"]
    capsule = tensor.detach().view(width).numpy().__dlpack__(**options)
    code_in(capsule).value = code
    return capsule
