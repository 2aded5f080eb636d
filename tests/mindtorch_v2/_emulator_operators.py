"""Operators of the emulator through their C ABI: tensors with descriptors, both phases, and comparison with numpy."""

from __future__ import annotations

import ctypes
import math
from ctypes import byref, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path

import ml_dtypes
import numpy as np
from _emulator import LIBRARY

BF16 = np.dtype(ml_dtypes.bfloat16)
CODES = {
    np.dtype(np.float32): 0,
    np.dtype(np.float16): 1,
    np.dtype(np.int8): 2,
    np.dtype(np.int32): 3,
    np.dtype(np.uint8): 4,
    np.dtype(np.int16): 6,
    np.dtype(np.int64): 9,
    np.dtype(np.float64): 11,
    np.dtype(np.bool_): 12,
    np.dtype(np.complex64): 16,
    np.dtype(np.complex128): 17,
    BF16: 27,
}
TOLERANCES = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 2e-6,
    "complex64": 2e-6,
    "float64": 1e-12,
    "complex128": 1e-12,
}
NULL_POINTER, INVALID, TILING = 161001, 161002, 561002


class Tensor:
    """An array on the device with its descriptor: every second element of a larger buffer where `strided`."""

    def __init__(self, emulator: Emulator, array: np.ndarray, strided: bool = False) -> None:
        self.emulator, self.dtype, self.shape = emulator, array.dtype, array.shape
        self.step = 2 if strided else 1
        self.offset = 1 if strided else 0
        self.storage = np.zeros(array.size * self.step + self.offset + 1, array.dtype)
        self.storage[self.offset :: self.step][: array.size] = array.reshape(-1)
        self.address = emulator.upload(self.storage)
        strides, stride = [], self.step
        for size in reversed(array.shape):
            strides.insert(0, stride)
            stride *= size
        self.handle = emulator.descriptor(
            array.dtype, array.shape, strides, self.offset, self.storage.size, self.address
        )

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> c_void_p:
        """Another descriptor of the same memory."""
        return self.emulator.descriptor(self.dtype, shape, strides, offset, self.storage.size, self.address)

    def read(self) -> np.ndarray:
        """The elements; all others of the buffer must be as they were."""
        stored = self.emulator.download(self.address, self.storage.size, self.dtype)
        mask = np.ones(stored.size, bool)
        count = math.prod(self.shape)
        mask[self.offset :: self.step][:count] = False
        assert (stored[mask] == self.storage[mask]).all(), "elements outside the view were written"
        return stored[self.offset :: self.step][:count].reshape(self.shape)


class Emulator:
    """The library with one stream of device 0."""

    def __init__(self, path: Path = LIBRARY) -> None:
        self.library = ctypes.CDLL(str(path))
        for name in ("aclCreateTensor", "aclCreateScalar", "aclCreateTensorList", "aclCreateIntArray"):
            getattr(self.library, name).restype = c_void_p
        assert self.library.aclInit(None) in (0, 100002)
        assert self.library.aclrtSetDevice(c_int(0)) == 0
        self.stream = c_void_p()
        assert self.library.aclrtCreateStream(byref(self.stream)) == 0

    def upload(self, array: np.ndarray) -> c_void_p:
        address = c_void_p()
        array = np.ascontiguousarray(array)
        size = max(array.nbytes, 1)
        assert self.library.aclrtMalloc(byref(address), c_uint64(size), c_int(0)) == 0
        if array.nbytes:
            source = c_void_p(array.ctypes.data)
            assert self.library.aclrtMemcpy(address, c_uint64(size), source, c_uint64(array.nbytes), c_int(1)) == 0
        return address

    def download(self, address: c_void_p, count: int, dtype: np.dtype) -> np.ndarray:
        array = np.empty(count, dtype)
        target, size = c_void_p(array.ctypes.data), c_uint64(array.nbytes)
        assert self.library.aclrtMemcpy(target, size, address, size, c_int(2)) == 0
        return array

    def descriptor(self, dtype, shape, strides, offset, storage_size, address) -> c_void_p:
        rank = len(shape)
        handle = self.library.aclCreateTensor(
            (c_int64 * rank)(*shape),
            c_uint64(rank),
            c_int(CODES[np.dtype(dtype)]),
            (c_int64 * rank)(*strides),
            c_int64(offset),
            c_int(2),
            (c_int64 * 1)(storage_size),
            c_uint64(1),
            address,
        )
        assert handle
        return c_void_p(handle)

    def scalar(self, value: bool | int | float | complex) -> c_void_p:
        if isinstance(value, bool):
            stored, code = np.array([value]), 12
        elif isinstance(value, int):
            stored, code = np.array([value], np.int64), 9
        elif isinstance(value, complex):
            stored, code = np.array([value], np.complex128), 17
        else:
            stored, code = np.array([value], np.float64), 11
        handle = self.library.aclCreateScalar(c_void_p(stored.ctypes.data), c_int(code))
        assert handle
        return c_void_p(handle)

    def list(self, *tensors: Tensor) -> c_void_p:
        handle = self.library.aclCreateTensorList(
            (c_void_p * len(tensors))(*[t.handle for t in tensors]), c_uint64(len(tensors))
        )
        assert handle
        return c_void_p(handle)

    def tensor(self, values, dtype=None, strided: bool = False) -> Tensor:
        return Tensor(self, np.asarray(values, dtype), strided)

    def empty(self, shape: tuple[int, ...], dtype, strided: bool = False) -> Tensor:
        """Filled with 77, so that a kernel that writes nothing is seen."""
        return Tensor(self, np.full(shape, 77 if np.dtype(dtype) != bool else True, dtype), strided)

    def phase1(self, name: str, *arguments) -> tuple[int, int, c_void_p]:
        size, executor = c_uint64(), c_void_p()
        handles = [a.handle if isinstance(a, Tensor) else a for a in arguments]
        status = getattr(self.library, f"aclnn{name}GetWorkspaceSize")(*handles, byref(size), byref(executor))
        return status, size.value, executor

    def __call__(self, name: str, *arguments) -> None:
        status, size, executor = self.phase1(name, *arguments)
        assert status == 0, f"aclnn{name}: {status}"
        workspace = self.upload(np.zeros(size, np.uint8)) if size else c_void_p()
        assert getattr(self.library, f"aclnn{name}")(workspace, c_uint64(size), executor, self.stream) == 0
        assert self.library.aclrtSynchronizeStream(self.stream) == 0

    def fails(self, name: str, *arguments) -> int:
        status, _, _ = self.phase1(name, *arguments)
        assert status != 0, f"aclnn{name} accepted invalid arguments"
        return status


