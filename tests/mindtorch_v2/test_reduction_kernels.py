"""The kernels of reductions in C give what their numpy functions give."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mindtorch_v2._backends.cpu.ops import reduction, scan
from mindtorch_v2._dispatch import native

pytestmark = [
    pytest.mark.skipif(native.extension is None, reason="needs the extension"),
    pytest.mark.usefixtures("vectors"),
]


FLOATS = [np.float32, np.float64]
DTYPES = [*FLOATS, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_]
SHAPES = [(), (1,), (5,), (4, 4), (3, 1, 4), (2, 3, 5), (2, 3, 2, 7), (300, 3), (3, 300), (70, 9, 5)]


def samples(dtype: Any, shape: tuple[int, ...], special: bool = False) -> Iterator[np.ndarray]:
    """The array of a shape in several layouts; `special` for one with NaN, infinities and zeros."""
    rng = np.random.default_rng(len(shape) * 7 + sum(shape))
    if np.dtype(dtype).kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
        if special and x.size:
            flat = x.reshape(-1)
            flat[rng.integers(0, x.size, 2)] = np.nan
            flat[rng.integers(0, x.size, 3)] = rng.choice([np.inf, -np.inf, -0.0, 0.0])
    else:
        x = rng.integers(0, 2 if dtype is np.bool_ else 7, shape).astype(dtype)
        if np.dtype(dtype).kind == "i":
            x -= np.asarray(3, dtype)
    yield x
    if len(shape) > 1:
        yield np.ascontiguousarray(x.swapaxes(0, -1)).swapaxes(0, -1)
        yield np.repeat(x, 2, -1)[..., ::2]
        yield np.repeat(x, 2, 0)[::2]
        yield np.broadcast_to(x[:1], shape)
    elif len(shape) == 1:
        yield np.repeat(x, 3)[::3]


def dims(ndim: int) -> Iterator[Any]:
    """All that `dim` may be."""
    for count in range(ndim + 1):
        for dim in itertools.combinations(range(ndim), count):
            yield list(dim)
    yield None
    yield from range(-ndim, ndim)


def same(found: Any, wanted: Any, rtol: float = 0.0) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple) and len(found) == len(wanted)
        for a, b in zip(found, wanted):
            same(a, b, rtol)
        return
    wanted = np.asarray(wanted)
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if found.dtype.kind == "f" and rtol:
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(found, wanted)


def taken(kernel: Any, *args: Any) -> Any:
    """The result of the C kernel, which must not have declined."""
    declined = native.extension.Kernel(
        f"{kernel.__module__.rpartition('.')[2]}.{kernel.__name__}",
        lambda *args: pytest.fail("declined"),
        (),
        len(args),
        0,
    )
    return declined(*args)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
def test_all_elements(name: str, dtype: Any) -> None:
    kernel = getattr(reduction, name)
    for shape in SHAPES:
        for x in samples(dtype, shape, name != "prod"):
            with np.errstate(all="ignore"):
                same(taken(kernel, x), kernel.__wrapped__(x), 1e-4 if np.dtype(dtype).kind == "f" else 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum_dim", "prod_dim", "amax", "amin", "aminmax", "any_dim", "all_dim"])
def test_dims(name: str, dtype: Any) -> None:
    kernel = getattr(reduction, name)
    exact = name.startswith("a") or np.dtype(dtype).kind != "f"
    for shape in SHAPES:
        for x in samples(dtype, shape, name != "prod_dim"):
            for dim, keepdim in itertools.product(dims(len(shape)), (False, True)):
                if name == "prod_dim" and dim.__class__ is not int:
                    continue
                if dim == [] and name in ("any_dim", "all_dim"):
                    continue
                with np.errstate(all="ignore"):
                    same(taken(kernel, x, dim, keepdim), kernel.__wrapped__(x, dim, keepdim), 0 if exact else 1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_means(dtype: Any) -> None:
    for shape in SHAPES:
        for x in samples(dtype, shape, True):
            with np.errstate(all="ignore"):
                same(taken(reduction.mean, x), reduction.mean.__wrapped__(x), 1e-4)
                for dim, keepdim in itertools.product(dims(len(shape)), (False, True)):
                    same(
                        taken(reduction.mean_dim, x, dim, keepdim),
                        reduction.mean_dim.__wrapped__(x, dim, keepdim),
                        1e-4,
                    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_variances(name: str, dtype: Any) -> None:
    kernel = getattr(reduction, name)
    for shape in SHAPES:
        for x in samples(dtype, shape):
            for dim, correction, keepdim in itertools.product(dims(len(shape)), (None, 1.5, True), (False, True)):
                args = (x, dim, correction, keepdim)
                with np.errstate(all="ignore"):
                    same(taken(kernel, *args), kernel.__wrapped__(*args), 1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
def test_norms_and_logarithms_of_sums(dtype: Any) -> None:
    for shape in SHAPES:
        for x in samples(dtype, shape, True):
            for dim, keepdim in itertools.product(dims(len(shape)), (False, True)):
                with np.errstate(all="ignore"):
                    same(
                        taken(reduction.logsumexp, x, dim, keepdim),
                        reduction.logsumexp.__wrapped__(x, dim, keepdim),
                        2e-6,
                    )
                    for order in (2, 2.0, 1, 0, math.inf, -math.inf):
                        args = (x, order, dim, keepdim, None)
                        same(taken(reduction.vector_norm, *args), reduction.vector_norm.__wrapped__(*args), 2e-5)


def test_norms_of_large_and_small_numbers() -> None:
    for scale in (1e-30, 1e30):
        x = np.full((40, 40), scale, np.float32)
        np.testing.assert_allclose(reduction.vector_norm(x, 2, 0), np.full(40, scale * 40**0.5), 1e-6)
        shifted = np.float32([1000001, 1000003] * 20)[:, None]
        np.testing.assert_allclose(reduction.var(shifted, 0, 0), [1.0])
        np.testing.assert_allclose(reduction.var(np.repeat(shifted, 9, 1), 0, 0), np.ones(9))
        np.testing.assert_allclose(reduction.std(x * np.float32([1, -1] * 20), 1, 0), np.full(40, scale), 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_counts(dtype: Any) -> None:
    for shape in SHAPES:
        for x in samples(dtype, shape, True):
            for dim in dims(len(shape)):
                same(taken(reduction.count_nonzero, x, dim), reduction.count_nonzero.__wrapped__(x, dim))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["argmax", "argmin", "max_dim", "min_dim"])
def test_places(name: str, dtype: Any) -> None:
    kernel = getattr(reduction, name)
    for shape in [*SHAPES, (9000,), (2, 5000)]:
        for x in samples(dtype, shape, True):
            for dim, keepdim in itertools.product([None, *range(-len(shape), len(shape))], (False, True)):
                if dim is None and (name.endswith("dim") or not x.flags.c_contiguous):
                    continue
                same(taken(kernel, x, dim, keepdim), kernel.__wrapped__(x, dim, keepdim))


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing(dtype: Any) -> None:
    for shape in [(0,), (0, 3), (3, 0), (2, 0, 4)]:
        x = np.empty(shape, dtype)
        for name in ("sum", "prod", "any", "all"):
            kernel = getattr(reduction, name)
            same(taken(kernel, x), kernel.__wrapped__(x))
        for dim in range(len(shape)):
            for name in ("sum_dim", "prod_dim", "any_dim", "all_dim"):
                kernel = getattr(reduction, name)
                same(taken(kernel, x, dim, False), kernel.__wrapped__(x, dim, False))
            if shape[dim]:
                same(taken(reduction.amax, x, dim, True), reduction.amax.__wrapped__(x, dim, True))
                same(taken(reduction.max_dim, x, dim, True), reduction.max_dim.__wrapped__(x, dim, True))


def test_long_sums_keep_their_digits() -> None:
    x = np.full((1 << 20, 3), 0.1, np.float32)
    exact = float(np.float32(0.1)) * (1 << 20)
    for dense in (x, np.ascontiguousarray(x.T).T, np.repeat(x, 2, 1)[:, ::2]):
        np.testing.assert_allclose(reduction.sum_dim(dense, 0), np.full(3, exact), 5e-6)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_scans(name: str, dtype: Any) -> None:
    kernel = getattr(scan, name)
    for shape in [*SHAPES, (0,), (3, 0), (0, 3), (5, 600)]:
        for x in samples(dtype, shape, name == "cumsum"):
            for dim in range(-max(len(shape), 1), max(len(shape), 1)):
                with np.errstate(all="ignore"):
                    same(taken(kernel, x, dim, None), kernel.__wrapped__(x, dim, None))
    zeros = kernel(np.full((2, 3), -0.0, np.float32), 1)
    assert name == "cumprod" or np.signbit(zeros).all()
