"""Kernels in C that choose by rank, pad, unroll patches and factor matrices give what the numpy functions behind them give."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import conv, indexing, linalg, scan, shape, sorting

DTYPES = (np.float32, np.float64, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_)


def _rows(dtype: Any, size: tuple[int, ...], distinct: int) -> np.ndarray:
    made = np.random.default_rng(3).integers(0, distinct, size).astype(dtype)
    if made.dtype.kind == "f" and made.size > 3:
        made.reshape(-1)[[1, 3]] = np.nan
    return made


def _agree(kernel: Any, *args: Any) -> None:
    found, wanted = kernel(*args), kernel.__wrapped__(*args)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        one, other = np.asarray(one), np.asarray(other)
        what = f"{kernel.__name__}{[getattr(a, 'shape', a) for a in args]}"
        assert one.dtype == other.dtype and one.shape == other.shape, what
        assert np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"), what


@needs_extension
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("distinct", [2, 100])
def test_ranks(dtype: Any, distinct: int) -> None:
    for size in [(1,), (6,), (9,), (4, 7), (3, 5, 8), (400,), (2, 301)]:
        x = _rows(dtype, size, distinct)
        for kernel in (sorting.median, sorting.nanmedian):
            _agree(kernel, x)
            _agree(kernel, x.T)
        for dim, keepdim in itertools.product(range(-len(size), len(size)), (False, True)):
            for kernel in (sorting.median_dim, sorting.nanmedian_dim, sorting.mode):
                _agree(kernel, x, dim, keepdim)
            for k in {1, (size[dim] + 1) // 2, size[dim]}:
                _agree(sorting.kthvalue, x, k, dim, keepdim)


@needs_extension
@pytest.mark.parametrize("dtype", DTYPES)
def test_distinct_elements(dtype: Any) -> None:
    for size, inverse, counts in itertools.product([(0,), (1,), (40,), (4, 7), (300,)], (False, True), (False, True)):
        x = _rows(dtype, size, 4)
        x[x != x] = 1
        if x.dtype.kind == "f" and x.size:
            x.reshape(-1)[0] = np.nan
        for array in (x, x.T):
            _agree(sorting.unique2, array, True, inverse, counts)
            _agree(sorting.unique_consecutive, array, inverse, counts, None)


@needs_extension
@pytest.mark.parametrize("dtype", DTYPES)
def test_running_extremes(dtype: Any) -> None:
    x = _rows(dtype, (3, 6, 4), 4)
    for array, dim in itertools.product((x, x.transpose(2, 0, 1), x[:, ::2]), range(-3, 3)):
        _agree(scan.cummax, array, dim)
        _agree(scan.cummin, array, dim)


def _extremes_of(line: np.ndarray, largest: bool) -> list[int]:
    """Where the running extremes of a line are: the latest of equal ones, and the latest NaN from the first on."""
    places, at = [], 0
    for k, here in enumerate(line):
        best = line[at]
        if here != here or (best == best and (here >= best if largest else here <= best)):
            at = k
        places.append(at)
    return places


@needs_extension
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(5, 70), (70, 5), (3, 70, 33), (2, 40, 16), (1, 17), (100, 15)])
def test_running_extremes_of_longer_lines(dtype: Any, size: tuple[int, ...], vectors: int) -> None:
    make = np.random.default_rng(7)
    if not np.issubdtype(dtype, np.floating):
        _check_extremes(make.integers(0, 2, size).astype(dtype))
        _check_extremes(make.integers(0, 60, size).astype(dtype))
        return
    for spread, nans in itertools.product((1, 30), (0, 0.01)):
        x = (make.standard_normal(size) * spread).astype(dtype)
        x[make.random(size) < 0.2] = 0.0
        x[make.random(size) < 0.2] = -0.0
        x[make.random(size) < nans] = np.nan
        _check_extremes(x)


def _check_extremes(x: np.ndarray) -> None:
    for dim, (kernel, largest) in itertools.product(range(x.ndim), ((scan.cummax, True), (scan.cummin, False))):
        values, places = kernel(x, dim)
        wanted = np.apply_along_axis(_extremes_of, dim, x, largest)
        assert np.array_equal(places, wanted)
        taken = np.take_along_axis(x, wanted, dim)
        assert values.dtype == x.dtype
        assert np.array_equal(values, taken, equal_nan=x.dtype.kind == "f")
        assert x.dtype.kind != "f" or np.array_equal(np.signbit(values), np.signbit(taken))


@needs_extension
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_, np.complex64, np.float16])
def test_pads(dtype: Any) -> None:
    x = np.random.default_rng(1).integers(0, 9, (2, 3, 5, 6)).astype(dtype)
    for pad in [(1, 1), (0, 2), (1, 2, 3, 0), (-1, 2), (2, 1, -2, -1), (0, 0, 1, 1), (0, 0), (5, 5)]:
        for array in (x, x.transpose(0, 1, 3, 2)[..., :5]):
            for forward, backward in (
                (shape.reflection_pad, shape.reflection_pad_backward),
                (shape.replication_pad, shape.replication_pad_backward),
            ):
                if forward is shape.reflection_pad and max(pad) >= min(array.shape[-2:]):
                    continue
                _agree(forward, array, pad)
                if dtype in (np.float32, np.float64):
                    _agree(backward, forward(array, pad), array, pad)


@needs_extension
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_patches_and_their_adjoint(dims: int, dtype: Any) -> None:
    x = np.random.default_rng(2).integers(-5, 6, (2, 3, 7, 6, 5)[: 2 + dims]).astype(dtype)
    for size, stride, padding, dilation in itertools.product((1, 2, 3), (1, 2), (0, 1), (1, 2)):
        each = [(value,) * dims for value in (size, stride, padding, dilation)]
        out = conv._output_size(x.shape[2:], each[0], *each[1:])
        _agree(conv.unrolled, x, each[0], out, *each[1:])
        _agree(conv.unrolled, x.swapaxes(0, 1), each[0], out, *each[1:])
        columns = conv.unrolled(x, each[0], out, *each[1:])
        _agree(conv.folded, columns, x.shape[2:], each[0], out, *each[1:])


@needs_extension
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_and_substitution(dtype: Any) -> None:
    generator = np.random.default_rng(4)
    for rows, columns in [(1, 1), (5, 5), (6, 4), (4, 6), (45, 45), (70, 33), (30, 90)]:
        a = generator.normal(size=(3, rows, columns)).astype(dtype)
        a[1, :, 0] = 0
        made = []
        for factor in (linalg.lu_in_place, linalg.lu_in_place.__wrapped__):
            lu, pivots, info = a.copy(), np.zeros((3, min(rows, columns)), np.int32), np.zeros(3, np.int32)
            factor(lu, pivots, info)
            made.append((lu, pivots, info))
        assert_close(made[0][0], made[1][0], "lu", 400)
        assert np.array_equal(made[0][1], made[1][1]) and made[0][2].tolist() == made[1][2].tolist() == [0, 1, 0]
    for n, m in ((6, 3), (37, 1), (50, 40)):
        a = generator.normal(size=(2, n, n)).astype(dtype) / n + np.eye(n, dtype=dtype)
        b = generator.normal(size=(2, n, m)).astype(dtype)
        for upper, unit in itertools.product((False, True), (False, True)):
            for matrix in (a, a.swapaxes(1, 2)):
                found = linalg.substituted(matrix, b.copy(), upper, unit)
                assert_close(found, linalg.substituted.__wrapped__(matrix, b.copy(), upper, unit), "x", 400)
        assert_close(linalg.solved(a, b), np.linalg.solve(a, b), "solution", 400)
        assert_close(linalg.solved(a.swapaxes(1, 2), b), np.linalg.solve(a.swapaxes(1, 2), b), "solution", 400)
        for matrix in (a, a.swapaxes(1, 2), a[0]):
            assert_close(linalg.det(matrix), np.linalg.det(matrix), "determinant", 400)
            for found, wanted in zip(linalg.slogdet(matrix), np.linalg.slogdet(matrix), strict=True):
                assert_close(found, np.asarray(wanted), "logarithm", 400)
        square = a @ a.swapaxes(1, 2)
        assert_close(linalg.cholesky_ex(square)[0], np.linalg.cholesky(square), "factor", 400)
        assert_close(linalg.cholesky_ex(square, True)[0].swapaxes(1, 2), np.linalg.cholesky(square), "factor", 400)
        assert_close(linalg.inv_ex(a)[0], np.linalg.inv(a), "inverse", 400)
    singular = np.ones((2, 20, 20), dtype)
    assert linalg.det(singular).tolist() == [0, 0]
    assert [part.tolist() for part in linalg.slogdet(singular)] == [[0, 0], [-np.inf, -np.inf]]
    assert np.isnan(linalg.det(np.full((3, 3), np.nan, dtype)))
    nan = np.full((3, 3), np.nan, dtype)
    assert np.isnan(linalg.solved(nan, np.ones((3, 1), dtype))).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("size", [(150, 150), (200, 90), (90, 200), (2, 130, 130)])
def test_large_factors_go_block_by_block(size: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a = torch.randn(*size, dtype=dtype)
    p, lower, upper = torch.linalg.lu(a)
    assert torch.allclose(p @ lower @ upper, a, atol=1e-3 if dtype is torch.float32 else 1e-10)
    assert lower.abs().max() <= (1.4143 if dtype.is_complex else 1.00001)
    n = size[-1]
    b = torch.randn(*size[:-2], n, 4, dtype=dtype)
    triangle = torch.randn(*size[:-2], n, n, dtype=dtype).triu() / n + torch.eye(n, dtype=dtype)
    x = torch.linalg.solve_triangular(triangle, b, upper=True)
    assert torch.allclose(triangle @ x, b, atol=1e-4 if dtype is torch.float32 else 1e-10)
    x = torch.linalg.solve_triangular(triangle.mT, b, upper=False)
    assert torch.allclose(triangle.mT @ x, b, atol=1e-4 if dtype is torch.float32 else 1e-10)


@needs_extension
def test_take_by_number() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for array in (x, x.astype(np.int8), x.astype(np.float16), x.astype(np.float32), x.T, x.astype(complex)):
        _agree(indexing.take, array, np.array([[0, -1], [11, -12]]))
    with pytest.raises(IndexError, match="out of range: tried to access index 12 on a tensor of 12 elements."):
        torch.take(torch.arange(12), torch.tensor([12])).tolist()


def test_geometry_of_as_strided_and_its_limits() -> None:
    x = torch.arange(12.0)
    for _ in range(3):
        assert x.as_strided((2, 3), (1, 4)).tolist() == [[0, 4, 8], [1, 5, 9]]
        assert x[2:].as_strided((2,), (3,)).tolist() == [2, 5]
        assert x.as_strided((3,), (0,)).stride() == (0,)
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 48"):
            x.as_strided((2,), (12,))
    view = x.as_strided((2,), (5,))
    view.zero_()
    assert x[0] == 0 and x[5] == 0 and x._version == 1 and view._base is x


def test_views_of_another_type_and_parts_with_one_node() -> None:
    z = torch.tensor([[1 + 2j, 3 - 1j]], requires_grad=True)
    for _ in range(3):
        real = torch.view_as_real(z)
        assert real.dtype is torch.float32 and real.shape == (1, 2, 2) and real.stride() == (4, 2, 1)
        assert real._base is z and real.grad_fn is not None
    real.sum().backward()
    assert z.grad is not None and z.grad.tolist() == [[1 + 1j, 1 + 1j]]
    x = torch.arange(4.0, requires_grad=True)
    for _ in range(3):
        first, second = x.split(2)
        assert first.grad_fn is second.grad_fn and first._base is x
        assert (first.output_nr, second.output_nr) == (0, 1)
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            (x * 1).split(2)[0].add_(1)
    (2 * first + 3 * second).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 3, 3]


@pytest.mark.parametrize(
    ("name", "points", "wanted"),
    [
        ("special.i0", [-3.0, 0.0, 1.5, 30.0], [4.880792585865024, 1.0, 1.6467231897728904, 781672297823.9775]),
        ("special.i1", [-3.0, 0.0, 1.5, 30.0], [-3.9533702174026093, 0.0, 0.9816664285779076, 768532038938.957]),
        (
            "digamma",
            [-1.5, -2.0, 0.25, 12.0],
            [0.7031566406452432, float("nan"), -4.227453533376265, 2.4426616799758123],
        ),
        ("lgamma", [-1.5, 0.25, 1.0, 50.0], [0.8600470153764811, 1.2880225246980772, 0.0, 144.5657439463449]),
        ("erfinv", [-1.0, -0.5, 0.0, 0.999], [-float("inf"), -0.4769362762044699, 0.0, 2.326753765513525]),
        ("erfc", [-2.0, 0.0, 1.0, 10.0], [1.9953222650189528, 1.0, 0.15729920705028513, 2.088487583762545e-45]),
        ("special.bessel_j0", [0.0, 1.0, 20.0], [1.0, 0.7651976865579665, 0.16702466434058316]),
        ("special.bessel_y1", [0.5, 3.0], [-1.471472392670243, 0.3246744247918]),
    ],
)
def test_special_functions_at_points(name: str, points: list[float], wanted: list[float]) -> None:
    function: Any = torch
    for part in name.split("."):
        function = getattr(function, part)
    for dtype, tolerance in ((torch.float64, 2e-13), (torch.float32, 3e-6)):
        x = torch.tensor(points, dtype=dtype)
        for _ in range(3):
            assert torch.allclose(
                function(x).double(), torch.tensor(wanted, dtype=torch.float64), tolerance, 1e-6 * tolerance, True
            )
        if "bessel" not in name and "i1" not in name:
            out = torch.empty(len(points), dtype=dtype)
            assert function(x, out=out) is out and torch.equal(out.nan_to_num(7), function(x).nan_to_num(7))


@pytest.mark.parametrize("name", ["shifted_chebyshev_polynomial_w", "laguerre_polynomial_l", "legendre_polynomial_p"])
def test_degrees_that_no_integer_holds(name: str) -> None:
    x = torch.tensor([0.3, 1.0, -1.0, 2.0, 0.0])
    for degree in (float("inf"), -float("inf"), float("nan"), 1e19):
        assert getattr(torch.special, name)(x, torch.tensor(degree)).tolist() == [0] * 5


_ENDS = {  # what is at 1, and at -1 but for the sign of the degree's parity
    "chebyshev_polynomial_t": (lambda n: 1, lambda n: 1),
    "chebyshev_polynomial_u": (lambda n: n + 1, lambda n: n + 1),
    "chebyshev_polynomial_v": (lambda n: 1, lambda n: 2 * n + 1),
    "chebyshev_polynomial_w": (lambda n: 2 * n + 1, lambda n: 1),
    "legendre_polynomial_p": (lambda n: 1, lambda n: 1),
}


@pytest.mark.parametrize("name", list(_ENDS))
def test_polynomials_of_every_degree_at_the_ends(name: str) -> None:
    right, left = _ENDS[name]
    for n in (0, 1, 2, 9, 10, 1_000_000_000, 1_000_000_001):
        wanted = [right(n), (-1) ** n * left(n)]
        ends = torch.tensor([1.0, -1.0], dtype=torch.float64)
        assert getattr(torch.special, name)(ends, n).tolist() == wanted
        if "chebyshev" in name:
            assert getattr(torch.special, f"shifted_{name}")((ends + 1) / 2, n).tolist() == wanted
    assert getattr(torch.special, name)(torch.tensor([1.0, -1.0]), -1).tolist() == [0, 0]


def test_polynomials_of_high_degrees() -> None:
    assert torch.special.laguerre_polynomial_l(torch.zeros(1), 1_000_000_000).item() == 1
    for function in (torch.special.hermite_polynomial_h, torch.special.hermite_polynomial_he):
        for dtype, limit in ((torch.float32, 128), (torch.float64, 512)):
            made = function(torch.zeros(3, dtype=dtype), torch.tensor([3, limit + 2, 1_000_000_000]))
            assert made[0] == 0 and made[1:].isnan().all()
    overflown = torch.special.chebyshev_polynomial_t(torch.tensor([1.5, -2.0]), 1_000_000_000)
    assert overflown.isnan().all()  # the difference of infinities
