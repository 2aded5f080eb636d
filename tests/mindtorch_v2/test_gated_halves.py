"""Halves that let through of each other, and shifts by one number: values for all layouts, sizes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 2600), -1), ((6, 5), 0), ((2, 6, 70), 1), ((2,), 0), ((0, 4), 1), ((4, 0), 0)]
)
def test_glu(shape: tuple[int, ...], dim: int, dtype: Any, vectors: int) -> None:
    given = np.random.default_rng(0).standard_normal(shape) * 3
    near = 2e-2 if dtype is torch.bfloat16 else 1e-5 if dtype is torch.float32 else 1e-13
    for turned in (False, True):
        x = torch.from_numpy(np.asfortranarray(given) if turned else given).to(dtype).requires_grad_()
        first, second = np.split(x.detach().double().numpy(), 2, dim)
        gate = 1 / (1 + np.exp(-second))
        y = torch.nn.functional.glu(x, dim)
        assert y.dtype is dtype
        np.testing.assert_allclose(y.detach().double().numpy(), first * gate, rtol=near, atol=near)
        weight = torch.arange(y.numel(), dtype=dtype).reshape(y.shape) % 7
        (y * weight).sum().backward()
        through = weight.double().numpy() * gate
        assert x.grad is not None
        wanted = np.concatenate([through, through * first * (1 - gate)], dim)
        np.testing.assert_allclose(x.grad.double().numpy(), wanted, rtol=near, atol=10 * near)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_shifts_by_one_number(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.concatenate([np.arange(100), [limits.min, limits.max]]).astype(dtype)
    for by in (0, 1, 3, limits.bits - 1, limits.bits, limits.bits + 1):
        wide = [int(v) for v in x]
        left = [(v << by) % (1 << limits.bits) for v in wide]
        left = [v - (1 << limits.bits) if v > limits.max else v for v in left] if by < limits.bits else [0] * len(x)
        assert (torch.from_numpy(x) << by).tolist() == left
        assert (torch.from_numpy(x) >> by).tolist() == [v >> min(by, limits.bits) for v in wide]
