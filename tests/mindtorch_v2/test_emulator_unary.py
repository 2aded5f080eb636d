"""The emulator's functions of one element, through their C ABI and compared with numpy."""

from __future__ import annotations

from ctypes import c_double, c_float, c_int64

import numpy as np
import pytest
from _emulator_operators import FLOATING, INVALID, UNARY, compare, erf, sample, wide


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
