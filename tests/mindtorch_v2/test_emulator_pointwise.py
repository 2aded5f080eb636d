"""The emulator's pointwise, creating and random operators, called through their C ABI and compared with numpy."""

from __future__ import annotations

import ctypes
import math
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

LIBRARY = Path(__file__).parents[2] / "src/mindtorch_v2/_backends/npu/emulator/build/libascend_emulator.so"

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the Ascend emulator is not built (make emulator)")

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

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(LIBRARY))
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


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator()


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


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("name", UNARY)
def test_unary(emulator, name, strided):
    function, low, high = UNARY[name]
    for dtype in FLOATING:
        x = sample((3, 5), dtype, low=low, high=high)
        out = emulator.empty((3, 5), dtype, strided)
        emulator(name, emulator.tensor(x, strided=strided), out)
        compare(out.read(), function(wide(x)), 4)


def test_unary_of_special_values(emulator):
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1], np.float32)
    with np.errstate(all="ignore"):
        for name, expected in {
            "Erfinv": [0, -0.0, np.nan, np.nan, np.nan, np.inf],
            "Lgamma": [np.inf, np.inf, np.inf, np.inf, np.nan, 0],
            "Sign": [0, 0, 1, -1, 0, 1],
            "Relu": [0, 0, np.inf, 0, np.nan, 1],
            "Log": np.log(x),
        }.items():
            out = emulator.empty(x.shape, np.float32)
            emulator(name, emulator.tensor(x), out)
            compare(out.read(), np.array(expected))
    for name, expected in {
        "IsFinite": np.isfinite(x),
        "IsInf": np.isinf(x),
        "IsPosInf": np.isposinf(x),
        "IsNegInf": np.isneginf(x),
        "Signbit": np.signbit(x),
    }.items():
        out = emulator.empty(x.shape, bool)
        emulator(name, emulator.tensor(x), out)
        compare(out.read(), expected)
    out = emulator.empty(x.shape, np.float32)
    emulator("NanToNum", emulator.tensor(x), c_float(2), c_float(7), c_float(-7), out)
    compare(out.read(), np.nan_to_num(x, nan=2, posinf=7, neginf=-7))


def test_inverse_error_function_undoes_the_error_function(emulator):
    y = np.array([-0.999999, -0.7, -1e-9, 0.3, 0.99, 0.9999999], np.float32)
    out = emulator.empty(y.shape, np.float32)
    emulator("Erfinv", emulator.tensor(y), out)
    x = wide(out.read())
    np.testing.assert_allclose(1 - erf(np.abs(x)), 1 - np.abs(wide(y)), rtol=1e-5, atol=1e-12)
    assert (np.sign(x) == np.sign(y)).all()


def test_unary_of_integers_and_complex_numbers(emulator):
    whole = np.array([-4, 0, 9], np.int64)
    for name, function, dtype in [
        ("Sqrt", np.sqrt, np.float32),
        ("Exp", np.exp, np.float32),
        ("Neg", np.negative, np.int64),
    ]:
        out = emulator.empty((3,), dtype)
        with np.errstate(invalid="ignore"):
            emulator(name, emulator.tensor(whole), out)
            compare(out.read(), function(whole), 4)
    z = sample((4,), np.complex64)
    for name, function in [
        ("Sqrt", np.sqrt),
        ("Exp", np.exp),
        ("Reciprocal", np.reciprocal),
        ("Sin", np.sin),
        ("Tanh", None),
    ]:
        out = emulator.empty((4,), np.complex64)
        if function is None:
            assert emulator.fails(name, emulator.tensor(z), out) == INVALID
        else:
            emulator(name, emulator.tensor(z), out)
            compare(out.read(), function(z.astype(np.complex128)), 4)
    out = emulator.empty((4,), np.float32)
    emulator("Abs", emulator.tensor(z), out)
    compare(out.read(), np.abs(z), 4)
    emulator("Real", emulator.tensor(z), out)
    compare(out.read(), z.real)


def test_rounding_to_decimals_and_logit(emulator):
    x = np.array([1.25, -2.375, 123.456, 0.5], np.float64)
    for decimals in (0, 1, 2, -1):
        out = emulator.empty((4,), np.float64)
        emulator("RoundDecimals", emulator.tensor(x), c_int64(decimals), out)
        compare(out.read(), np.round(x, decimals))
    p = np.array([0.0, 0.2, 0.9, 1.0], np.float32)
    out = emulator.empty((4,), np.float32)
    emulator("Logit", emulator.tensor(p), c_double(0.1), out)
    clipped = np.clip(wide(p), 0.1, 0.9)
    compare(out.read(), np.log(clipped / (1 - clipped)), 4)


BINARY = {
    "Mul": np.multiply,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "FloorDivide": np.floor_divide,
    "FmodTensor": np.fmod,
    "RemainderTensorTensor": np.remainder,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int64, np.int32])
@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts(emulator, name, dtype):
    a, b = sample((2, 1, 4), dtype, 1), sample((3, 1), dtype, 2)
    b[b == 0] = 2
    out = emulator.empty((2, 3, 4), dtype, strided=True)
    emulator(name, emulator.tensor(a, strided=True), emulator.tensor(b), out)
    if np.dtype(dtype).kind == "i":
        expected = BINARY[name](a, b)
    else:
        expected = BINARY[name](wide(a), wide(b))
    compare(out.read(), expected)


