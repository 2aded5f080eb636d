"""topk of long rows, whose first elements one walk finds, is the beginning of the sorted row, with NaN before all numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32], ids=lambda dtype: dtype.__name__)
def test_first_of_rows(dtype: Any, largest: bool) -> None:
    rng = np.random.default_rng(3)
    for n, k in ((65, 1), (100, 63), (100, 64), (1000, 5), (1023, 63), (3001, 40), (5000, 100)):
        x = np.stack([rng.permutation(n) for _ in range(7)]).astype(dtype) - n // 2
        x[0], x[1] = np.sort(x[0]), -np.sort(-x[1])
        if x.dtype.kind == "f":
            x[2, :3] = np.inf, -np.inf, np.finfo(dtype).max
        values, places = torch.from_numpy(x).topk(k, -1, largest)
        order = np.argsort(-x if largest else x, axis=1)[:, :k]
        assert places.tolist() == order.tolist(), (n, k)
        assert values.tolist() == np.take_along_axis(x, order, 1).tolist()


@pytest.mark.parametrize("at", [0, 40, 499])
def test_nan_is_the_largest(at: int) -> None:
    x = np.random.default_rng(3).permutation(500).astype(np.float32)
    x[at] = np.nan
    order = np.argsort(x)
    for largest, wanted in ((True, [at, *order[:-1][::-1][:3]]), (False, order[:4])):
        assert torch.from_numpy(x).topk(4, -1, largest)[1].tolist() == list(wanted)
