"""Losses of pairs in C give what the numpy kernels behind them give, for every reduction, layout and edge."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from _native_outcomes import assert_close, needs_extension, outcome

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import loss

pytestmark = [needs_extension, pytest.mark.usefixtures("vectors")]


def _draws(draw: Callable) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]:
    """An input, a target, and factors that broadcast to them."""
    for dtype in (np.float32, np.float64):
        for shape in ((), (7,), (4, 4), (3, 5, 33), (300, 130)):
            x, y = (np.asarray(draw(shape)).astype(dtype) for _ in range(2))
            factors = [np.asarray(np.random.default_rng(2).random(s), dtype) for s in {shape, shape[-1:], ()}]
            yield x, y, factors
            if len(shape) > 1:
                yield x.swapaxes(0, 1), y.swapaxes(0, 1), factors[-1:]
                yield x[::2], y[1::2] if len(x) % 2 == 0 else y[:1], [np.asarray(0.3, dtype)]


def _agree(kernel: Any, *args: Any) -> None:
    what = f"{kernel.__name__}({[f'{a.dtype}{a.shape}' if isinstance(a, np.ndarray) else a for a in args]})"
    with np.errstate(all="ignore"):
        found, wanted = outcome(kernel, args, {}), outcome(kernel.__wrapped__, args, {})
    if isinstance(wanted, tuple):
        assert found == wanted, what
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, what
    assert_close(found, wanted, what, 400)


def _normal(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(len(shape)).normal(size=shape) * 3


def _share(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(len(shape)).random(shape)


def test_distances() -> None:
    for (x, y, _), reduction in itertools.product(_draws(_normal), (0, 1, 2)):
        _agree(loss.mse_loss, x, y, reduction)
        _agree(loss.soft_margin_loss, x, y, reduction)
        for p in (1.0, 0.25, 2):
            _agree(loss.smooth_l1_loss, x, y, reduction, p)
            _agree(loss.huber_loss, x, y, reduction, p)
        _agree(loss.smooth_l1_loss, x, y, reduction, 0.0)


def test_binary_cross_entropies() -> None:
    for (x, y, factors), reduction in itertools.product(_draws(_share), (0, 1, 2)):
        for weight in (None, *factors):
            _agree(loss.binary_cross_entropy, x, y, weight, reduction)
            _agree(loss.binary_cross_entropy_with_logits, x * 20 - 10, y, weight, None, reduction)
            _agree(loss.binary_cross_entropy_with_logits, x * 20 - 10, y, None, weight, reduction)
        _agree(loss.binary_cross_entropy, x + 0.5, y, None, reduction)


def test_edges() -> None:
    edges = np.array([0.0, 1.0, -0.0, 1e-30, 1.0, 0.0, np.inf, -np.inf, np.nan, 88.0, -104.0, 3e38], np.float32)
    other = np.array([1.0, 1.0, 0.0, 0.5, 0.0, 0.0, 1.0, -1.0, 0.5, -1.0, 1.0, -1.0], np.float32)
    for kernel in (loss.mse_loss, loss.soft_margin_loss, loss.smooth_l1_loss, loss.huber_loss):
        _agree(kernel, edges, other, 0)
    _agree(loss.binary_cross_entropy_with_logits, edges, other, None, None, 0)
    _agree(loss.binary_cross_entropy, edges[:6], other[:6], None, 0)
    _agree(loss.binary_cross_entropy, edges, other, None, 0)
    for reduction in (0, 1, 2):
        _agree(loss.mse_loss, edges[:0], other[:0], reduction)


def test_tensors_of_one_shape_are_not_expanded() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.zeros(2, 3)
    first, second = torch.broadcast_tensors(x, y)
    assert second is y and first.shape == (2, 3) and first.grad_fn is not None
    assert torch.broadcast_tensors(x, x)[0] is x
    assert torch.nn.functional.mse_loss(x, y[0]).grad_fn.next_functions[0][0].variable is x
