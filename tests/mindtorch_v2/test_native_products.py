"""Matrix products of the C extension give what numpy's give."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import matmul as products

pytestmark = [needs_extension, pytest.mark.usefixtures("vectors")]
DTYPES = ["float32", "float64", "int64", "int32", "int16", "int8", "uint8"]


def _array(shape: tuple, dtype: str, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 100, shape).astype(dtype)


def _layouts(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same elements with other strides."""
    yield array
    if array.ndim >= 2:
        yield array.swapaxes(-1, -2).copy().swapaxes(-1, -2)
    yield np.repeat(array, 2, -1)[..., ::2]
    if array.ndim:
        yield array[::-1].copy()[::-1]


def _same(kernel: Any, *args: Any) -> None:
    found, wanted = kernel(*args), np.asarray(kernel.__wrapped__(*args))
    what = f"{kernel.__name__} {[(a.dtype, a.shape, a.strides) if isinstance(a, np.ndarray) else a for a in args]}"
    assert found.dtype == wanted.dtype and found.shape == wanted.shape and found.flags.c_contiguous, what
    assert_close(found, wanted, what, 400)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul(dtype: str) -> None:
    shapes = [
        ((4, 4), (4, 4)), ((1, 3), (3, 5)), ((40, 30), (30, 50)), ((5, 70), (70, 19)), ((16, 200), (200, 33)), ((2, 3, 70), (70, 19)), ((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((600,), (600,)), ((70, 90), (90,)),
        ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)),
        ((2, 30, 40), (2, 40, 30)), ((0, 4), (4, 3)), ((2, 0), (0, 3)), ((0, 3, 4), (0, 4, 2)),
    ]  # fmt: skip
    for left, right in shapes:
        for a, b in itertools.product(_layouts(_array(left, dtype, 1)), _layouts(_array(right, dtype, 2))):
            _same(products.matmul, a, b)
            if a.ndim == b.ndim == 2:
                _same(products.mm, a, b)
            elif a.ndim == b.ndim == 3 and a.shape[0] == b.shape[0]:
                _same(products.bmm, a, b)
            elif a.ndim == 2 and b.ndim == 1:
                _same(products.mv, a, b)
            elif a.ndim == b.ndim == 1:
                _same(products.dot, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_linear(dtype: str) -> None:
    for shape in ((4, 4), (4,), (2, 3, 4), (0, 4), (200, 4)):
        for x, weight in itertools.product(_layouts(_array(shape, dtype, 1)), _layouts(_array((6, 4), dtype, 2))):
            for bias in (None, _array((6,), dtype, 3), _array((12,), dtype, 3)[::2]):
                _same(products.linear, x, weight, bias)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("factors", [(1, 1), (2, 3), (0, 1), (0.5, -1.5), (1, 0)])
def test_added_products(dtype: str, factors: tuple) -> None:
    if dtype == "int64" and isinstance(factors[0], float):
        return
    m1, m2, vector = _array((5, 4), dtype, 1), _array((4, 6), dtype, 2), _array((4,), dtype, 3)
    for shape in ((6,), (5, 6), (1, 6), (5, 1), (1,), ()):
        for added in _layouts(_array(shape, dtype, 4)) if shape else [_array(shape, dtype, 4)]:
            _same(products.addmm, added, m1, m2, *factors)
    for shape in ((5,), (1,), ()):
        _same(products.addmv, _array(shape, dtype, 4), m1, vector, *factors)
    batch1, batch2 = _array((3, 5, 4), dtype, 1), _array((3, 4, 6), dtype, 2)
    for shape in ((3, 5, 6), (1, 5, 6), (3, 1, 1)):
        _same(products.baddbmm, _array(shape, dtype, 4), batch1, batch2, *factors)


def test_ignored_addend_may_hold_nan() -> None:
    nan, ones = np.full((2, 2), np.nan, np.float32), np.ones((2, 2), np.float32)
    assert np.array_equal(products.addmm(nan, ones, ones, 0, 1), ones * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [1, 16, 255, 513])
def test_large_products_of_all_sizes_and_layouts(k: int, dtype: str) -> None:
    near = 1e-5 if dtype == "float32" else 1e-13
    for m, n in itertools.product((2, 3, 9, 15, 58), (4, 17, 33, 520)):
        left, right = _array((m, k), dtype, 1), _array((k, n), dtype, 2)
        wanted = left.astype(np.float64) @ right.astype(np.float64)
        for a, b in itertools.product(_layouts(left), _layouts(right)):
            exact = a.astype(np.float64) @ b.astype(np.float64)
            np.testing.assert_allclose(products.mm(a, b), exact, rtol=near, atol=near * np.sqrt(k))
        shift = _array((n,), dtype, 3)
        found = products.linear(left, np.ascontiguousarray(right.T), shift)
        np.testing.assert_allclose(found, wanted + shift, rtol=near, atol=near * np.sqrt(k))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(1100, 385, 70), (530, 800, 200), (40, 390, 33), (540, 1200, 31)])
