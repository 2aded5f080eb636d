"""Subscripts of tensors, lists, numbers of numpy and 0-dim tensors among slices, with and without a history: values, gradients, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

K, MASK = torch.tensor([0, 2, 1]), torch.tensor([True, False, True, True])
KEYS: list[Any] = [
    (K, slice(1, 3)),
    (slice(None), K),
    (slice(None, None, 2), K),
    (K, 1),
    (1, K),
    (Ellipsis, K),
    (None, K),
    (slice(1, 4), None, K, 0),
    (K, slice(0, 0)),
    (MASK, slice(1, 3)),
    (slice(None), MASK),
    [0, 2],
    [True, False, True, True],
    (slice(None), [0, 2]),
    ([0, 2], [1, 3]),
    ([0, 2], slice(1, 3)),
    np.int64(1),
    (np.int64(-1), slice(None, 2)),
    (slice(None), np.int32(2)),
    torch.tensor(1),
    (torch.tensor(-1), slice(1, None)),
    (K, torch.tensor(1)),
    (slice(None), torch.tensor(2, dtype=torch.int32)),
    (K[:, None], K, [0]),
]


def plain(key: Any) -> Any:
    """The key as numpy has it."""
    if isinstance(key, tuple):
        return tuple(map(plain, key))
    return (key.numpy() if key.dim() else key.item()) if isinstance(key, torch.Tensor) else key


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("key", KEYS)
def test_reading(key: Any, history: bool) -> None:
    array = np.arange(64.0).reshape(4, 4, 4)
    wanted = array[plain(key)]
    weights = np.arange(wanted.size, dtype=float).reshape(wanted.shape) + 1
    slope = np.zeros_like(array)
    np.add.at(slope, plain(key), weights)
    for _ in range(3):
        x = torch.tensor(array, requires_grad=history)
        made = x[key]
        assert made.detach().numpy().tolist() == wanted.tolist() and made.requires_grad is history
        if history:
            (made * torch.tensor(weights)).sum().backward()
            assert x.grad is not None and x.grad.numpy().tolist() == slope.tolist()


@pytest.mark.parametrize("key", KEYS)
def test_writing(key: Any) -> None:
    array = np.arange(64.0).reshape(4, 4, 4)
    wanted = array.copy()
    wanted[plain(key)] = -1.0
    for _ in range(3):
        x = torch.tensor(array)
        x[key] = -1.0
        assert x.numpy().tolist() == wanted.tolist()
        x = torch.tensor(array, requires_grad=True)
        y = x * 1
        y[key] = torch.tensor(-1.0, dtype=torch.float64)
        y.sum().backward()
        assert y.detach().numpy().tolist() == wanted.tolist()
        assert x.grad is not None and x.grad.numpy().tolist() == (wanted >= 0).astype(float).tolist()


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (torch.tensor(4), IndexError),
        (np.int64(-5), IndexError),
        ([0, 4], IndexError),
        ((slice(None), torch.tensor([5])), IndexError),
        ([True, False], IndexError),
        (np.float64(1), IndexError),
        ((0, 0, 0, [0]), IndexError),
        (torch.tensor(1.0), IndexError),
    ],
)
def test_refused_keys(key: Any, error: type) -> None:
    for _ in range(3):
        with pytest.raises(error):
            torch.zeros(4, 4, 4)[key].tolist()
