"""The emulator's operators of lists, optimizer steps, and what all operators share, through their C ABI and compared with numpy."""

from __future__ import annotations

from ctypes import c_bool, c_double, c_float

import numpy as np
import pytest
from _emulator_operators import BF16, FLOATING, INVALID, NULL_POINTER, TILING, compare, sample, wide


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
