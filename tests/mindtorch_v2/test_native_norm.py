"""Batch and group norm in C give what the numpy kernels behind them give, whatever the layout, and change running statistics alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension

from mindtorch_v2._backends.cpu.ops import norm

pytestmark = [needs_extension, pytest.mark.usefixtures("vectors")]

_MASKS = ((True, True, True), [True, False, True], (False, True, False))


def _inputs() -> Iterator[np.ndarray]:
    generator = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        for shape in ((5, 4), (2, 4, 3, 5), (3, 4, 70), (1, 4, 2, 2, 3), (64, 8), (11, 36), (2, 4, 1, 300), (1, 4, 1)):
            yield (generator.normal(size=shape) * 3 + 1).astype(dtype)
        wide = (generator.normal(size=(2, 3, 5, 4)) * 2).astype(dtype)
        yield wide.transpose(0, 3, 1, 2)
        yield (generator.normal(size=(6, 4, 4)) * 2).astype(dtype)[::2, :, ::2]


def _agree(kernel: Any, *args: Any) -> None:
    """The same results, and the same changes of the arguments."""
    mine, theirs = ([a.copy() if isinstance(a, np.ndarray) and a.ndim == 1 else a for a in args] for _ in range(2))
    with np.errstate(all="ignore"):
        found, wanted = kernel(*mine), kernel.__wrapped__(*theirs)
    what = f"{kernel.__name__}({[f'{a.dtype}{a.shape}' if isinstance(a, np.ndarray) else a for a in args]})"
    for one, other in itertools.chain(zip(found, wanted, strict=True), zip(mine, theirs, strict=True)):
        if not isinstance(other, np.ndarray):
            assert one is other or one == other, what
            continue
        assert one.dtype == other.dtype and one.shape == other.shape, what
        assert_close(one, other, what, 1000)


def _vectors(x: np.ndarray, count: int) -> list[np.ndarray]:
    generator = np.random.default_rng(11)
    return [(generator.normal(size=x.shape[1]) ** 2 + 0.5).astype(x.dtype) for _ in range(count)]


def test_batch_norm() -> None:
    for x in _inputs():
        weight, bias, mean, var = _vectors(x, 4)
        for training, scale in itertools.product((True, False), (weight, None)):
            _agree(norm.native_batch_norm, x, scale, bias, mean, var, training, 0.1, 1e-5)
        _agree(norm.native_batch_norm, x, None, None, None, None, True, 0.1, 1e-5)
        _agree(norm.native_batch_norm, x, weight, None, mean, var, True, 1, 0)


def test_batch_norm_backward() -> None:
    for x in _inputs():
        weight, mean, var, saved, invstd = _vectors(x, 5)
        grad = np.random.default_rng(4).normal(size=x.shape).astype(x.dtype)
        for train, scale, mask in itertools.product((True, False), (weight, None), _MASKS):
            _agree(norm.native_batch_norm_backward, grad, x, scale, mean, var, saved, invstd, train, 1e-5, mask)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm_and_its_derivative(groups: int) -> None:
    for x in _inputs():
        weight, bias = _vectors(x, 2)
        batch, channels = x.shape[:2]
        sizes = (batch, channels, x.size // (batch * channels), groups)
        if x.size == batch * groups:
            continue  # one element a group: nothing is left but the errors of rounding
        for scale, shift in ((weight, bias), (None, None), (weight, None)):
            _agree(norm.native_group_norm, x, scale, shift, *sizes, 1e-5)
            grad = np.random.default_rng(4).normal(size=x.shape).astype(x.dtype)
            _, mean, rstd = norm.native_group_norm.__wrapped__(np.ascontiguousarray(x), scale, shift, *sizes, 1e-5)
            for mask in _MASKS:
                _agree(norm.native_group_norm_backward, grad, x, mean, rstd, scale, *sizes, mask)
