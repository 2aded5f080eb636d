"""Reductions and softmax along last dimensions, short ones of which are turned first: what the same numbers give along the first dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import native

pytestmark = [
    pytest.mark.skipif(native.extension is None, reason="needs the extension"),
    pytest.mark.usefixtures("vectors"),
]

DTYPES = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.uint8,
    torch.bool,
)
FLOATS = DTYPES[:4]
ANY = {
    "sum": torch.sum,
    "prod": torch.prod,
    "amax": torch.amax,
    "amin": torch.amin,
    "any": torch.any,
    "all": torch.all,
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "count_nonzero": torch.count_nonzero,
    "max": lambda x, dim: tuple(torch.max(x, dim)),
    "min": lambda x, dim: tuple(torch.min(x, dim)),
    "aminmax": lambda x, dim: tuple(torch.aminmax(x, dim=dim)),
}
NOT_OF_BOOL = ("argmax", "argmin")
OF_FLOATS = {
    "mean": torch.mean,
    "var": torch.var,
    "std": torch.std,
    "logsumexp": torch.logsumexp,
    "norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
    "norm of order 1": lambda x, dim: torch.linalg.vector_norm(x, 1, dim=dim),
    "nansum": torch.nansum,
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
}
SHAPES = [(16, 2), (17, 3), (1000, 4), (40, 7), (2500, 10), (300, 28), (129, 32), (64, 33)]
LONGER = [*SHAPES, (20, 8), (20, 9), (50, 16), (50, 17), (70, 48), (30, 100), (9, 1041), (8, 9000)]


def rows(shape: tuple, dtype: Any, apart: int) -> Any:
    """`apart`: elements between the end of a row and the next."""
    rng = np.random.default_rng(shape[0])
    values = (
        rng.integers(0, 3, (shape[0], shape[1] + apart))
        if dtype in DTYPES[4:]
        else rng.standard_normal((shape[0], shape[1] + apart))
    )
    x = torch.from_numpy(values).to(dtype)[:, : shape[1]]
    if dtype.is_floating_point:
        x[3, 1], x[5, 0], x[6, 1] = float("nan"), float("inf"), float("-inf")
    return x


def compare(call: Any, x: Any) -> None:
    along, down = call(x, -1), call(x.t().contiguous(), 0)
    for found, wanted in zip(*[(made if isinstance(made, tuple) else (made,)) for made in (along, down)], strict=True):
        wanted = wanted.t() if wanted.dim() == 2 else wanted
        assert found.dtype is wanted.dtype
        if found.dtype.is_floating_point:
            torch.testing.assert_close(found, wanted, equal_nan=True)
        else:
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("apart", [0, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for n in ANY for d in DTYPES if d is not torch.bool or n not in NOT_OF_BOOL]
)
def test_reductions(name: str, dtype: Any, shape: tuple, apart: int) -> None:
    compare(ANY[name], rows(shape, dtype, apart))


@pytest.mark.parametrize("apart", [0, 3])
@pytest.mark.parametrize("shape", LONGER)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_FLOATS)
def test_reductions_of_floats(name: str, dtype: Any, shape: tuple, apart: int) -> None:
    compare(OF_FLOATS[name], rows(shape, dtype, apart))


@pytest.mark.parametrize("shape", LONGER)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("call", [torch.softmax, torch.log_softmax])
def test_derivatives_of_softmax(call: Any, dtype: Any, shape: tuple) -> None:
    x = rows(shape, dtype, 0).nan_to_num(0, 1, -1)
    upper = torch.from_numpy(np.random.default_rng(9).standard_normal(shape)).to(dtype)
    made = []
    for turned in (False, True):
        leaf = (x.t().contiguous() if turned else x.clone()).requires_grad_()
        call(leaf, 0 if turned else -1).backward(upper.t().contiguous() if turned else upper)
        made.append(leaf.grad.t() if turned else leaf.grad)
    torch.testing.assert_close(
        *made, atol=1e-2 if dtype.itemsize == 2 else 1e-6, rtol=1e-2 if dtype.itemsize == 2 else 1e-5
    )


@pytest.mark.parametrize("length", [1, 5, 20, 47, 300])
@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_rows_that_are_masked(dtype: Any, length: int) -> None:
    x = torch.full((4, length), float("-inf"), dtype=dtype)
    x[1, -1], x[2, 0], x[2, -1] = 3.0, 800.0, -800.0
    x[3] = 0.0
    soft, logs, sums = torch.softmax(x, -1), torch.log_softmax(x, -1), torch.logsumexp(x, -1)
    assert soft[0].isnan().all() and logs[0].isnan().all() and sums[0] == float("-inf")
    assert soft[1].tolist() == [0.0] * (length - 1) + [1.0] and logs[1, -1] == 0.0 and sums[1] == 3.0
    assert soft[2, -1] == (length == 1) and logs[2, -1] == (0.0 if length == 1 else -1600.0)
    assert sums[2] == (-800.0 if length == 1 else 800.0)
    torch.testing.assert_close(soft[3], torch.full((length,), 1 / length, dtype=dtype))
    torch.testing.assert_close(logs[3], torch.full((length,), -np.log(length), dtype=dtype))
