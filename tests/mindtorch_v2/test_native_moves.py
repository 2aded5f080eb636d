"""The kernels of the C extension that copy, join, rearrange and convert give what the numpy kernels behind them give."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import conversion, creation, shape, view
from mindtorch_v2._dispatch import native

pytestmark = needs_extension

DTYPES = [
    np.float32,
    np.float64,
    np.int64,
    np.int32,
    np.int16,
    np.int8,
    np.uint8,
    bool,
    np.float16,
    ml_dtypes.bfloat16,
    np.complex128,
]


def _filled(dtype: Any, *sizes: int) -> np.ndarray:
    count = int(np.prod(sizes))
    return ((np.arange(count) * 7 + 3) % 101 - 40).astype(np.float32).astype(dtype).reshape(sizes)


def _layouts(dtype: Any, *sizes: int) -> Iterator[np.ndarray]:
    """Arrays of one shape that lie in memory in different ways."""
    x = _filled(dtype, *sizes)
    yield x
    yield np.asfortranarray(x)
    wide = np.repeat(x, 2, axis=-1)
    yield wide[..., ::2]
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    if len(sizes) > 2:
        yield np.ascontiguousarray(np.moveaxis(x, 0, -1)).transpose(len(sizes) - 1, *range(len(sizes) - 1))
    yield np.broadcast_to(x[..., :1], sizes)


def _all(dtype: Any) -> Iterator[np.ndarray]:
    yield np.asarray(_filled(dtype, 1).reshape(()))
    for sizes in ((5,), (0,), (4, 4), (1, 3), (2, 0, 3), (2, 3, 5), (2, 3, 1, 4), (40, 50)):
        yield from _layouts(dtype, *sizes)


def check(kernel: Any, *arguments: Any, strides: bool = True) -> None:
    """Compare the kernel in C and the Python function behind it. `strides`: in these as well, which the dispatcher settles anyway."""
    torch.ones(1)  # connects the extension to the dtypes
    assert isinstance(kernel, native.extension.Kernel)
    with np.errstate(all="ignore"):
        mine = kernel(*arguments)
        theirs = kernel.__wrapped__(*arguments)
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), arguments
    if strides and mine.size:
        steps = [(a, b) for a, b, n in zip(mine.strides, theirs.strides, mine.shape, strict=True) if n > 1]
        assert all(a == b for a, b in steps), (arguments, steps)
    assert same(mine, theirs), (kernel, arguments, mine, theirs)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal elements, signs of zeros included; NaN equals NaN."""
    if a.dtype.kind in "biu":
        return np.array_equal(a, b)
    if a.dtype.kind != "c":
        a, b = a.astype(np.float64), b.astype(np.float64)
        return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a)[a == a], np.signbit(b)[b == b])
    return np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies(dtype: Any) -> None:
    for x in _all(dtype):
        check(view.clone, x)
        check(conversion.to_copy, x)
        for target in [np.zeros_like(x), np.zeros(x.shape, dtype, "F")] if x.size else []:
            assert view.clone(x, None, target) is target
            assert same(target, x)
    for target, source in itertools.product(_layouts(dtype, 3, 4, 5), _layouts(dtype, 4, 1)):
        target = target.copy("K")
        assert conversion.copy_(target, source) is target
        assert same(target, np.broadcast_to(source, target.shape))


