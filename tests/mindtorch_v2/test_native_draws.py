"""Distributions drawn in C are those that Python draws, number by number, and leave the stream at the same place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import random as kernels
from mindtorch_v2._dispatch import native

pytestmark = pytest.mark.skipif(native.extension is None, reason="compares the extension with Python")

WEIGHTS = [[0.1, 0.2, 0.0, 0.7], [1.0, 3.0, 0.5, 0.25], [0.0, 0.0, 2.0, 0.0]]
SHAPES = [[0.3, 1.0, 2.5, 40.0], [1e-3, 0.0, 7.0, float("nan")]]
CALLS: list[tuple[str, Callable[[Any, Any], tuple], tuple[str, ...]]] = [
    ("exponential_", lambda d, g: (torch.empty(3, 5, dtype=d).numpy(), 1.5, g), ("float32", "float64", "float16")),
    ("geometric_", lambda d, g: (torch.empty(40, dtype=d).numpy(), 0.3, g), ("float32", "float64", "float16")),
    ("cauchy_", lambda d, g: (torch.empty(9, dtype=d).numpy(), 1.0, 2.0, g), ("float32", "float64")),
    ("log_normal_", lambda d, g: (torch.empty(9, dtype=d).numpy(), 1.0, 2.0, g), ("float32", "float64")),
    ("random_", lambda d, g: (torch.empty(9, dtype=d).numpy(), g), ("float32", "float64", "int64", "int32", "uint8")),
    ("normal_size", lambda d, g: (2.0, 3.0, (4, 5), g, d), ("float32", "float64", "float16")),
    ("standard_gamma", lambda d, g: (torch.tensor(SHAPES, dtype=d).numpy(), g), ("float32", "float64")),
    ("sample_dirichlet", lambda d, g: (torch.tensor(SHAPES, dtype=d).numpy()[:1], g), ("float32", "float64")),
    ("multinomial", lambda d, g: (torch.tensor(WEIGHTS, dtype=d).numpy(), 1, False, g), ("float32", "float64")),
    ("multinomial", lambda d, g: (torch.tensor(WEIGHTS[:2], dtype=d).numpy(), 3, False, g), ("float32", "float64")),
    ("multinomial", lambda d, g: (torch.tensor(WEIGHTS, dtype=d).numpy(), 30, True, g), ("float32", "float64")),
    ("multinomial", lambda d, g: (torch.tensor(WEIGHTS[1], dtype=d).numpy(), 4, True, g), ("float32", "float64")),
    ("bernoulli", lambda d, g: (torch.tensor(WEIGHTS[0], dtype=d).expand(5, 4).numpy(), g), ("float32", "float64")),
]


@pytest.mark.parametrize(("name", "arguments", "kind"), [(n, a, k) for n, a, kinds in CALLS for k in kinds])
def test_draws_of_the_extension(name: str, arguments: Callable[[Any, Any], tuple], kind: str) -> None:
    ours, theirs = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    in_c = getattr(kernels, name)
    for _ in range(20):
        made = in_c(*arguments(getattr(torch, kind), ours))
        wanted = in_c.__wrapped__(*arguments(getattr(torch, kind), theirs))
        assert made.dtype == wanted.dtype and made.shape == wanted.shape
        assert made.tobytes() == wanted.tobytes()
        assert torch.equal(ours.get_state(), theirs.get_state())


def test_integers_like() -> None:
    x = torch.empty(3, 4, dtype=torch.int64)
    torch.manual_seed(2)
    drawn = [
        torch.randint_like(x, 9),
        torch.randint_like(x, 3, 9),
        torch.randint_like(x.float(), 9),
        torch.randint_like(x, 9, dtype=torch.int32),
    ]
    torch.manual_seed(2)
    wanted = [
        torch.randint(9, (3, 4)),
        torch.randint(3, 9, (3, 4)),
        torch.randint(9, (3, 4), dtype=torch.float32),
        torch.randint(9, (3, 4), dtype=torch.int32),
    ]
    assert all(torch.equal(a, b) and a.dtype is b.dtype for a, b in zip(drawn, wanted))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.empty(3).exponential_(0.0), "lambda > 0"),
        (lambda: torch.empty(3).geometric_(1.0), "p to be in"),
        (lambda: torch.empty(3).cauchy_(0.0, -1.0), "sigma > 0"),
        (lambda: torch.tensor([-1.0, 2.0]).multinomial(1), "element < 0"),
        (lambda: torch.tensor([0.0, 0.0]).multinomial(1), "sum of probabilities <= 0"),
        (lambda: torch.tensor([1.0, 2.0]).multinomial(3), "cannot sample n_sample > prob_dist.size"),
        (lambda: torch.tensor([0.5, 2.0]).bernoulli(), "p_in >= 0 && p_in <= 1"),
    ],
)
def test_refused_parameters(call: Callable[[], Any], message: str) -> None:
    for _ in range(3):
        state = torch.get_rng_state()
        with pytest.raises(RuntimeError, match=message):
            call().tolist()
        assert torch.equal(torch.get_rng_state(), state)
