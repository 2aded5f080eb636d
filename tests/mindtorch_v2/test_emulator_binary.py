"""The emulator's functions of two and three tensors, through their C ABI and compared with numpy."""

from __future__ import annotations

from ctypes import c_int

import numpy as np
import pytest
from _emulator_operators import BF16, INVALID, compare, sample, wide

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