def test_addition_with_alpha_and_promotion(emulator):
    a, b = sample((3, 4), np.float32, 1), sample((4,), np.float32, 2)
    for name, expected in [
        ("Add", wide(a) + 2.5 * wide(b)),
        ("Sub", wide(a) - 2.5 * wide(b)),
        ("Rsub", wide(b) - 2.5 * wide(a)),
    ]:
        out = emulator.empty((3, 4), np.float32)
        emulator(name, emulator.tensor(a), emulator.tensor(b), emulator.scalar(2.5), out)
        compare(out.read(), expected, 4)
    for name, expected in [("Adds", wide(a) + 6), ("Subs", wide(a) - 6), ("Rsubs", 3 - 2 * wide(a))]:
        out = emulator.empty((3, 4), np.float32)
        emulator(name, emulator.tensor(a), emulator.scalar(3), emulator.scalar(2), out)
        compare(out.read(), expected, 4)
    whole = np.arange(12).reshape(3, 4)
    out = emulator.empty((3, 4), np.float32)
    emulator("Add", emulator.tensor(whole), emulator.tensor(a), emulator.scalar(1), out)
    compare(out.read(), whole + wide(a), 4)
    large = np.array([2**62 + 1, -(2**62) - 3])
    out = emulator.empty((2,), np.int64)
    emulator("Add", emulator.tensor(large), emulator.tensor(large), emulator.scalar(-1), out)
    compare(out.read(), np.zeros(2))
    emulator("Adds", emulator.tensor(large), emulator.scalar(1), emulator.scalar(1), out)
    assert (out.read() == large + 1).all()
    bits = np.array([True, False])
    truth = emulator.empty((2,), bool)
    emulator("Add", emulator.tensor(bits), emulator.tensor(bits), emulator.scalar(True), truth)
    assert (truth.read() == bits).all()
    emulator("Add", emulator.tensor(bits), emulator.tensor(~bits), emulator.scalar(1), truth)
    assert truth.read().all()
    real = emulator.scalar(1.0)  # does not convert to bool
    assert emulator.fails("Add", emulator.tensor(bits), emulator.tensor(bits), real, truth) == INVALID


