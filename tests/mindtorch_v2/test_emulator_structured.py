"""The emulator's products, reductions, normalisations, convolutions, indexing and sorting, called through their C ABI and compared with numpy."""

from __future__ import annotations

from ctypes import POINTER, byref, c_bool, c_double, c_int, c_int8, c_int64, c_uint64, c_void_p

import numpy as np
import pytest
from _emulator_operators import CODES, INVALID, NULL_POINTER, Emulator, compare, sample

KERNEL_FAILED = 507015
FLOATING = [np.float32, np.float16]


def ints(emulator: Emulator, *values: int) -> c_void_p:
    handle = emulator.library.aclCreateIntArray((c_int64 * max(len(values), 1))(*values), c_uint64(len(values)))
    assert handle
    return c_void_p(handle)


def bools(emulator: Emulator, *values: bool) -> c_void_p:
    create = emulator.library.aclCreateBoolArray
    create.restype = c_void_p
    return c_void_p(create((c_bool * len(values))(*values), c_uint64(len(values))))


def run(emulator: Emulator, name: str, *arguments) -> int:
    """The code that synchronising gives after a launch."""
    status, size, executor = emulator.phase1(name, *arguments)
    assert (status, size) == (0, 0)
    assert getattr(emulator.library, f"aclnn{name}")(None, c_uint64(0), executor, emulator.stream) == 0
    found = emulator.library.aclrtSynchronizeStream(emulator.stream)
    if found == KERNEL_FAILED:  # which the device keeps
        assert emulator.library.aclrtResetDevice(0) == emulator.library.aclrtSetDevice(0) == 0
    return found


def view_shape(emulator: Emulator, tensor) -> tuple[int, ...]:
    dims, count = POINTER(c_int64)(), c_uint64()
    assert emulator.library.aclGetViewShape(tensor.handle, byref(dims), byref(count)) == 0
    return tuple(dims[i] for i in range(count.value))


def code(dtype) -> c_int:
    return c_int(CODES[np.dtype(dtype)])


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dtype", FLOATING)
def test_products(emulator, dtype, strided):
    for name, left, right in [
        ("Mm", (3, 5), (5, 4)),
        ("Mm", (130, 261), (261, 7)),
        ("BatchMatMul", (2, 3, 5), (2, 5, 4)),
        ("Matmul", (2, 1, 3, 5), (4, 5, 6)),
        ("Matmul", (5,), (2, 5, 3)),
        ("Mv", (3, 5), (5,)),
    ]:
        a, b = sample(left, dtype), sample(right, dtype, 1)
        expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
        out = emulator.empty(expected.shape, dtype, strided)
        emulator(name, emulator.tensor(a, strided=strided), emulator.tensor(b, strided=strided), out, c_int8(0))
        compare(out.read(), expected, 50)


def test_products_that_are_added(emulator):
    base, a, b = sample((4,), np.float32), sample((3, 5), np.float32, 1), sample((5, 4), np.float32, 2)
    tensors = [emulator.tensor(x) for x in (base, a, b)]
    out = emulator.empty((3, 4), np.float32)
    emulator("Addmm", *tensors, emulator.scalar(0.5), emulator.scalar(2.0), out, c_int8(0))
    compare(out.read(), 0.5 * base + 2 * (a @ b), 20)
    base, vec = sample((3,), np.float32), sample((5,), np.float32, 4)
    out = emulator.empty((3,), np.float32)
    arguments = emulator.tensor(base), emulator.tensor(a), emulator.tensor(vec)
    emulator("Addmv", *arguments, emulator.scalar(2.0), emulator.scalar(0.5), out, c_int8(0))  # alpha comes first
    compare(out.read(), 0.5 * base + 2 * (a @ vec), 20)
    square = emulator.tensor(sample((4, 4), np.float32))
    before = square.read()
    emulator("Mm", square, square, square, c_int8(1))
    compare(square.read(), before @ before, 20)


