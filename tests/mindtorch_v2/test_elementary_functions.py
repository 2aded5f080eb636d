"""The functions of one element in the loops of blocks: near exact values everywhere, at the ends of their range and where results are hard to round."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from _blocks import WIDTHS, assert_bits, battery, opcode, run
from _native_outcomes import needs_extension

import mindtorch_v2 as torch

pytestmark = needs_extension

with localcontext() as wide:
    wide.prec = 80
    TWO_BY_ROOT_OF_PI = 2 / Decimal("3.14159265358979323846264338327950288419716939937510582").sqrt()


def series_of_erf(z: Decimal) -> Decimal:
    term = total = z
    for n in range(1, 600):
        term *= -z * z / n
        total += term / (2 * n + 1)
    return total * TWO_BY_ROOT_OF_PI


def in_decimals(function: Callable[[Decimal], Decimal]) -> Callable[[np.ndarray], np.ndarray]:
    def exactly(x: float) -> np.longdouble:
        with localcontext() as context:
            context.prec = 80
            return np.longdouble(str(function(Decimal(float(x)))))

    return np.vectorize(exactly, otypes=[np.longdouble])


def decimal_inverse(x: Decimal) -> Decimal:
    y = Decimal(NormalDist().inv_cdf(float((1 + x) / 2)) / 2**0.5) if abs(x) > 1e-4 else x / TWO_BY_ROOT_OF_PI
    for _ in range(5):
        y -= (series_of_erf(y) - x) * (y * y).exp() / TWO_BY_ROOT_OF_PI
    return y


REFERENCES: dict[str, Any] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "atanh": np.arctanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": in_decimals(series_of_erf),
    "erfc": in_decimals(lambda x: 1 - series_of_erf(x)),
    "erfinv": in_decimals(decimal_inverse),
    "gelu": in_decimals(lambda x: x * (1 + series_of_erf(x / Decimal(2).sqrt())) / 2),
}
SLOW = ("erf", "erfc", "erfinv", "gelu")
ULPS = {"erfc": 5, "erfinv": 6, "gelu": 9}


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no wider than double")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REFERENCES)
def test_elementary_functions_are_accurate(name: str, width: int, vectors: int) -> None:
    rng = np.random.default_rng(5)
    count = 100 if name in SLOW else 100_000
    x = np.concatenate(
        [
            rng.uniform(-3, 3, count),
            rng.uniform(-80, 80, count),
            rng.normal(size=count) * np.exp(rng.uniform(-30, 2, count)),
        ]
    )
    if name in ("log", "log10", "log1p"):
        x = np.abs(x) - (name == "log1p") * (np.abs(x) < 1)
    x = x.astype(WIDTHS[width])
    x = x[np.abs(x) < {"atanh": 1, "erfinv": 1, "gelu": 3}.get(name, 6 if name in SLOW else np.inf)]
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.longdouble))
    x, exact = x[np.isfinite(exact)], exact[np.isfinite(exact)]
    off = np.abs(run(opcode(name), (x,)) - exact) / np.spacing(np.abs(exact.astype(x.dtype)))
    # Without fused products some roundings more.
    if name == "gelu" and width == 8:
        off *= np.minimum(np.abs(exact / x), 0.5) * 2  # below zero 1 + erf loses digits, as PyTorch's does
    assert off.max() <= ULPS.get(name, 2 if vectors else 2.5), f"{x[off.argmax()]!r}: {off.max()} ulp"


def test_exponentials_are_the_nearest_numbers(vectors: int) -> None:
    x = np.random.default_rng(5).uniform(-103, 88, 200_000).astype(np.float32)
    found, nearest = run(opcode("exp"), (x,)), np.exp(x.astype(np.float64)).astype(np.float32)
    off = np.abs(found.view(np.int32) - nearest.view(np.int32))
    # PyTorch's are off in 1.1 of 100, each by the last bit.
    assert off.max() == 1 and np.mean(off != 0) < (0.02 if vectors else 0.1), np.mean(off != 0)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "silu", "gelu", "erfc"])
def test_functions_far_from_zero(name: str, vectors: int) -> None:
    ends = np.array([0.5, 12.5, 13.1, 13.2, 14.5, 30.5, 86.9, 88, 95.5, 103.5, 104.5, 1e4, 3e38])
    x = np.concatenate([ends, -ends, np.linspace(-110, 88, 5000)]).astype(np.float32)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        tail = np.array([math.erfc(value) for value in wide])
        exact = {
            "exp": np.exp(wide),
            "sigmoid": 1 / (1 + np.exp(-wide)),
            "silu": wide / (1 + np.exp(-wide)),
            "gelu": wide * 0.5 * np.array([math.erfc(-value / 2**0.5) for value in wide]),
            "erfc": tail,
        }[name].astype(np.float32)
    # Products that underflow are nothing.
    np.testing.assert_allclose(run(opcode(name), (x,)), exact, rtol=1e-5, atol=3e-37)
    limits = run(opcode(name), (np.array([np.inf, -np.inf, np.nan], np.float32),))
    at_most_infinite = {
        "exp": (np.inf, 0),
        "sigmoid": (1, 0),
        "silu": (np.inf, np.nan),
        "gelu": (np.inf, np.nan),
        "erfc": (0, 2),
    }
    np.testing.assert_array_equal(limits, [*at_most_infinite[name], np.nan])


@pytest.mark.parametrize("width", WIDTHS)
def test_roots_are_the_nearest_numbers(width: int, vectors: int) -> None:
    # Beside what lies everywhere, squares of numbers and of what lies between two numbers, where the nearest root is hard to tell.
    rng, dtype = np.random.default_rng(5), np.dtype(WIDTHS[width])
    root = rng.uniform(1, 2, 100_000).astype(dtype)
    between = root.astype(np.longdouble) + np.spacing(root).astype(np.longdouble) / 2
    hard = np.concatenate([root * root, (between * between).astype(dtype)])
    beside = [hard, np.nextafter(hard, dtype.type(0)), np.nextafter(hard, dtype.type(9))]
    x = np.concatenate([battery(dtype, 20_000), *beside])
    with np.errstate(all="ignore"):
        x = np.concatenate([np.ldexp(x, k) for k in (0, 1, -100, 101)])
        assert_bits(run(opcode("sqrt"), (x,)), np.sqrt(x), "sqrt")


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_waves_of_doubles_are_accurate(name: str, vectors: int) -> None:
    rng = np.random.default_rng(5)
    quarters = np.concatenate([rng.integers(-60_000_000, 60_000_000, 50_000), np.arange(-50, 50)])
    x = np.concatenate([rng.uniform(-4, 4, 50_000), rng.uniform(-3e8, 3e8, 50_000), np.pi / 2 * quarters])
    exact = getattr(np, name)(x.astype(np.longdouble))  # of the C library, which knows pi to all digits that are needed
    found = getattr(torch, name)(torch.from_numpy(x))
    off = np.abs(found.numpy() - exact) / np.spacing(np.abs(exact.astype(x.dtype)))
    assert off.max() < 0.8, f"{x[off.argmax()]!r}: {off.max()} ulp"
    apart = torch.from_numpy(np.stack([x, x], 1))[:, 1]
    assert_bits(getattr(torch, name)(apart).numpy(), found.numpy(), "the same bits where elements lie apart")
    rare = torch.tensor([np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 1e300], dtype=torch.float64)
    with np.errstate(invalid="ignore"):
        assert_bits(getattr(torch, name)(rare).numpy(), getattr(np, name)(rare.numpy()), "rare")


def test_sums_of_powers_of_two() -> None:
    x = np.concatenate([np.random.default_rng(0).normal(size=3000) * scale for scale in (1e-3, 1, 40)])
    for dtype, near in ((np.float32, 4e-6), (np.float64, 1e-14)):
        a, b = x.astype(dtype), x[::-1].astype(dtype)
        found = torch.logaddexp2(torch.from_numpy(a), torch.from_numpy(b)).numpy()
        np.testing.assert_allclose(
            found, np.logaddexp2(a.astype(np.longdouble), b.astype(np.longdouble)), rtol=near, atol=near
        )
    special = torch.tensor([math.inf, -math.inf, math.nan, 0.0, 1e30])
    a, b = special.repeat(5), special.repeat_interleave(5)
    np.testing.assert_array_equal(torch.logaddexp2(a, b).numpy(), np.logaddexp2(a.numpy(), b.numpy()))
