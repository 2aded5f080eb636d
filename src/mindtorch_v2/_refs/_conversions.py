"""Conversions to another dtype as functions: `char(x)` is `x.to(torch.int8)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _dtype, complex, polar
from .._layout import preserve_format
from .._tensor import Tensor


def _conversion(kind: _dtype.dtype) -> Callable:
    def convert(a: Tensor, memory_format: Any = preserve_format) -> Tensor:
        return a.to(kind, memory_format=memory_format)

    return convert


bfloat16 = _conversion(_dtype.bfloat16)
bool = _conversion(_dtype.bool)
byte = _conversion(_dtype.uint8)
cdouble = _conversion(_dtype.complex128)
cfloat = _conversion(_dtype.complex64)
chalf = _conversion(_dtype.complex32)
char = _conversion(_dtype.int8)
double = _conversion(_dtype.float64)
float = _conversion(_dtype.float32)
half = _conversion(_dtype.float16)
int = _conversion(_dtype.int32)
long = _conversion(_dtype.int64)
short = _conversion(_dtype.int16)

__all__ = [
    "bfloat16",
    "bool",
    "byte",
    "cdouble",
    "cfloat",
    "chalf",
    "char",
    "complex",
    "double",
    "float",
    "half",
    "int",
    "long",
    "polar",
    "short",
]
