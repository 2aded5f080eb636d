"""Dtypes and numbers as ACL has them."""

from __future__ import annotations

import numbers
from array import array
from typing import Any

import numpy as np

ACL_DTYPES = {
    "float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "uint16": 7, "uint32": 8, "int64": 9, "uint64": 10, "float64": 11,
    "bool": 12, "complex64": 16, "complex128": 17, "bfloat16": 27,
}  # fmt: skip


def acl_dtype(dtype: Any) -> int:
    """The number of a dtype in ACL. RuntimeError for one that NPUs do not have."""
    name = str(dtype).rpartition(".")[2]
    if name not in ACL_DTYPES:
        raise RuntimeError(f"tensors of dtype {dtype} are not supported on an NPU")
    return ACL_DTYPES[name]


def is_number(value: Any) -> bool:
    """Whether an argument is a Python number in place of a tensor."""
    return isinstance(value, (numbers.Number, np.number)) and not isinstance(value, np.ndarray)


def scalar(value: Any) -> tuple[str, Any]:
    """The dtype of the ACL scalar for a number, by name, and its bytes."""
    if isinstance(value, (bool, np.bool_)):
        return "bool", bytes([bool(value)])
    if isinstance(value, numbers.Integral):
        return "int64", array("q", [_signed(int(value))])
    if isinstance(value, complex):
        return "complex128", array("d", [value.real, value.imag])
    return "float64", array("d", [float(value)])


def _signed(value: int) -> int:
    """An int64: numbers beyond (of uint64) as the same bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
