"""The emulator's comparisons, logic, bounds, selection, conversion and creation, through their C ABI and compared with numpy."""

from __future__ import annotations

from ctypes import POINTER, byref, c_bool, c_double, c_int, c_int64, c_uint64

import numpy as np
import pytest
from _emulator_operators import BF16, CODES, FLOATING, INVALID, NULL_POINTER, compare, sample, wide


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