def compare(found: np.ndarray, expected: np.ndarray, scale: float = 1.0) -> None:
    """Equal to the dtype's precision; NaN equals NaN."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    tolerance = TOLERANCES.get(found.dtype.name, 0) * scale
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)


def sample(shape: tuple[int, ...], dtype, seed: int = 0, low: float = -3, high: float = 3) -> np.ndarray:
    generator = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind in "iu":
        return generator.integers(max(0, int(low)) if dtype.kind == "u" else int(low), int(high) + 1, shape).astype(
            dtype
        )
    if dtype.kind == "c":
        return (generator.uniform(low, high, shape) + 1j * generator.uniform(low, high, shape)).astype(dtype)
    return generator.uniform(low, high, shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


erf, erfc, lgamma = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc, math.lgamma))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FLOATING = [np.float32, np.float16, BF16]
UNARY = {
    "Abs": (np.abs, -3, 3),
    "Acos": (np.arccos, -1, 1),
    "Acosh": (np.arccosh, 1, 4),
    "Asin": (np.arcsin, -1, 1),
    "Asinh": (np.arcsinh, -3, 3),
    "Atan": (np.arctan, -3, 3),
    "Atanh": (np.arctanh, -0.9, 0.9),
    "Ceil": (np.ceil, -3, 3),
    "Cos": (np.cos, -3, 3),
    "Cosh": (np.cosh, -3, 3),
    "Erf": (erf, -3, 3),
    "Erfc": (erfc, -3, 3),
    "Exp": (np.exp, -3, 3),
    "Exp2": (np.exp2, -3, 3),
    "Expm1": (np.expm1, -3, 3),
    "Floor": (np.floor, -3, 3),
    "Frac": (lambda x: x - np.trunc(x), -3, 3),
    "Log": (np.log, 0.1, 3),
    "Log10": (np.log10, 0.1, 3),
    "Log1p": (np.log1p, -0.9, 3),
    "Log2": (np.log2, 0.1, 3),
    "Neg": (np.negative, -3, 3),
    "Reciprocal": (np.reciprocal, 0.2, 3),
    "Round": (np.rint, -3, 3),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 3),
    "Sigmoid": (sigmoid, -3, 3),
    "Sign": (np.sign, -3, 3),
    "Sin": (np.sin, -3, 3),
    "Sinc": (np.sinc, -3, 3),
    "Sinh": (np.sinh, -3, 3),
    "Sqrt": (np.sqrt, 0, 3),
    "Square": (np.square, -3, 3),
    "Tan": (np.tan, -1.4, 1.4),
    "Tanh": (np.tanh, -3, 3),
    "Trunc": (np.trunc, -3, 3),
    "Relu": (lambda x: np.maximum(x, 0), -3, 3),
    "Gelu": (lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, -3, 3),
    "Silu": (lambda x: x * sigmoid(x), -3, 3),
    "Mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), -3, 3),
    "Selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), -3, 3),
    "Hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, -4, 4),
    "Hardsigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, -4, 4),
    "LogSigmoid": (lambda x: -np.log1p(np.exp(-x)), -3, 3),
}