def test_division_and_its_modes(emulator):
    a, b = np.array([7, -7, 8, -8], np.int64), np.array([2, 2, -3, -3], np.int64)
    out = emulator.empty((4,), np.float32)
    emulator("Div", emulator.tensor(a), emulator.tensor(b), out)
    compare(out.read(), a / b)
    emulator("Divs", emulator.tensor(a), emulator.scalar(2), out)
    compare(out.read(), a / 2)
    for mode, expected in [(1, np.trunc(a / b)), (2, a // b)]:
        whole = emulator.empty((4,), np.int64)
        emulator("DivMod", emulator.tensor(a), emulator.tensor(b), c_int(mode), whole)
        compare(whole.read(), expected)
    emulator("DivMods", emulator.tensor(a), emulator.scalar(4), c_int(2), whole)
    compare(whole.read(), a // 4)
    assert emulator.fails("DivMod", emulator.tensor(a), emulator.tensor(b), c_int(3), whole) == INVALID
    x = np.array([7.5, -7.5, 0.0, 1.0])
    quotient = emulator.empty((4,), np.float64)
    emulator("FloorDivides", emulator.tensor(x), emulator.scalar(2.0), quotient)
    compare(quotient.read(), x // 2)
    emulator("RemainderScalarTensor", emulator.scalar(5.5), emulator.tensor(np.array([2.0, -2.0, 3.0, -4.0])), quotient)
    compare(quotient.read(), np.remainder(5.5, np.array([2.0, -2.0, 3.0, -4.0])))
    emulator("FmodScalar", emulator.tensor(x), emulator.scalar(2.0), quotient)
    compare(quotient.read(), np.fmod(x, 2))
    emulator("RemainderTensorScalar", emulator.tensor(x), emulator.scalar(-2.0), quotient)
    compare(quotient.read(), np.remainder(x, -2))


def test_powers_and_others_of_two(emulator):
    x, y = sample((5,), np.float32, 1, 0.1, 3), sample((5,), np.float32, 2)
    a, b = wide(x), wide(y)
    for name, arguments, expected in [
        ("PowTensorTensor", (emulator.tensor(x), emulator.tensor(y)), a**b),
        ("PowTensorScalar", (emulator.tensor(x), emulator.scalar(2)), a**2),
        ("PowScalarTensor", (emulator.scalar(2.0), emulator.tensor(y)), 2**b),
        ("Atan2", (emulator.tensor(y), emulator.tensor(x)), np.arctan2(b, a)),
        ("LogAddExp", (emulator.tensor(x), emulator.tensor(y)), np.logaddexp(a, b)),
        ("XLogYTensor", (emulator.tensor(y), emulator.tensor(x)), b * np.log(a)),
        ("Heaviside", (emulator.tensor(y), emulator.tensor(x)), np.heaviside(b, a)),
    ]:
        out = emulator.empty((5,), np.float32)
        emulator(name, *arguments, out)
        compare(out.read(), expected, 8)
    base = np.array([2, -1, 3, 0], np.int64)
    out = emulator.empty((4,), np.int64)
    emulator("PowTensorTensor", emulator.tensor(base), emulator.tensor(np.array([10, 3, 0, 5])), out)
    assert out.read().tolist() == [1024, -1, 1, 0]
    emulator("Gcd", emulator.tensor(np.array([12, -18, 0, 7])), emulator.tensor(np.array([18, 27, 5, 0])), out)
    assert out.read().tolist() == [6, 9, 5, 7]
    emulator("LeftShift", emulator.tensor(np.array([1, 3, -1, 5])), emulator.tensor(np.array([4, 1, 2, 64])), out)
    assert out.read().tolist() == [16, 6, -4, 0]


def test_three_tensors(emulator):
    x, y, z = (sample((2, 3), np.float32, s, 0.5, 3) for s in (1, 2, 3))
    a, b, c = wide(x), wide(y), wide(z)
    tensors = [emulator.tensor(t) for t in (x, y, z)]
    out = emulator.empty((2, 3), np.float32)
    emulator("Addcmul", *tensors, emulator.scalar(0.5), out)
    compare(out.read(), a + 0.5 * b * c, 4)
    emulator("Addcdiv", *tensors, emulator.scalar(0.5), out)
    compare(out.read(), a + 0.5 * b / c, 4)
    emulator("Lerp", *tensors, out)
    compare(out.read(), a + c * (b - a), 8)
    emulator("Lerps", tensors[0], tensors[1], emulator.scalar(0.25), out)
    compare(out.read(), a + 0.25 * (b - a), 4)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int64, bool])
def test_comparisons(emulator, dtype):
    a, b = sample((2, 3), dtype, 1), sample((3,), dtype, 2)
    b[0] = a[0, 0]
    for name, function in [
        ("Eq", np.equal), ("Ne", np.not_equal), ("Lt", np.less), ("Le", np.less_equal), ("Gt", np.greater), ("Ge", np.greater_equal)
    ]:  # fmt: skip
        out = emulator.empty((2, 3), bool, strided=True)
        emulator(f"{name}Tensor", emulator.tensor(a, strided=True), emulator.tensor(b), out)
        assert (out.read() == function(wide(a), wide(b))).all()
        emulator(f"{name}Scalar", emulator.tensor(a), emulator.scalar(1), out)
        assert (out.read() == function(wide(a), 1)).all()


def test_a_number_is_compared_in_the_tensors_precision(emulator):
    out = emulator.empty((1,), bool)
    for dtype in FLOATING:
        emulator("EqScalar", emulator.tensor([0.1], dtype), emulator.scalar(0.1), out)
        assert out.read()[0]


def test_closeness_and_equality(emulator):
    a = np.array([1, np.nan, np.inf, 2, 100], np.float32)
    b = np.array([1, np.nan, np.inf, 2.1, 100.0001], np.float32)
    out = emulator.empty((5,), bool)
    for equal_nan in (False, True):
        emulator(
            "IsClose", emulator.tensor(a), emulator.tensor(b), c_double(1e-5), c_double(1e-8), c_bool(equal_nan), out
        )
        assert (out.read() == np.isclose(a, b, equal_nan=equal_nan)).all()
    one = emulator.empty((1,), bool)
    for x, y, expected in [([1, 2], [1, 2], True), ([1, 2], [1, 3], False), ([1, 2], [[1, 2]], False)]:
        emulator("Equal", emulator.tensor(np.array(x)), emulator.tensor(np.array(y)), one)
        assert one.read()[0] == expected


def test_logic_and_bits(emulator):
    x, y = np.array([0, 1.5, 0, -2], np.float32), np.array([0, 0, 3, 1], np.float32)
    out = emulator.empty((4,), bool)
    for name, function in [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)]:
        emulator(f"Logical{name}", emulator.tensor(x), emulator.tensor(y), out)
        assert (out.read() == function(x, y)).all()
    emulator("LogicalNot", emulator.tensor(x), out)
    assert (out.read() == ~x.astype(bool)).all()
    a, b = np.array([12, -7, 0, 255], np.int32), np.array([10, 3, -1, 15], np.int32)
    whole = emulator.empty((4,), np.int32)
    for name, function in [("And", np.bitwise_and), ("Or", np.bitwise_or), ("Xor", np.bitwise_xor)]:
        emulator(f"Bitwise{name}Tensor", emulator.tensor(a), emulator.tensor(b), whole)
        assert (whole.read() == function(a, b)).all()
        emulator(f"Bitwise{name}Scalar", emulator.tensor(a), emulator.scalar(6), whole)
        assert (whole.read() == function(a, 6)).all()
    emulator("BitwiseNot", emulator.tensor(a), whole)
    assert (whole.read() == ~a).all()
    bits = np.array([True, False, True, True])
    emulator("BitwiseNot", emulator.tensor(bits), out)
    assert (out.read() == ~bits).all()


def test_bounds(emulator):
    x = np.array([-2, 0.5, np.nan, 3], np.float32)
    out = emulator.empty((4,), np.float32)
    low, high = emulator.scalar(-1), emulator.scalar(1.5)
    for name, arguments, expected in [
        ("Clamp", (low, high), np.clip(x, -1, 1.5)),
        ("Clamp", (None, high), np.minimum(x, 1.5)),
        ("ClampMin", (low,), np.maximum(x, -1)),
        ("ClampMax", (high,), np.minimum(x, 1.5)),
        ("ClampTensor", (emulator.tensor([-1], np.float32), emulator.tensor([2], np.float32)), np.clip(x, -1, 2)),
        ("ClampTensor", (emulator.tensor([-1], np.float32), None), np.maximum(x, -1)),
        ("ClampMinTensor", (emulator.tensor([-1], np.float32),), np.maximum(x, -1)),
        ("ClampMaxTensor", (emulator.tensor([2], np.float32),), np.minimum(x, 2)),
        ("Hardtanh", (low, high), np.clip(x, -1, 1.5)),
    ]:
        emulator(name, emulator.tensor(x), *arguments, out)
        compare(out.read(), expected)
    assert emulator.fails("Clamp", emulator.tensor(x), None, None, out) == NULL_POINTER
    assert emulator.fails("ClampTensor", emulator.tensor(x), None, None, out) == NULL_POINTER


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int64, bool])
def test_selection(emulator, dtype):
    mask = np.array([[True, False, True], [False, True, True]])
    a, b = sample((2, 3), dtype, 1), sample((3,), dtype, 2)
    out = emulator.empty((2, 3), dtype, strided=True)
    emulator("SWhere", emulator.tensor(mask), emulator.tensor(a), emulator.tensor(b), out)
    assert (out.read() == np.where(mask, a, b)).all()
    target = emulator.tensor(a, strided=True)
    emulator("InplaceMaskedFillScalar", target, emulator.tensor(mask), emulator.scalar(True if dtype is bool else 2))
    assert (target.read() == np.where(mask, np.array(1 if dtype is bool else 2, dtype), a)).all()
    target = emulator.tensor(a)
    emulator("InplaceMaskedFillTensor", target, emulator.tensor(mask), emulator.tensor(np.array(1, dtype)))
    assert (target.read() == np.where(mask, np.array(1, dtype), a)).all()
    source = sample((6,), dtype, 3)
    target = emulator.tensor(a, strided=True)
    emulator("InplaceMaskedScatter", target, emulator.tensor(mask), emulator.tensor(source))
    expected = a.copy()
    expected[mask] = source[: mask.sum()]
    assert (target.read() == expected).all()
    selected = emulator.empty((6,), dtype)
    emulator("MaskedSelect", emulator.tensor(a, strided=True), emulator.tensor(mask), selected)
    dims, rank = POINTER(c_int64)(), c_uint64()
    assert emulator.library.aclGetViewShape(selected.handle, byref(dims), byref(rank)) == 0
    assert (rank.value, dims[0]) == (1, mask.sum())
    assert (selected.read()[: mask.sum()] == a[mask]).all()


