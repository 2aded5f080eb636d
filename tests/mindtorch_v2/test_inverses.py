"""Inverses and Cholesky factors by loops and by LAPACK, sums that leave out NaN, and products of many elements."""

import numpy as np
import pytest

import mindtorch_v2 as torch

KINDS = (torch.float32, torch.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", (1, 2, 5, 16, 17, 70))
@pytest.mark.parametrize("batch", ((), (3,), (2, 0), (2, 2)), ids=str)
def test_inverse_and_cholesky(n: int, batch: tuple, kind: torch.dtype) -> None:
    near = 2e-4 if kind is torch.float32 else 1e-10
    draw = np.random.default_rng(n)
    a = torch.from_numpy(draw.standard_normal((*batch, n, n))).to(kind)
    one = torch.eye(n, dtype=kind).expand(*batch, n, n)
    regular = (a + 3 * n**0.5 * one).flip(-2)  # whose diagonal is no place to begin
    positive = a @ a.mT + n * one
    for _ in range(2):
        for x in (regular, regular.mT):
            inverse, info = torch.linalg.inv_ex(x)
            assert torch.allclose(x @ inverse, one, atol=near) and inverse.mT.is_contiguous() and not info.any()
        for upper in (False, True):
            read = positive.triu() + torch.full_like(a, float("nan")).tril(-1) if upper else positive.tril()
            factor, info = torch.linalg.cholesky_ex(read, upper=upper)
            square = factor.mT @ factor if upper else factor @ factor.mT
            assert torch.allclose(square, positive, rtol=near, atol=near * n) and info.dtype is torch.int32
            assert torch.equal(factor, factor.triu() if upper else factor.tril())


@pytest.mark.parametrize("n", (3, 20))
def test_matrices_that_have_none(n: int) -> None:
    for _ in range(2):
        for bad, order in ((torch.zeros(n, n), 1), (torch.ones(n, n), 2), (torch.full((n, n), float("nan")), 1)):
            assert torch.linalg.cholesky_ex(bad)[1].item() == order
            with pytest.raises(torch.linalg.LinAlgError, match=f"leading minor of order {order}"):
                torch.linalg.cholesky(torch.stack([torch.eye(n), bad]))
        with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 2 is zero"):
            torch.linalg.inv(torch.ones(n, n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", (1, 3, 40, 700))
def test_nansum_and_prod(n: int, kind: torch.dtype) -> None:
    x = np.random.default_rng(n).standard_normal((5, n, 3))
    x[1, 0], x[2, 0, 1], x[::2, ::3] = np.nan, np.inf, np.nan
    given = torch.from_numpy(x).to(kind)
    for _ in range(2):
        for dim in (0, 1, 2, (0, 2), None):
            assert np.allclose(given.nansum(dim).numpy(), np.nansum(x, dim), rtol=1e-5, atol=1e-4)
        assert np.allclose(
            given[:, ::2].nansum(1, keepdim=True).numpy(), np.nansum(x[:, ::2], 1, keepdims=True), atol=1e-4
        )
        near_one = 1 + x[:, :, 0] / 20
        found = torch.from_numpy(near_one).to(kind).prod(1).numpy()
        assert np.allclose(found, near_one.prod(1), rtol=1e-4, equal_nan=True)