def test_a_copy_onto_itself_reads_first() -> None:
    x = np.arange(10.0)
    conversion.copy_(x[1:], x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    y = np.arange(12.0).reshape(3, 4)
    conversion.copy_(y[::-1], y)
    assert y[:, 0].tolist() == [8, 4, 0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions(dtype: Any) -> None:
    kinds = [torch.float32, torch.float64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
    for kind in (*kinds, torch.float16, torch.bfloat16, torch.complex64):
        for x in _all(dtype):
            check(conversion.to_copy, x, kind)
            if x.size:
                target = np.zeros(x.shape, kind.np, "F")
                with np.errstate(all="ignore"):
                    expected = conversion.to_copy.__wrapped__(x, kind)
                    conversion.to_copy(x, kind, None, None, None, False, None, target)
                    assert same(target, expected)
                    conversion.copy_(target, x[::-1] if x.ndim else x)
                    assert same(target, expected[::-1] if x.ndim else expected)


def test_conversions_at_edges() -> None:
    values = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e-45,
        3.3e38,
        65504.0,
        65520.0,
        6e-8,
        1.00390625,
        1.01171875,
        0.5,
        -0.99,
        2**24 + 1,
    ]
    wide = np.array(values * 3)
    with np.errstate(all="ignore"):
        for x in (wide, wide.astype(np.float32), wide.astype(np.float16), wide.astype(ml_dtypes.bfloat16)):
            for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool):
                check(conversion.to_copy, x, kind)
    whole = np.array([-(2**63), 2**63 - 1, 2**53 + 1, 2**31, -129, 300, 2**24 + 1, 2**24 + 3, 0, -1])
    for kind in (torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int8, torch.uint8, torch.bool):
        check(conversion.to_copy, whole, kind)
    for x in (np.array([1e10, -1e10, 3e9]), np.array([1.9, -1.9, 127.6], np.float32)):
        check(conversion.to_copy, x, torch.int64)


def test_an_odd_address_is_read() -> None:
    raw = np.zeros(4 * 9 + 1, np.uint8)
    x = raw[1:].view(np.float32).reshape(3, 3) if raw[1:].flags.aligned else np.ndarray((3, 3), np.float32, raw, 1)
    x[...] = np.arange(9).reshape(3, 3)
    check(view.clone, x, strides=False)
    check(conversion.to_copy, x, torch.float64)
    check(shape.flip, x, (0,))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_cat_and_stack(dtype: Any) -> None:
    for sizes in ((4, 4), (2, 3, 5), (1, 3), (2, 0, 3), (40, 50), (6,)):
        arrays = list(_layouts(dtype, *sizes))
        for dim in range(-len(sizes), len(sizes)):
            check(shape.cat, arrays, dim, strides=False)
            check(shape.cat, arrays[:1], dim, strides=False)
            check(
                shape.cat,
                [arrays[0], arrays[1][..., :1], arrays[2]] if dim % len(sizes) == len(sizes) - 1 else arrays,
                dim,
                strides=False,
            )
        for dim in range(-len(sizes) - 1, len(sizes) + 1):
            check(shape.stack, arrays, dim)
    check(shape.cat, [np.zeros(0, dtype), _filled(dtype, 2, 3), np.zeros(0, dtype)], 1)
    check(shape.cat, [np.zeros(0, dtype), np.zeros(0, dtype)], 0)
    check(shape.stack, [np.asarray(_filled(dtype, 1)[0])] * 3, 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rearranging(dtype: Any) -> None:
    for x in _all(dtype):
        for repeats in ((2,) * x.ndim, (1,) * x.ndim, (3, *((2, 1) * 4)[: x.ndim]), (0, *(1,) * x.ndim)):
            check(shape.repeat, x, repeats)
        for count in range(x.ndim + 1):
            for dims in itertools.combinations(range(x.ndim), count):
                check(shape.flip, x, dims, strides=False)
                if dims:
                    check(shape.roll, x, tuple((-3, 1, 100)[i % 3] for i in dims), dims, strides=False)
        check(shape.roll, x, (2,), strides=False)
        check(shape.roll, x, -1, strides=False)
        if x.ndim >= 2:
            check(shape.roll, x, (1, 2), (0, 0), strides=False)
            for diagonal in (-7, -1, 0, 1, 3, 60):
                check(creation.tril, x, diagonal, strides=False)
                check(creation.triu, x, diagonal, strides=False)
        if x.ndim and x.size:
            for pad, value in (
                ((1, 2), 0),
                ((1, 1), 2.0),
                ((-1, 2), 1),
                ((0, -1), True),
                ((2, 0) * x.ndim, 3),
                ((1, 0), -0.0),
            ):
                if isinstance(value, float) and np.dtype(dtype) == bool:
                    continue
                check(shape.constant_pad_nd, x, pad, value)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_parts_of_zeros(dtype: Any) -> None:
    for grad in _layouts(dtype, 2, 3, 4):
        for dim in range(-4, 4):
            sizes = [2, 3, 4]
            sizes.insert(dim % 4, 5)
            for index in (-5, -1, 0, 3):
                check(view.select_backward, grad, tuple(sizes), dim, index)
        for dim, start, end, step, size in ((0, 1, 3, 1, 5), (-1, 0, 9, 2, 7), (1, -3, None, 1, 6), (2, None, 4, 1, 4)):
            sizes = [2, 3, 4]
            sizes[dim] = size
            if len(range(*slice(start, end, step).indices(size))) == grad.shape[dim]:
                check(view.slice_backward, grad, tuple(sizes), dim, start, end, step)
        check(view.slice_backward, grad[:, :0], (2, 6, 4), 1, 3, 3, 1)
        for dims in ((0, 1), (-1, 1), (3, 0)):
            check(shape.diag_embed, grad, 0, *dims)
            check(shape.diag_embed, grad, -2, *dims)
            check(shape.diag_embed, grad, 3, *dims)
    for rows, columns, offset in ((4, 4, 0), (4, 6, 1), (5, 4, -2), (2, 3, 9)):
        length = np.zeros((2, rows, columns)).diagonal(offset, 1, 2).shape[-1]
        check(view.diagonal_backward, _filled(dtype, 2, length), (2, rows, columns), offset, 1, 2)
        check(view.diagonal_backward, _filled(dtype, 2, length), (columns, 2, rows), offset, -1, 0)
    check(view.select_backward, np.asarray(_filled(dtype, 1)[0]), (3,), 0, -1)


def test_large_copies_keep_every_element() -> None:
    x = np.arange(300 * 401, dtype=np.float32).reshape(300, 401)
    check(view.clone, x.T)
    check(conversion.to_copy, x.T, torch.float64)
    check(shape.cat, [x.T, x.T], 1, strides=False)
    check(shape.flip, x, (0, 1))
    y = np.arange(2 * 3 * 64 * 65).reshape(2, 3, 64, 65)
    check(shape.stack, [y.transpose(0, 2, 3, 1)] * 2, 0)
    check(shape.stack, [y.transpose(3, 2, 1, 0)] * 2, -1)
    check(shape.roll, y, (5, -7), (3, 1))
    check(creation.tril, y, 3)