def test_conversion_and_copies(emulator):
    x = np.array([[0, 1.7, -2.3], [100, 0.4, 3]], np.float32)
    for dtype in (np.float16, BF16, np.float64, np.int64, np.int8, bool, np.complex64):
        out = emulator.empty((2, 3), dtype, strided=True)
        emulator("Cast", emulator.tensor(x), c_int(CODES[np.dtype(dtype)]), out)
        assert (out.read() == x.astype(dtype)).all()
        target = emulator.empty((2, 3), dtype, strided=dtype is not np.complex64)
        emulator("InplaceCopy", target, emulator.tensor(x[0]))
        assert (target.read() == np.broadcast_to(x[0].astype(dtype), (2, 3))).all()
    exact = np.array([2**53 + 1, -(2**63)])
    out = emulator.empty((2,), np.int64)
    emulator("InplaceCopy", out, emulator.tensor(exact))
    assert (out.read() == exact).all()
    target = emulator.tensor(np.arange(6.0).reshape(2, 3))
    emulator("InplaceCopy", target.view((3, 2), (1, 3)), emulator.tensor(np.arange(6.0).reshape(3, 2)))
    assert (target.read() == np.arange(6.0).reshape(3, 2).T).all()
    strided = emulator.empty((2,), np.complex64, strided=True)
    assert emulator.fails("InplaceCopy", strided, emulator.tensor(np.array([1j], np.complex64))) == INVALID
    assert emulator.fails("Cast", emulator.tensor(x), c_int(0), emulator.empty((2, 3), np.float16)) == INVALID


def test_creation(emulator):
    for dtype in (np.float32, np.float16, BF16, np.int64, bool):
        target = emulator.empty((2, 3), dtype, strided=True)
        for name, arguments, value in [
            ("InplaceZero", (), 0),
            ("InplaceOne", (), 1),
            ("InplaceFillScalar", (emulator.scalar(True),), 1),
            ("InplaceFillTensor", (emulator.tensor(np.array(0, dtype)),), 0),
        ]:
            emulator(name, target, *arguments)
            assert (target.read() == np.full((2, 3), value, dtype)).all()
    out = emulator.empty((4,), np.int64)
    emulator("Arange", emulator.scalar(1), emulator.scalar(12), emulator.scalar(3), out)
    assert out.read().tolist() == [1, 4, 7, 10]
    out = emulator.empty((4,), np.float32)
    emulator("Arange", emulator.scalar(1.0), emulator.scalar(-1.0), emulator.scalar(-0.5), out)
    assert out.read().tolist() == [1, 0.5, 0, -0.5]
    out = emulator.empty((5,), np.float32)
    emulator("Range", emulator.scalar(1.0), emulator.scalar(-1.0), emulator.scalar(-0.5), out)
    assert out.read().tolist() == [1, 0.5, 0, -0.5, -1]
    emulator("Linspace", emulator.scalar(0.0), emulator.scalar(1.0), c_int64(5), out)
    compare(out.read(), np.linspace(0, 1, 5))
    assert emulator.fails("Linspace", emulator.scalar(0.0), emulator.scalar(1.0), c_int64(4), out) == INVALID
    assert emulator.fails("Arange", emulator.scalar(0), emulator.scalar(5), emulator.scalar(0), out) == INVALID
    assert emulator.fails("Arange", emulator.scalar(0), emulator.scalar(-5), emulator.scalar(1), out) == INVALID
    square = emulator.empty((2, 3), np.float16)
    emulator("Eye", c_int64(2), c_int64(3), square)
    compare(square.read(), np.eye(2, 3))


def numeric_gradient(function, x: np.ndarray) -> np.ndarray:
    return (function(x + 1e-6) - function(x - 1e-6)) / 2e-6


def softplus(x, beta=1.0):
    return np.log1p(np.exp(x * beta)) / beta


