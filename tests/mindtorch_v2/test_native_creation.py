"""The kernels of the C extension that make arrays give what the numpy kernels behind them give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import creation as kernels
from mindtorch_v2._dispatch import native

pytestmark = needs_extension

DTYPES = [
    None,
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8),
    *(torch.uint8, torch.uint16, torch.uint64, torch.bool, torch.complex64, torch.complex128, torch.float8_e5m2),
]
SHAPES = [(), (0,), (3,), (4, 4), (2, 0, 3), (300, 301), (1000, 100)]


def _check(kernel: Any, *arguments: Any, values: bool = True) -> None:
    assert isinstance(kernel, native.extension.Kernel)
    with np.errstate(all="ignore"):
        ours, theirs = kernel(*arguments), kernel.__wrapped__(*arguments)
    assert (ours.dtype, ours.shape, ours.strides) == (theirs.dtype, theirs.shape, theirs.strides), arguments
    if values:
        assert ours.tobytes("A") == theirs.tobytes("A"), arguments


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_constants(dtype: Any) -> None:
    torch.ones(1)
    for shape in SHAPES:
        _check(kernels.empty, shape, dtype, values=False)
        _check(kernels.zeros, shape, dtype)
        _check(kernels.zeros, list(shape), dtype)
        _check(kernels.ones, shape, dtype)
    integral = dtype is not None and dtype.category < 2
    for value in (0, 1, 7, -1, 300, 2**40, True, False, 2.0, -0.0, 0.1, 1e300, np.inf, np.nan, 2 + 1j):
        if isinstance(value, complex) and (dtype is None or not dtype.is_complex):
            continue
        if integral and (isinstance(value, float) and not abs(value) < 1e10):
            continue  # undefined in C, and refused before
        _check(kernels.full, (2, 3), value, dtype)
        _check(kernels.scalar_tensor, value, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_like_an_array(dtype: Any) -> None:
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for x in (
        base,
        base.T,
        base[:, ::2],
        base[0, 0],
        base[:0],
        base.astype(np.int64),
        base > 3,
        base.reshape(2, 3, 4).transpose(1, 0, 2),
    ):
        _check(kernels.empty_like, x, dtype, values=False)
        _check(kernels.zeros_like, x, dtype)
        _check(kernels.ones_like, x, dtype)
        _check(kernels.full_like, x, 3, dtype)
        _check(kernels.full_like, x, 2.5 if dtype is None or dtype.category > 1 else 2.0, dtype)
        _check(kernels.new_empty, x, (2, 2), dtype, values=False)
        _check(kernels.new_zeros, x, (2, 2), dtype)
        _check(kernels.new_ones, x, [5], dtype)
        _check(kernels.new_full, x, (), 1, dtype)


@pytest.mark.parametrize("dtype", DTYPES[:9] + DTYPES[9:10], ids=str)
def test_ranges(dtype: Any) -> None:
    for end in (0, 1, 5, 2.5, 5.0, 100, 10_000):
        _check(kernels.arange, end, dtype)
    floating = dtype is None or dtype.category > 1
    for start, end in ((2, 5), (0, 0), (-3, 3), (1.5, 7), (0.1, 1.0)):
        _check(kernels.arange_start, start, end, dtype)
    for triple in (
        (0, 10, 3),
        (10, 0, -3),
        (5, 5, 1),
        (0, 1, 0.1),
        (1.0, 2.0, 0.3),
        (0, 120, 7),
        (100, 3, -1),
        (0, 1_000_003, 13),
    ):
        if (
            floating
            or (all(isinstance(n, int) for n in triple) and triple[1] < 127)
            or dtype in (torch.int64, torch.int32)
        ):
            if triple[2] >= 1 or triple[2] < 0 or floating:
                _check(kernels.arange_step, *triple, dtype)
    if dtype in (None, torch.float32, torch.float64):
        for start, end in ((0, 1), (0.1, 0.7), (-3, 3), (5.0, 5.0), (2, -2), (0, 1e7)):
            for steps in (0, 1, 2, 3, 10, 101):
                _check(kernels.linspace, start, end, steps, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_identities(dtype: Any) -> None:
    for n in (0, 1, 4, 33):
        _check(kernels.eye, n, dtype)
        _check(kernels.eye_m, n, 5, dtype)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_filling(dtype: Any) -> None:
    def fresh() -> list:
        base = np.zeros((4, 6, 2), dtype.np)
        return [
            base,
            base.T,
            base[:, ::2],
            base[1:3, :, 1],
            base[0, 0, 0:0],
            base[::-1],
            base.transpose(1, 0, 2)[:, 1:],
        ]

    values: list = [0, 1, 3, True, 2.0, np.asarray(3).astype(dtype.np)]
    if dtype.category > 1:
        values += [0.3, -0.0, np.nan, np.asarray(0.7)]
    for ours, theirs in zip(fresh(), fresh(), strict=True):
        for value in values:
            for kernel, arguments in ((kernels.fill, (value,)), (kernels.zero_, ())):
                made = kernel(ours, *arguments)
                kernel.__wrapped__(theirs, *arguments)
                assert made is ours
                assert ours.tobytes() == theirs.tobytes()
                root = ours if ours.base is None else ours.base
                other = theirs if theirs.base is None else theirs.base
                assert root.tobytes() == other.tobytes()  # and nothing beside the view


def test_the_default_dtype_is_looked_up() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert kernels.zeros((2,)).dtype == kernels.arange(2.5).dtype == kernels.full((2,), 1.0).dtype == np.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert kernels.ones((2,)).dtype == np.float32