def test_products_refuse(emulator):
    a, b, out = (emulator.empty(s, np.float32) for s in ((3, 5), (5, 4), (3, 4)))
    whole = emulator.empty((3, 5), np.int32)
    assert emulator.fails("Mm", a, None, out, c_int8(0)) == NULL_POINTER
    assert emulator.fails("Mm", a, b, out, c_int8(4)) == INVALID
    assert emulator.fails("Mm", a, a, out, c_int8(0)) == INVALID
    assert emulator.fails("Mm", whole, b, out, c_int8(0)) == INVALID
    assert emulator.fails("Mm", a, b, emulator.empty((3, 4), np.float16), c_int8(0)) == INVALID


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATING, np.int64])
def test_reductions(emulator, dtype, strided):
    x = sample((3, 4, 5), dtype)
    tensor = emulator.tensor(x, strided=strided)
    out = emulator.empty((3, 1, 1), dtype, strided)
    emulator("ReduceSum", tensor, ints(emulator, 1, -1), c_bool(True), code(dtype), out)
    compare(out.read(), x.astype(np.float64).sum((1, 2), keepdims=True), 4)
    out, where = emulator.empty((3, 5), dtype), emulator.empty((3, 5), np.int64, strided)
    emulator("MaxDim", tensor, c_int64(1), c_bool(False), out, where)
    compare(out.read(), x.max(1))
    compare(where.read(), x.argmax(1))
    emulator("Amin", tensor, ints(emulator, 1), c_bool(False), out)
    compare(out.read(), x.min(1))
    out = emulator.empty((3, 4, 5), dtype)
    emulator("Cumsum", tensor, c_int64(1), code(dtype), out)
    compare(out.read(), x.astype(np.float64).cumsum(1), 4)


def test_more_reductions(emulator):
    x = sample((3, 4, 5), np.float32)
    tensor, out, second = emulator.tensor(x), emulator.empty((3, 5), np.float32), emulator.empty((3, 5), np.float32)
    emulator("VarMean", tensor, ints(emulator, 1), c_int64(1), c_bool(False), out, second)
    compare(out.read(), x.astype(np.float64).var(1, ddof=1), 4)
    compare(second.read(), x.astype(np.float64).mean(1), 4)
    emulator("LinalgVectorNorm", tensor, emulator.scalar(3.0), ints(emulator, 1), c_bool(False), code(np.float32), out)
    compare(out.read(), (np.abs(x.astype(np.float64)) ** 3).sum(1) ** (1 / 3), 4)
    emulator("LogSumExp", tensor, ints(emulator, 1), c_bool(False), out)
    compare(out.read(), np.log(np.exp(x.astype(np.float64)).sum(1)), 4)
    truth = emulator.empty((), np.bool_)
    emulator("All", emulator.tensor([1.0, 0.0]), ints(emulator), c_bool(False), truth)
    assert not truth.read()
    assert emulator.fails("Amax", tensor, ints(emulator, 3), c_bool(False), out) == INVALID
    assert emulator.fails("Amax", tensor, ints(emulator, 0), c_bool(False), out) == INVALID
    assert emulator.fails("Mean", tensor, None, c_bool(False), code(np.float32), out) == NULL_POINTER
    nan = emulator.empty((), np.float32)
    emulator("Max", emulator.tensor(np.array([1, np.nan, 3], np.float32)), nan)
    assert np.isnan(nan.read())


@pytest.mark.parametrize("dtype", FLOATING)
def test_softmax_and_its_gradient(emulator, dtype):
    x, g = sample((3, 4, 5), dtype), sample((3, 4, 5), dtype, 1)
    wide = np.exp(x.astype(np.float64))
    expected = wide / wide.sum(1, keepdims=True)
    out = emulator.empty(x.shape, dtype, True)
    emulator("Softmax", emulator.tensor(x, strided=True), c_int64(1), out)
    compare(out.read(), expected)
    gradient, y = emulator.empty(x.shape, dtype), out.read().astype(np.float64)
    emulator("SoftmaxBackward", emulator.tensor(g), out, c_int64(-2), gradient)
    compare(gradient.read(), y * (g - (g * y).sum(1, keepdims=True)), 4)
    emulator("LogSoftmax", emulator.tensor(x), c_int64(1), out)
    compare(out.read(), np.log(expected), 2)
    assert emulator.fails("Softmax", out, c_int64(3), out) == INVALID