def test_activations_with_numbers_and_their_gradients(emulator):
    x, g = sample((4, 6), np.float32, 1), sample((4, 6), np.float32, 2)
    a, upstream = wide(x), wide(g)
    grad, data = emulator.tensor(g, strided=True), emulator.tensor(x)
    number = emulator.scalar
    result = UNARY["Selu"][0](a)
    cases = {
        "LeakyRelu": (
            (data, number(0.1)),
            (grad, data, number(0.1), c_bool(False)),
            lambda v: np.where(v > 0, v, 0.1 * v),
        ),
        "Softplus": (
            (data, number(2.0), number(20.0)),
            (grad, data, number(2.0), number(20.0)),
            lambda v: softplus(v, 2),
        ),
        "Elu": (
            (data, number(0.7), number(1.2), number(0.5)),
            (grad, number(0.7), number(1.2), number(0.5), c_bool(False), data),
            lambda v: 1.2 * np.where(v > 0, v, 0.7 * np.expm1(0.5 * v)),
        ),
        "Gelu": ((data,), (grad, data), UNARY["Gelu"][0]),
        "Silu": ((data,), (grad, data), UNARY["Silu"][0]),
        "Mish": ((data,), (grad, data), UNARY["Mish"][0]),
        "Hardswish": ((data,), (grad, data), UNARY["Hardswish"][0]),
        "Hardsigmoid": ((data,), (grad, data), UNARY["Hardsigmoid"][0]),
        "Selu": ((data,), (grad, emulator.tensor(result.astype(np.float32))), UNARY["Selu"][0]),
        "Sigmoid": ((data,), (grad, emulator.tensor(sigmoid(a).astype(np.float32))), sigmoid),
        "Tanh": ((data,), (grad, emulator.tensor(np.tanh(a).astype(np.float32))), np.tanh),
        "LogSigmoid": ((data,), (grad, data, emulator.empty((4, 6), np.float32)), UNARY["LogSigmoid"][0]),
        "Hardtanh": (
            (data, number(-1.0), number(1.5)),
            (grad, data, number(-1.0), number(1.5)),
            lambda v: np.clip(v, -1, 1.5),
        ),
    }
    for name, (forward, backward, function) in cases.items():
        out = emulator.empty((4, 6), np.float32, strided=True)
        emulator(name, *forward, out)
        compare(out.read(), function(a), 8)
        emulator(f"{name}Backward", *backward, out)
        compare(out.read(), upstream * numeric_gradient(function, a), 40)
    out = emulator.empty((4, 6), np.float32)
    emulator("Celu", data, number(0.8), out)
    compare(out.read(), np.where(a > 0, a, 0.8 * np.expm1(a / 0.8)), 4)
    emulator("Hardshrink", data, number(0.5), out)
    compare(out.read(), np.where(np.abs(a) <= 0.5, 0, a))
    emulator("Softshrink", data, number(0.5), out)
    compare(out.read(), np.where(np.abs(a) <= 0.5, 0, a - 0.5 * np.sign(a)), 4)
    emulator("Threshold", data, number(0.5), number(-1.0), out)
    compare(out.read(), np.where(a <= 0.5, -1, a))
    emulator("ThresholdBackward", grad, data, number(0.5), out)
    compare(out.read(), np.where(a <= 0.5, 0, upstream))

    def gelu_tanh(v):
        return 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))

    emulator("GeluV2", data, c_int64(1), out)
    compare(out.read(), gelu_tanh(a), 4)
    emulator("GeluBackwardV2", grad, data, c_char_p(b"tanh"), out)
    compare(out.read(), upstream * numeric_gradient(gelu_tanh, a), 40)
    assert emulator.fails("GeluBackwardV2", grad, data, c_char_p(b"fast"), out) == INVALID
    assert emulator.fails("LogSigmoidBackward", grad, data, None, out) == NULL_POINTER
    negative = (grad, number(-0.7), number(1.2), number(0.5), c_bool(True), data, out)
    assert emulator.fails("EluBackward", *negative) == INVALID


def test_prelu_and_glu(emulator):
    x, w, g = sample((2, 3, 4), np.float32, 1), np.array([0.1, 0.2, 0.3], np.float32), sample((2, 3, 4), np.float32, 2)
    a, weight, upstream = wide(x), wide(w).reshape(1, 3, 1), wide(g)
    out, grad_weight = emulator.empty((2, 3, 4), np.float32), emulator.empty((3,), np.float32)
    emulator("Prelu", emulator.tensor(x), emulator.tensor(w), out)
    compare(out.read(), np.where(a > 0, a, weight * a))
    emulator("PreluBackward", emulator.tensor(g), emulator.tensor(x), emulator.tensor(w), out, grad_weight)
    compare(out.read(), np.where(a > 0, upstream, weight * upstream))
    compare(grad_weight.read(), np.where(a > 0, 0, a * upstream).sum((0, 2)), 8)
    assert emulator.fails("Prelu", emulator.tensor(x), emulator.tensor(w[:2]), out) == INVALID
    half = emulator.empty((2, 3, 2), np.float32)
    emulator("Glu", emulator.tensor(x, strided=True), c_int64(-1), half)
    compare(half.read(), a[..., :2] * sigmoid(a[..., 2:]), 4)
    emulator("GluBackward", emulator.tensor(g[..., :2]), emulator.tensor(x), c_int64(-1), out)
    gate = sigmoid(a[..., 2:])
    u = upstream[..., :2]
    compare(out.read(), np.concatenate([u * gate, u * a[..., :2] * gate * (1 - gate)], -1), 4)
    assert emulator.fails("Glu", emulator.tensor(x), c_int64(1), half) == INVALID


