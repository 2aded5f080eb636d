"""The former names of tensors by their dtype, which messages use: `torch.FloatTensor`."""

from __future__ import annotations

from ._dtype import DTYPES
from ._sparse_payload import CooPayload
from ._tensor import Tensor

LEGACY = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
    "ComplexFloatTensor": "complex64",
    "ComplexDoubleTensor": "complex128",
}
_BY_DTYPE = {DTYPES[name]: legacy for legacy, name in LEGACY.items()}


def type_name(tensor: Tensor) -> str:
    """`torch.FloatTensor`, `torch.cuda.FloatTensor`, ..."""
    legacy = _BY_DTYPE.get(tensor._dtype, f"{tensor._dtype.cpp}Tensor")
    where = tensor.device.type
    if tensor._payload.__class__ is CooPayload:
        where = "sparse" if where == "cpu" else f"{where}.sparse"
    return f"torch.{legacy}" if where == "cpu" else f"torch.{where}.{legacy}"
