"""Resizing in C gives what the numpy kernels behind it give: every mode, up and down, forward and backward, of any layout."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension

from mindtorch_v2._backends.cpu.ops import upsample
from mindtorch_v2._dispatch import native

pytestmark = needs_extension

_NAMES = [name for name in dir(upsample) if name.startswith("upsample_")]
_TARGETS = {1: [(3,), (7,), (14,), (1,)], 2: [(3, 10), (14, 9), (7, 5), (1, 1)], 3: [(3, 10, 4), (14, 5, 1), (7, 9, 3)]}


def _agree(kernel: Any, *args: Any) -> None:
    found, wanted = kernel(*args), kernel.__wrapped__(*args)
    what = f"{kernel.__name__}({[f'{a.dtype}{a.shape}' if isinstance(a, np.ndarray) else a for a in args]})"
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, what
    assert_close(found, wanted, what, 100)


@pytest.mark.parametrize("name", _NAMES)
def test_as_numpy(name: str) -> None:
    kernel: Any = getattr(upsample, name)
    if native.extension is not None:
        assert isinstance(kernel, native.extension.Kernel)
    names = list(inspect.signature(kernel).parameters)
    axes = sum(parameter.startswith("scales") for parameter in names)
    backward, corners = "input_size" in names, "align_corners" in names
    generator = np.random.default_rng(1)
    shape = (2, 3, *(7, 5, 3)[:axes])
    for dtype in (np.float32, np.float64):
        for target in _TARGETS[axes]:
            given = (*shape[:2], *target) if backward else shape
            x = generator.normal(size=given).astype(dtype)
            strided = generator.normal(size=(given[1], given[0], *given[2:])).astype(dtype).swapaxes(0, 1)
            factors = [out / size for out, size in zip(target, shape[2:], strict=True)]
            for scales in ([None] * axes, factors, [f * 1.05 for f in factors]):
                for aligned in ([True], [False]) if corners else ([],):
                    for each in (x, strided):
                        _agree(kernel, each, target, *([shape] if backward else []), *aligned, *scales)


def test_what_does_not_change_keeps_infinities() -> None:
    x = np.array([[[1.0, np.inf, np.nan, 2.0]]], np.float32)
    assert np.array_equal(upsample.upsample_linear1d(x, (4,), False), x, equal_nan=True)