LOSSES = {
    "Mse": ((), lambda x, t: (x - t) ** 2),
    "L1": ((), lambda x, t: np.abs(x - t)),
    "SmoothL1": ((c_float(0.5),), lambda x, t: np.where(np.abs(x - t) < 0.5, (x - t) ** 2, np.abs(x - t) - 0.25)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients(emulator, name):
    x, t = sample((3, 4), np.float32, 1), sample((3, 4), np.float32, 2)
    extra, function = LOSSES[name]
    a, target = wide(x), wide(t)
    for reduction, reduce in enumerate([lambda v: v, np.mean, np.sum]):
        expected = np.asarray(reduce(function(a, target)))
        out = emulator.empty(expected.shape, np.float32)
        emulator(f"{name}Loss", emulator.tensor(x), emulator.tensor(t, strided=True), c_int64(reduction), *extra, out)
        compare(out.read(), expected, 8)
        g = sample(expected.shape, np.float32, 3) if expected.shape else np.array(1.5, np.float32)
        grad = emulator.empty((3, 4), np.float32, strided=True)
        emulator(
            f"{name}LossBackward",
            emulator.tensor(g),
            emulator.tensor(x),
            emulator.tensor(t),
            c_int64(reduction),
            *extra,
            grad,
        )
        slope = numeric_gradient(lambda v: function(v, target), a) / (a.size if reduction == 1 else 1)
        compare(grad.read(), wide(g) * slope, 40)
    out = emulator.empty((3, 4), np.float32)
    arguments = (emulator.tensor(x), emulator.tensor(t), c_int64(3), *extra, out)
    assert emulator.fails(f"{name}Loss", *arguments) == INVALID
    arguments = (emulator.tensor(x), emulator.tensor(t), c_int64(1), *extra, out)
    assert emulator.fails(f"{name}Loss", *arguments) == INVALID


def test_cross_entropies_and_divergence(emulator):
    p, t, w = (sample((3, 4), np.float32, s, 0.05, 0.95) for s in (1, 2, 3))
    a, target, weight = wide(p), wide(t), wide(w)
    out = emulator.empty((3, 4), np.float32)
    loss = -(target * np.log(a) + (1 - target) * np.log(1 - a))
    emulator("BinaryCrossEntropy", emulator.tensor(p), emulator.tensor(t), None, c_int64(0), out)
    compare(out.read(), loss, 8)
    mean = emulator.empty((1,), np.float32)
    emulator("BinaryCrossEntropy", emulator.tensor(p), emulator.tensor(t), emulator.tensor(w), c_int64(1), mean)
    compare(mean.read(), [(loss * weight).mean()], 8)
    upstream = emulator.tensor(np.array(2.0, np.float32))
    backward = (upstream, emulator.tensor(p), emulator.tensor(t), emulator.tensor(w), c_int64(1), out)
    emulator("BinaryCrossEntropyBackward", *backward)
    compare(out.read(), 2 * weight * (a - target) / (a * (1 - a)) / a.size, 8)
    x = sample((3, 4), np.float32, 4)
    s = sigmoid(wide(x))
    positive = np.array([1, 2, 3, 0.5], np.float32)
    logits = (emulator.tensor(x), emulator.tensor(t), emulator.tensor(w), emulator.tensor(positive), c_int64(0), out)
    emulator("BinaryCrossEntropyWithLogits", *logits)
    compare(out.read(), -weight * (wide(positive) * target * np.log(s) + (1 - target) * np.log(1 - s)), 8)
    one = emulator.empty((1,), np.float32)
    emulator("KlDiv", emulator.tensor(x), emulator.tensor(t), c_int64(3), c_bool(False), one)
    compare(one.read(), [(target * (np.log(target) - wide(x))).sum() / 3], 8)
    emulator("KlDiv", emulator.tensor(x), emulator.tensor(t), c_int64(0), c_bool(True), out)
    compare(out.read(), np.exp(target) * (target - wide(x)), 8)
    emulator("KlDivBackward", upstream, emulator.tensor(x), emulator.tensor(t), c_int64(1), c_bool(False), out)
    compare(out.read(), -2 * target / target.size, 8)


def test_negative_log_likelihood(emulator):
    x, w = sample((4, 3), np.float32, 1), np.array([1, 2, 0.5], np.float32)
    target = np.array([0, 2, -100, 1])
    picked = np.array([0, 1, 3])
    loss = np.zeros(4)
    loss[picked] = -w[target[picked]] * x[picked, target[picked]]
    total = float(w[target[picked]].sum())
    tensors = emulator.tensor(x), emulator.tensor(target), emulator.tensor(w)
    out, total_out = emulator.empty((4,), np.float32), emulator.empty((1,), np.float32)
    emulator("NLLLoss", *tensors, c_int64(0), c_int64(-100), out, total_out)
    compare(out.read(), loss)
    one = emulator.empty((1,), np.float32)
    emulator("NLLLoss", *tensors, c_int64(1), c_int64(-100), one, total_out)
    compare(one.read(), [loss.sum() / total], 4)
    compare(total_out.read(), [total])
    grad = emulator.empty((4, 3), np.float32)
    upstream = emulator.tensor(np.array([2.0], np.float32))
    emulator("NLLLossBackward", upstream, *tensors, c_int64(1), c_int64(-100), total_out, grad)
    expected = np.zeros((4, 3))
    expected[picked, target[picked]] = -2 * w[target[picked]] / total
    compare(grad.read(), expected, 4)
    assert (
        emulator.fails("NLLLoss", tensors[0], tensors[1], None, c_int64(1), c_int64(-100), one, total_out)
        == NULL_POINTER
    )


def test_random_numbers(emulator):
    seed, offset = c_int64(7), c_int64(12)
    for dtype in FLOATING:
        x = emulator.empty((2000,), dtype, strided=True)
        emulator("InplaceUniform", x, c_double(-1), c_double(3), c_uint64(7), c_uint64(12))
        values = wide(x.read())
        assert (
            values.min() >= -1
            and values.max() <= 3
            and abs(values.mean() - 1) < 0.1
            and abs(values.std() - 4 / math.sqrt(12)) < 0.1
        )
        emulator("InplaceUniform", x, c_double(-1), c_double(3), c_uint64(7), c_uint64(12))
        assert (wide(x.read()) == values).all()
        emulator("InplaceUniform", x, c_double(-1), c_double(3), c_uint64(8), c_uint64(12))
        assert (wide(x.read()) != values).any()
        emulator("InplaceNormal", x, c_float(2), c_float(3), seed, offset)
        values = wide(x.read())
        assert abs(values.mean() - 2) < 0.25 and abs(values.std() - 3) < 0.25
        assert abs((np.abs(values - 2) < 3).mean() - 0.683) < 0.04
    whole = emulator.empty((3000,), np.int64)
    emulator("InplaceRandom", whole, c_int64(-2), c_int64(4), seed, offset)
    assert sorted(set(whole.read().tolist())) == [-2, -1, 0, 1, 2, 3]
    emulator("InplaceRandom", whole, c_int64(-(2**63)), c_int64(2**63 - 1), seed, offset)
    assert whole.read().min() < -(2**62) and whole.read().max() > 2**62
    truth = emulator.empty((3000,), bool)
    emulator("InplaceBernoulli", truth, emulator.scalar(0.2), seed, offset)
    assert abs(truth.read().mean() - 0.2) < 0.03
    out = emulator.empty((3000,), np.float32)
    emulator("Bernoulli", out, emulator.scalar(0.7), seed, offset, out)
    assert abs(out.read().mean() - 0.7) < 0.03 and set(out.read().tolist()) == {0, 1}
    order = emulator.empty((50,), np.int64)
    emulator("Randperm", c_int64(50), seed, offset, order)
    assert sorted(order.read().tolist()) == list(range(50)) != order.read().tolist()
    assert emulator.fails("InplaceUniform", out, c_double(3), c_double(1), c_uint64(7), c_uint64(12)) == INVALID
    assert emulator.fails("InplaceNormal", out, c_float(0), c_float(-1), seed, offset) == INVALID
    assert emulator.fails("InplaceRandom", whole, c_int64(3), c_int64(3), seed, offset) == INVALID
    assert emulator.fails("InplaceBernoulli", truth, emulator.scalar(1.5), seed, offset) == INVALID


def test_dropout_and_its_mask_of_bits(emulator):
    x = sample((10, 100), np.float32, 1, 1, 2)
    size = (1000 + 127) // 128 * 16
    seed, offset = c_int64(3), c_int64(0)
    out, mask = emulator.empty((10, 100), np.float32), emulator.empty((size,), np.uint8)
    emulator("Dropout", emulator.tensor(x), c_double(0.25), c_bool(True), seed, offset, out, mask)
    keep = np.unpackbits(mask.read(), bitorder="little")[:1000].reshape(10, 100).astype(bool)
    assert abs(keep.mean() - 0.75) < 0.05
    compare(out.read(), np.where(keep, wide(x) / 0.75, 0), 4)
    again = emulator.empty((size,), np.uint8)
    shape = c_void_p(emulator.library.aclCreateIntArray((c_int64 * 2)(10, 100), c_uint64(2)))
    emulator("DropoutGenMask", shape, c_double(0.25), seed, offset, again)
    assert (again.read() == mask.read()).all()
    emulator("DropoutDoMask", emulator.tensor(x), again, c_double(0.25), out)
    compare(out.read(), np.where(keep, wide(x) / 0.75, 0), 4)
    emulator("DropoutBackward", emulator.tensor(x), mask, c_double(4 / 3), out)
    compare(out.read(), np.where(keep, wide(x) * 4 / 3, 0), 4)
    emulator("Dropout", emulator.tensor(x), c_double(0.25), c_bool(False), seed, offset, out, mask)
    assert (out.read() == x).all()
    small = emulator.empty((size - 16,), np.uint8)
    assert (
        emulator.fails("Dropout", emulator.tensor(x), c_double(0.25), c_bool(True), seed, offset, out, small) == INVALID
    )
    assert (
        emulator.fails("Dropout", emulator.tensor(x), c_double(1.25), c_bool(True), seed, offset, out, mask) == INVALID
    )


def test_multinomial(emulator):
    weights = np.array([[1, 0, 3], [0, 5, 5]], np.float32)
    out = emulator.empty((2, 2000), np.int64)
    emulator("Multinomial", emulator.tensor(weights), c_int64(2000), c_bool(True), c_int64(1), c_int64(0), out)
    counts = np.array([np.bincount(row, minlength=3) for row in out.read()]) / 2000
    np.testing.assert_allclose(counts, weights / weights.sum(1, keepdims=True), atol=0.05)
    distinct = emulator.empty((2, 2), np.int64)
    emulator("Multinomial", emulator.tensor(weights), c_int64(2), c_bool(False), c_int64(1), c_int64(0), distinct)
    assert [sorted(row) for row in distinct.read().tolist()] == [[0, 2], [1, 2]]
    too_many = (
        emulator.tensor(weights),
        c_int64(4),
        c_bool(False),
        c_int64(1),
        c_int64(0),
        emulator.empty((2, 4), np.int64),
    )
    assert emulator.fails("Multinomial", *too_many) == INVALID


@pytest.mark.parametrize("dtype", FLOATING)
def test_lists(emulator, dtype):
    shapes = [(3,), (2, 2), ()]
    lists = [[sample(shape, dtype, 10 * n + k, 0.5, 2) for k, shape in enumerate(shapes)] for n in range(3)]
    x, y, z = ([emulator.tensor(a) for a in arrays] for arrays in lists)
    number = emulator.tensor(np.array(0.5, np.float32 if dtype is BF16 else dtype))
    for name, arguments, function in [
        ("AddScalar", (emulator.list(*x), number), lambda a, b, c: a + 0.5),
        ("AddList", (emulator.list(*x), emulator.list(*y), number), lambda a, b, c: a + 0.5 * b),
        ("MulScalar", (emulator.list(*x), number), lambda a, b, c: a * 0.5),
        ("MulList", (emulator.list(*x), emulator.list(*y)), lambda a, b, c: a * b),
        ("Sqrt", (emulator.list(*x),), lambda a, b, c: np.sqrt(a)),
        (
            "AddcmulScalar",
            (emulator.list(*x), emulator.list(*y), emulator.list(*z), number),
            lambda a, b, c: a + 0.5 * b * c,
        ),
        (
            "AddcdivScalar",
            (emulator.list(*x), emulator.list(*y), emulator.list(*z), number),
            lambda a, b, c: a + 0.5 * b / c,
        ),
    ]:
        out = [emulator.empty(shape, dtype, strided=True) for shape in shapes]
        emulator(f"Foreach{name}", *arguments, emulator.list(*out))
        for k in range(len(shapes)):
            compare(out[k].read(), function(*(wide(arrays[k]) for arrays in lists)), 2)
    out = [emulator.empty((), dtype) for _ in shapes]
    emulator("ForeachNorm", emulator.list(*x), emulator.scalar(2.0), emulator.list(*out))
    for k in range(len(shapes)):
        compare(out[k].read(), np.asarray(np.sqrt((wide(lists[0][k]) ** 2).sum())), 2)
    short = emulator.list(*[emulator.empty(shape, dtype) for shape in shapes[:2]])
    assert emulator.fails("ForeachSqrt", emulator.list(*x), short) == TILING
    assert emulator.fails("ForeachSqrt", None, short) == NULL_POINTER


@pytest.mark.parametrize("amsgrad", [False, True])
def test_step_of_adamw(emulator, amsgrad):
    arrays = [sample((5,), np.float32, s, 0.1, 1) for s in range(5)]
    theta, m, v, top, g = (wide(a) for a in arrays)
    var, first, second, largest, grad = (emulator.tensor(a, strided=True) for a in arrays)
    step = emulator.tensor(np.array([3], np.int64))
    reals = [c_float(r) for r in (0.01, 0.9, 0.999, 0.1, 1e-8)]
    emulator(
        "ApplyAdamWV2",
        var,
        first,
        second,
        largest if amsgrad else None,
        grad,
        step,
        *reals,
        c_bool(amsgrad),
        c_bool(True),
    )
    m, v = 0.9 * m - 0.1 * g, 0.999 * v + 0.001 * g * g
    top = np.maximum(top, v)
    denominator = np.sqrt((top if amsgrad else v) / (1 - 0.999**3)) + 1e-8
    compare(var.read(), theta * (1 - 0.001) - 0.01 * m / (1 - 0.9**3) / denominator, 8)
    compare(first.read(), m, 8)
    compare(second.read(), v, 8)
    if amsgrad:
        compare(largest.read(), top, 8)
        missing = (var, first, second, None, grad, step, *reals, c_bool(True), c_bool(False))
        assert emulator.fails("ApplyAdamWV2", *missing) == NULL_POINTER


def test_an_output_may_be_an_input(emulator):
    x = sample((4, 4), np.float32, 1)
    both = emulator.tensor(x)
    emulator("Mul", both, both, both)
    compare(both.read(), wide(x) ** 2)
    square = emulator.tensor(x)
    emulator("Add", square, square.view((4, 4), (1, 4)), emulator.scalar(1), square)
    compare(square.read(), wide(x) + wide(x).T)
    line = emulator.tensor(np.arange(6.0))
    emulator("InplaceCopy", line.view((5,), (1,), 1), line.view((5,), (1,), 0))
    assert line.read().tolist() == [0, 0, 1, 2, 3, 4]


def test_empty_tensors(emulator):
    nothing = np.zeros((0, 3), np.float32)
    out = emulator.empty((0, 3), np.float32)
    emulator("Exp", emulator.tensor(nothing), out)
    emulator("Add", emulator.tensor(nothing), emulator.tensor(np.ones((1, 3), np.float32)), emulator.scalar(1), out)
    assert out.read().size == 0


def test_rejected_arguments(emulator):
    f32, i64, truth = emulator.empty((2, 3), np.float32), emulator.empty((2, 3), np.int64), emulator.empty((2, 3), bool)
    other, z = emulator.empty((2, 2), np.float32), emulator.empty((2, 3), np.complex64)
    one = emulator.scalar(1)
    assert emulator.fails("Abs", None, f32) == NULL_POINTER
    assert emulator.fails("Abs", f32, None) == NULL_POINTER
    assert emulator.fails("Add", f32, f32, None, f32) == NULL_POINTER
    assert emulator.fails("Muls", f32, None, f32) == NULL_POINTER
    assert emulator.fails("Abs", f32, other) == INVALID  # shapes differ
    assert emulator.fails("Add", f32, other, one, f32) == INVALID  # no broadcast
    assert (
        emulator.fails("Add", emulator.empty((3,), np.float32), f32, one, emulator.empty((3,), np.float32)) == INVALID
    )  # out too small
    assert emulator.fails("Sigmoid", i64, f32) == INVALID  # dtype not supported
    assert emulator.fails("Tanh", f32, i64) == INVALID  # out not floating
    assert emulator.fails("Mul", f32, f32, truth) == INVALID  # floating numbers do not become bool
    assert emulator.fails("LtTensor", z, z, truth) == INVALID  # complex numbers have no order
    assert emulator.fails("Add", i64, i64, emulator.scalar(1j), i64) == INVALID  # alpha does not convert
    assert emulator.fails("BitwiseAndTensor", f32, f32, f32) == INVALID
    assert emulator.fails("IsClose", f32, i64, c_double(0), c_double(0), c_bool(False), truth) == INVALID
    assert emulator.fails("SiluBackward", f32, emulator.empty((3,), np.float32), f32) == INVALID  # no broadcast here
    assert emulator.fails("InplaceMaskedFillScalar", f32, i64, one) == INVALID  # the mask is not bool
    assert emulator.fails("InplaceMaskedFillScalar", emulator.empty((2, 3), np.float64), truth, one) == INVALID
    assert emulator.fails("InplaceMaskedFillTensor", f32, truth, emulator.tensor(np.ones(1, np.float32))) == INVALID
    assert emulator.fails("MaskedSelect", f32, truth, emulator.empty((5,), np.float32)) == INVALID
