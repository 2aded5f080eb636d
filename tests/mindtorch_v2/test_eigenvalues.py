"""Eigenvalues of symmetric matrices and singular values: what they are, whatever computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

DTYPES = ["float32", "float64"]


def _symmetric(a: np.ndarray, upper: bool) -> np.ndarray:
    """The matrices that one triangle says, in float64."""
    part = (np.triu if upper else np.tril)(a.astype(np.float64))
    return part + np.swapaxes(part, -1, -2) - part * np.eye(a.shape[-1])


def _check(a: np.ndarray, upper: bool = False) -> None:
    part = "U" if upper else "L"
    values, vectors = (x.numpy() for x in torch.linalg.eigh(torch.from_numpy(a), UPLO=part))
    exact, n = _symmetric(a, upper), a.shape[-1]
    near = 20 * np.finfo(a.dtype).eps * n
    size = max(float(np.abs(exact).max()), float(np.finfo(a.dtype).tiny))
    assert (np.diff(values) >= 0).all() and vectors.strides[-2] == a.itemsize
    np.testing.assert_allclose(
        exact / size @ vectors, vectors * (values.astype(np.float64) / size)[..., None, :], atol=near
    )
    np.testing.assert_allclose(np.swapaxes(vectors, -1, -2) @ vectors, np.broadcast_to(np.eye(n), a.shape), atol=near)
    alone = torch.linalg.eigvalsh(torch.from_numpy(a), UPLO=part).numpy()
    np.testing.assert_allclose(alone / size, np.linalg.eigvalsh(exact / size), atol=near)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 15, 33, 64, 100, 140])
def test_of_all_sizes(n: int, dtype: str, vectors: int) -> None:
    a = np.random.default_rng(n).standard_normal((3, n, n)).astype(dtype)
    _check(a)
    _check(a, upper=True)
    _check(a.swapaxes(1, 2)[::2])


def _of(values: Any) -> np.ndarray:
    q = np.linalg.qr(np.random.default_rng(0).standard_normal((len(values), len(values))))[0]
    return (q * values) @ q.T


KINDS = {
    "graded": _of(10.0 ** -np.arange(0, 30, 0.5)),
    "close together": _of(1 + 1e-7 * np.arange(40)),
    "the same": _of(np.repeat([-1.0, 2.0, 2.0, 3.0], 10)),
    "of rank one": np.ones((40, 40)),
    "zero": np.zeros((20, 20)),
    "diagonal": np.diag(np.arange(20) % 7 - 3.0),
    "in pairs": np.diag(np.abs(np.arange(41) - 20.0)) + np.diag(np.ones(40), 1) + np.diag(np.ones(40), -1),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_of_all_kinds(kind: str, dtype: str, vectors: int) -> None:
    limits = np.finfo(dtype)
    for scale in (1.0, float(limits.max) / 200, float(limits.tiny) * 200):
        _check((KINDS[kind] * scale).astype(dtype))


def test_the_other_triangle_is_not_read() -> None:
    a = np.random.default_rng(0).standard_normal((6, 6))
    spoilt = np.where(np.triu(np.ones((6, 6)), 1) > 0, np.nan, a)
    np.testing.assert_array_equal(*(torch.linalg.eigvalsh(torch.from_numpy(x)).numpy() for x in (a, spoilt)))
    with pytest.raises(torch.linalg.LinAlgError, match="error code: 5"):
        torch.linalg.eigh(torch.from_numpy(spoilt.T.copy()))[0].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 5), (2, 3, 4, 6), (3, 6, 4), (70, 50)], ids=str)
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(shape: tuple[int, ...], dtype: str, full: bool) -> None:
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    rows, columns = shape[-2:]
    inner, near = min(rows, columns), 50 * np.finfo(dtype).eps * max(rows, columns)
    u, s, v = (x.numpy() for x in torch.linalg.svd(torch.from_numpy(a), full_matrices=full))
    assert u.shape[-2:] == (rows, rows if full else inner) and v.shape[-2:] == (columns if full else inner, columns)
    np.testing.assert_allclose((u[..., :inner] * s[..., None, :]) @ v[..., :inner, :], a, atol=near)
    for x in (np.swapaxes(u, -1, -2), v):
        np.testing.assert_allclose(
            x @ np.swapaxes(x, -1, -2), np.broadcast_to(np.eye(x.shape[-2]), (*x.shape[:-1], x.shape[-2])), atol=near
        )
    assert s.dtype == dtype and (s >= 0).all() and (np.diff(s) <= 0).all()
    np.testing.assert_allclose(torch.linalg.svdvals(torch.from_numpy(a)).numpy(), s, rtol=near, atol=near)