def test_products_of_several_blocks(sizes: tuple[int, int, int], dtype: str) -> None:
    m, k, n = sizes
    near = 1e-5 if dtype == "float32" else 1e-13
    left, right = _array((m, k), dtype, 1), _array((k, n), dtype, 2)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    for a in (left, np.asfortranarray(left), _array((k, m), dtype, 3).T):
        for b in (right, np.asfortranarray(right), np.repeat(right, 2, 1)[:, ::2]):
            wanted = exact if a is left else a.astype(np.float64) @ b.astype(np.float64)
            np.testing.assert_allclose(products.mm(a, b), wanted, rtol=near, atol=near * np.sqrt(k))
    shift = _array((n,), dtype, 4)
    for found in (
        products.linear(left, np.asfortranarray(right).T, shift),
        products.addmm(shift, left, right, 1, 1),
        products.fast_addmm(shift, left, right, 1, 1),
    ):
        np.testing.assert_allclose(found, exact + shift, rtol=near, atol=near * np.sqrt(k))


def test_an_element_of_a_product_is_the_same_whatever_is_beside_it(vectors: int) -> None:
    if vectors < 2:
        pytest.skip("products are the BLAS's without vectors of 512 bits, which promises nothing")
    left, right = _array((1100, 900), "float32", 1), _array((900, 300), "float32", 2)
    whole = products.mm(left, right)
    for m in (*range(2, 60), 600):
        np.testing.assert_array_equal(products.mm(left[:m], right), whole[:m])
    for n in (17, 33, 200):  # fewer may be summed as vectors
        np.testing.assert_array_equal(products.mm(left, right[:, :n]), whole[:, :n])
        np.testing.assert_array_equal(products.mm(np.asfortranarray(left), right[:, :n].T.copy().T), whole[:, :n])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_batches_of_products(dtype: str) -> None:
    near = 1e-5 if dtype == "float32" else 1e-13
    for left, right in (
        ((7, 30, 65), (7, 65, 40)),
        ((9, 16, 16), (9, 16, 16)),
        ((3, 1, 20, 50), (1, 4, 50, 33)),
        ((600, 8, 8), (600, 8, 8)),
        ((5, 9, 30), (30, 21)),
    ):
        for a, b in itertools.product(_layouts(_array(left, dtype, 1)), _layouts(_array(right, dtype, 2))):
            exact = a.astype(np.float64) @ b.astype(np.float64)
            np.testing.assert_allclose(products.matmul(a, b), exact, rtol=near, atol=near * 30)


@pytest.mark.parametrize("sizes", [(33, 70, 129), (12, 40, 96), (64, 31, 33), (5, 300, 64), (130, 64, 40)], ids=str)
def test_products_of_bfloat16_round_once(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes

    def rounded(shape: tuple, seed: int) -> torch.Tensor:
        return torch.from_numpy(_array(shape, "float32", seed)).bfloat16()

    def close(found: torch.Tensor, exact: np.ndarray) -> None:
        assert found.dtype is torch.bfloat16
        np.testing.assert_allclose(found.double().numpy(), exact, rtol=2**-8, atol=1e-4)

    shift = rounded((n,), 3)
    for left, right in (
        (rounded((m, k), 1), rounded((k, n), 2)),
        (rounded((k, m), 1).T, rounded((n, k), 2).T),
        (rounded((m, 2 * k), 1)[:, ::2], rounded((k, 2 * n), 2)[:, ::2]),
        (rounded((m, k + 1), 1)[:, 1:], rounded((n, k + 1), 2)[:, 1:].T),
    ):
        exact = left.double().numpy() @ right.double().numpy()
        close(left @ right, exact)
        close(torch.nn.functional.linear(left, right.T, shift), exact + shift.double().numpy())
    left, right = rounded((3, m, k), 1), rounded((3, k, n), 2)
    close(left @ right, left.double().numpy() @ right.double().numpy())
    close(left @ right[0], left.double().numpy() @ right[0].double().numpy())
    assert torch.isnan(left.fill_(float("nan")) @ right).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_rows_by_rows_of_a_weight(dtype: str, vectors: int) -> None:
    kind = getattr(torch, dtype)
    for m, n, k in itertools.product((2, 3, 4, 5, 6, 7, 8, 9, 13), (8, 9, 11, 30, 65), (32, 33, 47, 130)):
        torch.manual_seed(m * n * k)
        x, weight, bias = torch.randn(m, k, dtype=kind), torch.randn(n, k, dtype=kind), torch.randn(n, dtype=kind)
        wide = torch.full((m + 2, k + 5), torch.nan, dtype=kind)
        wide[1:-1, 2 : k + 2] = x
        exact = x.double() @ weight.double().mT
        bound = 1e-6 if dtype == "float32" else 1e-14
        for left in (x, wide[1:-1, 2 : k + 2]):
            assert ((left @ weight.mT).double() - exact).abs().max() <= bound * k**0.5 * 4
            made = torch.nn.functional.linear(left, weight, bias)
            assert (made.double() - exact - bias.double()).abs().max() <= bound * k**0.5 * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_outer_products(dtype: Any) -> None:
    a, b = (torch.arange(n).to(dtype) - 3 for n in (7, 19))
    wanted = a[:, None] * b
    assert torch.equal(torch.outer(a, b), wanted)
    assert torch.equal(torch.outer(a[::2], b[::3]), wanted[::2, ::3])
    out = torch.zeros(7, 19, dtype=dtype)
    assert torch.outer(a, b, out=out) is out and torch.equal(out, wanted)
    strided = torch.zeros(19, 7, dtype=dtype).t()
    assert torch.equal(torch.outer(a, b, out=strided), wanted)
    with pytest.raises(RuntimeError, match="Expected 1-D argument self"):
        torch.outer(a[None], b)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 16, 17, 32, 33])
