"""Operands that are repeated or cast give the bits of operands that are neither, whatever the lengths of lines are."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch

pytestmark = pytest.mark.usefixtures("vectors")

SHAPES = [
    ((7, 16), (16,)),
    ((5, 100), (5, 1)),
    ((100, 1), (1, 33)),
    ((6, 1, 40), (1, 5, 40)),
    ((3, 4, 17, 19), (4, 1, 1)),
    ((2, 1500), (1500,)),
    ((2, 1500), (2, 1)),
    ((4, 3, 64), (4, 1, 64)),
    ((), (300,)),
    ((300, 3), (3,)),
    ((20, 1, 1), (1, 20, 1)),
    ((5000, 8), (8,)),  # short lines, which are put together
    ((5000, 7), (5000, 1)),
    ((30, 23, 49), (30, 1, 49)),
    ((12, 40, 3, 25), (40, 1, 1)),
    ((5, 700, 2), (5, 1, 2)),
    ((3, 1, 1100, 11), (3, 1, 1, 11)),
]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
FUNCTIONS = {
    "add": torch.add,
    "div": torch.div,
    "less": torch.lt,
    "maximum": torch.maximum,
    "hypot": torch.hypot,
    "atan2": torch.atan2,
    "power": torch.pow,
    "choice": lambda a, b: torch.where(a > b, a, b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.25),
    "scaled": lambda a, b: torch.add(a, b, alpha=3),
}


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> torch.Tensor:
    x = np.random.default_rng(seed).uniform(0.5, 3, shape).astype(np.float32)
    return torch.from_numpy(np.asarray(x)).to(dtype)


def bits(x: torch.Tensor) -> bytes:
    dense = torch.cat([torch.where(x.isnan(), 7, x).reshape(-1)])  # of NaN the payload is open
    return dense.view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_repeated_operands_give_the_bits_of_whole_ones(name: str, dtype: Any) -> None:
    function = FUNCTIONS[name]
    for (first, second), swapped in itertools.product(SHAPES, (False, True)):
        a, b = numbers(first, dtype, 0), numbers(second, dtype, 1)
        if swapped:
            a, b = b, a
        whole = torch.broadcast_tensors(a, b)
        wanted = function(*(t.contiguous() for t in whole))
        got = function(a, b)
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        assert bits(got) == bits(wanted), (first, second, swapped)
        if got.dtype == a.dtype and a.shape == got.shape and name in ("add", "div", "power"):
            assert bits(getattr(a.clone(), {"power": "pow"}.get(name, name) + "_")(b)) == bits(wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("other", [torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool], ids=str)
def test_operands_of_other_dtypes_are_cast_first(dtype: Any, other: Any) -> None:
    wide = torch.promote_types(dtype, other)
    for first, second in SHAPES:
        a, b = numbers(first, dtype, 0), (numbers(second, torch.float32, 1) * 2).to(other)
        wide = torch.result_type(a, b)
        assert bits(a + b) == bits(a.to(wide) + b.to(wide)), (first, second)
        assert bits(b * a) == bits(b.to(wide) * a.to(wide)), (first, second)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_operands_that_lie_in_another_order_keep_it(order: tuple, dtype: Any) -> None:
    a, row, place = numbers((40, 30, 50), dtype, 0), numbers((30, 1), dtype, 1), numbers((40, 30, 50), torch.float64, 2)
    for other in (3, row, a.flip(0), place.to(dtype)):
        b = other if isinstance(other, int) else other.expand(40, 30, 50).permute(order)
        got, wanted = (
            a.permute(order) * b,
            a.permute(order).contiguous() * (b if isinstance(b, int) else b.contiguous()),
        )
        assert got.stride() == a.permute(order).stride() and bits(got) == bits(wanted)
    told = a.permute(order) > 0
    assert told.stride() == a.permute(order).stride() and torch.equal(told, a.permute(order).contiguous() > 0)


def test_float32_is_rounded_to_bfloat16_half_to_even() -> None:
    random = np.random.default_rng(0).integers(0, 1 << 32, 5000, dtype=np.uint64).astype(np.uint32)
    edges = np.array(
        [0x18000, 0x8000, 0x8001, 0x7FFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0x3F808000, 0x3F818000, 0x3F808001],
        np.uint32,
    )
    for n in (5000, 33, 31):
        values = np.concatenate([edges, random[:n]]).view(np.float32)
        numbers_alone = values[~np.isnan(values)]
        for x in (values, numbers_alone, np.ascontiguousarray(numbers_alone[::-1])):
            found, whole = torch.from_numpy(x).bfloat16(), x.view(np.uint32).astype(np.uint64)
            rounded = ((whole + 0x7FFF + (whole >> 16 & 1)) >> 16).astype(np.uint16)
            told = np.isnan(x)
            assert torch.equal(found.isnan(), torch.from_numpy(told))
            np.testing.assert_array_equal(found.view(torch.int16).numpy().view(np.uint16)[~told], rounded[~told])


@pytest.mark.parametrize("n", [1, 15, 16, 17, 255, 256, 257, 1023, 1025, 5000])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_types_of_any_length_are_converted(dtype: Any, n: int) -> None:
    values = np.random.default_rng(n).integers(0, 65536, n).astype(np.uint16).view(np.int16)
    x = torch.from_numpy(values).view(dtype)
    x = torch.where(x.isnan(), torch.ones((), dtype=dtype), x)
    assert bits(x.float().to(dtype)) == bits(x)
    halved = x / 2
    for at in range(0, n, max(1, n // 20)):
        assert bits(halved[at]) == bits((x[at].float() / 2).to(dtype))
    gaps = x[::2].clone()
    assert bits(x[::2].float()) == bits(gaps.float())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_remainders_are_exact(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    n = 4000
    kind = np.float32 if dtype == torch.float32 else np.float64
    b = (rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3, n)).astype(kind)
    a = (b * np.round(rng.standard_normal(n) * 10.0 ** rng.uniform(0, 3, n))).astype(kind)  # close to multiples
    a = np.nextafter(a, a + rng.choice([-1, 0, 1], n).astype(kind))
    a[:8] = [0.0, -0.0, 1e30, -1e30, np.inf, np.nan, 5.0, -5.0]
    b[:8] = [3.0, 3.0, 7.0, 7.0, 2.0, 2.0, np.inf, np.inf]
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    exact = [math.fmod(p, q) if not math.isinf(p) else math.nan for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert bits(torch.fmod(x, y)) == bits(torch.tensor(exact, dtype=dtype))
    turned = [r + q if r and (r < 0) != (q < 0) else r for r, q in zip(exact, b.tolist(), strict=True)]
    assert bits(torch.remainder(x, y)) == bits(torch.tensor(turned, dtype=dtype))
    lower = torch.floor_divide(x, y)[6:].tolist()
    assert lower[:2] == [0.0, -1.0]
    fine = [(i, p, q) for i, (p, q) in enumerate(zip(a.tolist(), b.tolist(), strict=True)) if i >= 8]
    assert all(abs(lower[i - 6] - p / q) <= 1 + 1e-6 * abs(p / q) for i, p, q in fine)


def test_remainders_have_the_zeros_and_limits_of_pytorch() -> None:
    inf = math.inf
    a = torch.tensor([-4.0, 4.0, -0.0, 1.0, -1.0, 5.5, -5.5, inf, 1.0])
    b = torch.tensor([2.0, -2.0, 3.0, inf, inf, -2.0, 2.0, 2.0, 0.0])
    text = [repr(v) for v in torch.remainder(a, b).tolist()]
    assert text == ["-0.0", "0.0", "-0.0", "1.0", "inf", "-0.5", "0.5", "nan", "nan"]
    text = [repr(v) for v in torch.fmod(a, b).tolist()]
    assert text == ["-0.0", "0.0", "-0.0", "1.0", "-1.0", "1.5", "-1.5", "nan", "nan"]
    text = [repr(v) for v in torch.floor_divide(a, b).tolist()]
    assert text == ["-2.0", "-2.0", "-0.0", "0.0", "-1.0", "-3.0", "-3.0", "nan", "inf"]
    assert torch.equal(torch.div(a[:7], b[:7], rounding_mode="floor"), torch.floor_divide(a[:7], b[:7]))
