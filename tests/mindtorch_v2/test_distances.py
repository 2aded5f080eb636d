"""Distances of rows of two arrays and their gradients, by their formulas in float64."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

SHAPES = [
    ((30, 64), (40, 64)),
    ((2, 3, 7, 5), (2, 3, 9, 5)),
    ((3, 7, 5), (9, 5)),
    ((6, 4), (3, 4)),
    ((0, 3), (30, 3)),
    ((3, 0), (7, 0)),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("p", [0, 0.5, 1, 1.5, 2, 3, np.inf])
def test_cdist_and_its_gradients(p: float, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(0)
    for first, second in SHAPES:
        a, b = (rng.standard_normal(shape).astype(np.float32).astype(np.float64) for shape in (first, second))
        if a.size and b.size:
            b[..., 0, :] = a[..., 0, :] if a.ndim == b.ndim else a[0, 0]  # a distance of zero has no slope
        x, y = (torch.tensor(v, dtype=dtype, requires_grad=True) for v in (a, b))
        found = torch.cdist(x, y, p)
        grad = rng.standard_normal(found.shape)
        found.backward(torch.tensor(grad, dtype=dtype))
        difference = a[..., :, None, :] - b[..., None, :, :]
        size = np.abs(difference)
        lengths = (
            size.max(-1, initial=0) if p == np.inf else (size != 0).sum(-1) if p == 0 else (size**p).sum(-1) ** (1 / p)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (
                np.zeros_like(size)
                if p == 0
                else np.sign(difference) * (size == lengths[..., None])
                if p == np.inf
                else np.sign(difference) * np.where(size == 0, 0, size ** (p - 1) / lengths[..., None] ** (p - 1))
            )
        share = grad[..., None] * slope
        wanted = lengths, share.sum(-2), -share.sum(-3)
        if y.dim() < wanted[2].ndim:
            wanted = *wanted[:2], wanted[2].sum(0)
        tolerance = 2e-4 if dtype == torch.float32 else 1e-10
        for value, right in zip((found, x.grad, y.grad), wanted):
            np.testing.assert_allclose(value.detach().numpy(), right, rtol=tolerance, atol=tolerance * 10)