def test_few_rows_of_half_types_by_matrices_that_lie_either_way(dtype: Any, m: int) -> None:
    near = 2**-8 if dtype is torch.bfloat16 else 2**-11
    for n, k in itertools.product((1, 4, 9, 33, 700), (1, 5, 8, 70, 257)):
        torch.manual_seed(m * n * k)
        x, weight, shift = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), torch.randn(n).to(dtype)
        wide = torch.full((m, 2 * k + 1), torch.nan, dtype=dtype)
        wide[:, 1::2] = x
        exact = x.double() @ weight.double()
        bound = near * exact.abs().max().item() + 1e-6 * k
        for left, right in itertools.product((x, wide[:, 1::2]), (weight, weight.T.contiguous().T)):
            for found, wanted in (
                (left @ right, exact),
                (right.T @ left.T, exact.T),
                (torch.addmm(shift, left, right), exact + shift.double()),
                (torch.addmm(shift[:1], left, right, beta=0.5, alpha=-2), 0.5 * shift[:1].double() - 2 * exact),
                (torch.addmm(shift * torch.nan, left, right, beta=0), exact),
                (torch.nn.functional.linear(left, right.T, shift), exact + shift.double()),
                (torch.baddbmm(shift, left[None], right[None], alpha=2)[0], shift.double() + 2 * exact),
                (torch.addmv(shift, right.T, left[0], beta=2), exact[0] + 2 * shift.double()),
                (right.T @ left[0], exact[0]),
                (left.expand(3, 1, m, k) @ right.expand(2, k, n), exact.expand(3, 2, m, n)),
            ):
                assert found.dtype is dtype and found.shape == wanted.shape
                assert ((found.double() - wanted).abs() <= near * wanted.abs() + 3 * bound).all()
        with np.errstate(invalid="ignore"):  # of numpy's product of float16, without wide vectors
            assert torch.isnan(x.fill_(torch.inf) @ weight.fill_(0)).all()


def test_few_vectors_by_large_matrices_of_float32(vectors: int) -> None:
    for k, n in ((700, 901), (1030, 611)):
        torch.manual_seed(k)
        weight, shift = torch.randn(k, n), torch.randn(n)
        for m in (1, 2, 3, 6, 16):
            x = torch.randn(m, k)
            exact = x.double() @ weight.double()
            for right in (weight, weight.T.contiguous().T):
                for found, wanted in (
                    (x @ right, exact),
                    (right.T @ x.T, exact.T),
                    (right.T @ x[0], exact[0]),
                    (torch.addmm(shift, x, right), exact + shift.double()),
                    (torch.nn.functional.linear(x, right.T, shift), exact + shift.double()),
                ):
                    assert ((found.double() - wanted).abs() <= 1e-6 * wanted.abs() + 4e-6 * k**0.5).all()
            if vectors:
                assert torch.equal((x @ weight)[:1], x[:1] @ weight)


def test_a_row_by_bytes_is_the_same_whatever_rows_are_beside_it() -> None:
    torch.manual_seed(0)
    x, weight, scales = torch.randn(16, 131), torch.randint(-127, 128, (50, 131)).to(torch.int8), torch.rand(50)
    whole = torch._weight_int8pack_mm(x, weight, scales)
    parts = [torch._weight_int8pack_mm(part, weight, scales) for part in (x[:1], x[1:3], x[3:6], x[6:])]
    assert torch.equal(whole, torch.cat(parts))
