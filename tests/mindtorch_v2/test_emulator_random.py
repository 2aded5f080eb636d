"""The emulator's random numbers, through their C ABI and compared with numpy."""

from __future__ import annotations

import math
from ctypes import c_bool, c_double, c_float, c_int64, c_uint64, c_void_p

import numpy as np
from _emulator_operators import FLOATING, INVALID, compare, sample, wide


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