def test_normalisations(emulator):
    x, g = sample((6, 8), np.float32).astype(np.float64), sample((6, 8), np.float32, 3).astype(np.float64)
    w, b = sample((8,), np.float32, 1).astype(np.float64), sample((8,), np.float32, 2).astype(np.float64)
    t = {k: emulator.tensor(v.astype(np.float32)) for k, v in {"x": x, "g": g, "w": w, "b": b}.items()}
    out, mean, rstd = emulator.empty((6, 8), np.float32, True), emulator.empty((6, 1), np.float32), None
    rstd = emulator.empty((6, 1), np.float32)
    emulator("LayerNorm", t["x"], ints(emulator, 8), t["w"], t["b"], c_double(1e-5), out, mean, rstd)
    inverse = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    normal = (x - x.mean(1, keepdims=True)) * inverse
    compare(out.read(), normal * w + b, 4)
    compare(rstd.read(), inverse, 4)
    dx, dw, db = (emulator.empty(s, np.float32) for s in ((6, 8), (8,), (8,)))
    arguments = t["g"], t["x"], ints(emulator, 8), mean, rstd, t["w"], t["b"], bools(emulator, True, True, True)
    emulator("LayerNormBackward", *arguments, dx, dw, db)
    gw = g * w
    expected = inverse * (gw - gw.mean(1, keepdims=True) - normal * (gw * normal).mean(1, keepdims=True))
    compare(dx.read(), expected, 10)
    compare(dw.read(), (g * normal).sum(0), 10)
    compare(db.read(), g.sum(0), 10)
    assert emulator.fails("LayerNormBackward", *arguments, None, dw, db) == NULL_POINTER
    emulator("RmsNorm", t["x"], t["w"], c_double(1e-6), out, rstd)
    compare(out.read(), x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w, 4)
    save, invstd = emulator.empty((8,), np.float32), emulator.empty((8,), np.float32)
    none = (c_double(0.1), c_double(1e-5), out, save, invstd)
    emulator("BatchNorm", t["x"], t["w"], t["b"], None, None, c_bool(True), *none)
    compare(out.read(), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * w + b, 4)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_and_its_gradients(emulator, groups):
    x, w = sample((2, 4, 5, 6), np.float32), sample((6, 4 // groups, 3, 2), np.float32, 1)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (0, 0)))
    expected, g = np.zeros((2, 6, 3, 5)), sample((2, 6, 3, 5), np.float32, 2)
    dpadded, dw = np.zeros_like(padded), np.zeros(w.shape)
    for o in range(6):
        channels = slice(o // (6 // groups) * (4 // groups), (o // (6 // groups) + 1) * (4 // groups))
        for i in range(3):
            for j in range(5):
                window = (slice(None), channels, slice(2 * i, 2 * i + 3), slice(j, j + 2))
                expected[:, o, i, j] = (padded[window] * w[o]).sum((1, 2, 3))
                dpadded[window] += g[:, o, i, j][:, None, None, None] * w[o]
                dw[o] += (g[:, o, i, j][:, None, None, None] * padded[window]).sum(0)
    geometry = [ints(emulator, *v) for v in ((2, 1), (1, 0), (1, 1))]
    out, tensors = emulator.empty(expected.shape, np.float32), (emulator.tensor(x), emulator.tensor(w))
    more = c_bool(False), ints(emulator, 0, 0)
    emulator("Convolution", *tensors, None, *geometry, *more, c_int64(groups), out, c_int8(0))
    compare(out.read(), expected, 10)
    dx, dweight = emulator.empty(x.shape, np.float32), emulator.empty(w.shape, np.float32)
    mask = bools(emulator, True, True, False)
    arguments = emulator.tensor(g), *tensors, None, *geometry, *more, c_int(groups), mask, c_int8(0)
    emulator("ConvolutionBackward", *arguments, dx, dweight, None)
    compare(dx.read(), dpadded[:, :, 1:-1], 20)
    compare(dweight.read(), dw, 40)
    # A transposed convolution is the gradient of one; its input is the other's gradient.
    again = emulator.empty(x.shape, np.float32)
    transposed = c_bool(True), ints(emulator, 0, 0), c_int64(groups), again, c_int8(0)
    emulator("Convolution", emulator.tensor(g), tensors[1], None, *geometry, *transposed)
    compare(again.read(), dpadded[:, :, 1:-1], 20)


def test_taking_by_index(emulator):
    x = sample((5, 4, 3), np.float16)
    tensor, index = emulator.tensor(x, strided=True), np.array([[4, 0], [2, 2]])
    out = emulator.empty((5, 2, 2, 3), np.float16)
    positions = emulator.tensor(index % 4)
    emulator("Index", tensor, emulator.list(emulator.empty((0,), np.int64), positions), out)
    compare(out.read(), x[:, index % 4])
    out = emulator.empty((2, 2, 4), np.float16, True)
    pair = emulator.tensor(index), emulator.empty((0,), np.int64), emulator.tensor(np.array([1, -1]))
    emulator("Index", tensor, emulator.list(*pair), out)
    compare(out.read(), x[index, :, np.array([1, -1])])
    mask = x[:, :, 0] > 0
    out = emulator.empty((int(mask.sum()), 3), np.float16)
    emulator("Index", tensor, emulator.list(emulator.tensor(mask)), out)
    compare(out.read(), x[mask])
    table = sample((7, 3), np.float32)
    out = emulator.empty((2, 2, 3), np.float32)
    emulator("Embedding", emulator.tensor(table), emulator.tensor(index), out)
    compare(out.read(), table[index])
    assert run(emulator, "Embedding", emulator.tensor(table), emulator.tensor(index + 3), out) == KERNEL_FAILED


def test_an_index_out_of_range_leaves_the_output(emulator):
    fresh = Emulator()
    out = fresh.empty((1, 3), np.float32)
    assert run(fresh, "Embedding", fresh.tensor(sample((2, 3), np.float32)), fresh.tensor([2]), out) == KERNEL_FAILED
    assert (out.read() == 77).all()


def test_putting_by_index(emulator):
    fresh = Emulator()
    x, index = sample((4, 3), np.int64), np.array([[0, 1, 0], [3, 1, 2]])
    source = sample((2, 3), np.int64, 1)
    expected = x.copy()
    for i in range(2):
        for j in range(3):
            expected[index[i, j], j] += source[i, j]
    out = fresh.empty(x.shape, np.int64, True)
    fresh("ScatterAdd", fresh.tensor(x), c_int64(0), fresh.tensor(index), fresh.tensor(source), out)
    compare(out.read(), expected)
    target = fresh.tensor(x)
    chosen = fresh.list(fresh.tensor([1, 1, 3]))
    fresh("IndexPutImpl", target, chosen, fresh.tensor([10]), c_bool(True), c_bool(False))
    expected = x.copy()
    np.add.at(expected, [1, 1, 3], 10)
    compare(target.read(), expected)
    floats = fresh.tensor(sample((4, 3), np.float32))
    two = c_int64(2), c_bool(True), floats
    assert fresh.fails("ScatterReduce", floats, c_int64(0), fresh.tensor(index), floats, *two) == INVALID


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
def test_joining_and_moving(emulator, dtype):
    a, b = sample((2, 3), dtype), sample((2, 2), dtype, 1)
    out = emulator.empty((2, 5), dtype, True)
    emulator("Cat", emulator.list(emulator.tensor(a, strided=True), emulator.tensor(b)), c_int64(-1), out)
    compare(out.read(), np.concatenate([a, b], 1))
    out = emulator.empty((2, 3), dtype)
    emulator("Roll", emulator.tensor(a), ints(emulator, 1, -1), ints(emulator, 0, 1), out)
    compare(out.read(), np.roll(a, (1, -1), (0, 1)))
    same = emulator.tensor(a)
    emulator("Flip", same, ints(emulator, 0, 1), same)
    compare(same.read(), a[::-1, ::-1])
    out = emulator.empty((3, 2), dtype)
    emulator("Permute", emulator.tensor(a), ints(emulator, 1, 0), out)
    compare(out.read(), a.T)
    out = emulator.empty((2, 3), dtype)
    emulator("Tril", emulator.tensor(a), c_int64(0), out)
    compare(out.read(), np.tril(a))
    assert emulator.fails("Permute", emulator.tensor(a), ints(emulator, 1, 1), out) == INVALID


def test_sorting_and_data_dependent_sizes(emulator):
    x = np.array([[3, 1, 2, 1], [0, 5, 5, -1]], np.float32)
    values, where = emulator.empty(x.shape, np.float32, True), emulator.empty(x.shape, np.int64)
    emulator("Sort", emulator.tensor(x), c_bool(True), c_int64(1), c_bool(True), values, where)
    order = np.argsort(-x, 1, kind="stable")
    compare(where.read(), order)
    compare(values.read(), np.take_along_axis(x, order, 1))
    values, where = emulator.empty((2, 2), np.float32), emulator.empty((2, 2), np.int64)
    emulator("Topk", emulator.tensor(x), c_int64(2), c_int64(-1), c_bool(True), c_bool(True), values, where)
    compare(where.read(), order[:, :2])
    distinct, inverse, counts = (emulator.empty(s, d) for s, d in (((8,), x.dtype), (x.shape, "i8"), ((8,), "i8")))
    emulator("Unique2", emulator.tensor(x), c_bool(True), c_bool(True), c_bool(True), distinct, inverse, counts)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    assert view_shape(emulator, distinct) == (6,)
    compare(distinct.read()[:6], expected[0])
    compare(inverse.read(), expected[1].reshape(x.shape))
    compare(counts.read()[:6], expected[2])
    positions = emulator.empty((8, 2), np.int64)
    emulator("Nonzero", emulator.tensor(x), positions)
    assert view_shape(emulator, positions) == (7, 2)
    compare(positions.read()[:7], np.argwhere(x))
    assert (
        emulator.fails("Topk", emulator.tensor(x), c_int64(5), c_int64(-1), c_bool(True), c_bool(True), values, where)
        == INVALID
    )
