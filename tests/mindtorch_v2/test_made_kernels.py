"""Kernels in numpy that are made of `block` expressions: in blocks and whole, into given memory and into that of an operand, beside the loops in C, and
where signs of zeros and choices of NaN tell expressions apart."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import blocked
from mindtorch_v2._dispatch import native
from mindtorch_v2._dispatch.operator import Operator
from mindtorch_v2._generated.tables import operators

kernels = importlib.import_module("mindtorch_v2._generated.kernels")
MADE = [op for op in operators() if getattr(op.kernels.get("cpu"), "__module__", "") == kernels.__name__]
NUMBERS = (0.75, 1.5, 0.25, 2.0)
SPECIAL = (0.0, -0.0, 0.5, -1.0, 1.0, 3.0, -3.0, 6.0, 20.5, 1e30, -1e30, 1e-30, np.inf, -np.inf, np.nan)
ROUGH = {"gelu": 8, "gelu_backward": 8, "logit": 8, "logit_backward": 8}  # by other formulas than in C


def arguments(op: Operator, dtype: Any, count: int, block: Any) -> list:
    """Arrays of special and other values, numbers for the block's other operands, and what its conditions say."""
    rng = np.random.default_rng(0)
    numbers = itertools.cycle(NUMBERS)
    given: list[Any] = [None if p.required else p.default for p in op.params]
    for at in block.operands:
        if op.params[at].type == "Tensor":
            values = rng.normal(size=count) * np.exp(rng.uniform(-3, 3, count))
            values[: count // 2] = rng.choice(SPECIAL, count // 2)
            given[at] = values.astype(dtype)
        else:
            given[at] = np.array(next(numbers), dtype)
    for at, value in block.conditions:
        given[at] = value
    return given


def alternatives(exact: bool = True) -> Any:
    """Each operator with each of its blocks; those that numpy computes the very same have no loop for eager calls."""
    for op in MADE:
        for k, block in enumerate(op.block):
            if block.exact and not exact:
                continue
            yield pytest.param(op, block, id=f"{op.full_name}-{k}")


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def quiet(function: Callable, *args: Any, **kwargs: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)


def test_most_blocks_have_a_made_kernel() -> None:
    made = {op.full_name for op in MADE}
    assert {"add.Tensor", "gelu", "elu_backward", "clamp.Tensor", "xlogy.Tensor"} <= made
    assert len(made) >= 45


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("op", "block"), list(alternatives()))
def test_a_kernel_gives_the_same_wherever_it_writes(op: Operator, block: Any, dtype: Any) -> None:
    kernel: Any = op.kernels["cpu"]
    given = arguments(op, dtype, 200_001, block)
    arrays = [i for i in block.operands if is_array(given[i])]
    first = given[arrays[0]]
    whole = quiet(kernel, *given)
    assert whole.shape == first.shape and whole.dtype in (dtype, bool)
    few = [a[:300] if is_array(a) else a for a in given]
    assert np.array_equal(quiet(kernel, *few), whole[:300], equal_nan=True)
    strided = [np.repeat(a, 2)[::2] if is_array(a) else a for a in given]
    assert np.array_equal(quiet(kernel, *strided), whole, equal_nan=True)
    one = [np.array(a[7]) if is_array(a) else a for a in given]
    assert np.array_equal(np.asarray(quiet(kernel, *one)), whole[7], equal_nan=True)
    if not op.takes_out["cpu"]:
        return
    buffer = np.empty_like(first)
    assert quiet(kernel, *given, out=buffer) is buffer
    assert np.array_equal(buffer, whole, equal_nan=True)
    for at in arrays:
        own = list(given)
        own[at] = given[at].copy()
        quiet(kernel, *own, out=own[at])
        assert np.array_equal(own[at], whole, equal_nan=True), f"into operand {at}"


@pytest.mark.skipif(native.extension is None, reason="compares with the loops in C")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("op", "block"), list(alternatives(exact=False)))
def test_a_kernel_gives_what_the_loop_gives(op: Operator, block: Any, dtype: Any) -> None:
    given = arguments(op, dtype, 20_000, block)
    found, wanted = quiet(op.kernels["cpu"], *given), native.blocked(op)(given, None)
    assert found.dtype == wanted.dtype
    if found.dtype == bool:
        assert np.array_equal(found, wanted)
        return
    allowed = 64 * np.finfo(dtype).eps * (1 << ROUGH.get(op.name, 0))
    with np.errstate(all="ignore"):
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        near = np.abs(found - wanted) <= allowed * np.maximum(np.maximum(np.abs(wanted), np.abs(given[0])), 1e-3)
    assert (same | near).all(), (given, found[~(same | near)][:5], wanted[~(same | near)][:5])


F = torch.nn.functional
NAN, INF = float("nan"), float("inf")
# Recorded from PyTorch 2.13, of the tensor [-0.0, 0.0, -1.0, 2.0, nan, inf, -inf].
RECORDED: dict[str, tuple[Callable, list[float]]] = {
    "relu": (torch.relu, [-0.0, 0.0, 0.0, 2.0, NAN, INF, 0.0]),
    "relu6": (F.relu6, [-0.0, 0.0, 0.0, 2.0, NAN, 6.0, 0.0]),
    "hardtanh to -0": (lambda x: F.hardtanh(x, -1.0, -0.0), [-0.0, 0.0, -1.0, -0.0, NAN, -0.0, -1.0]),
    "clamp 0 1": (lambda x: torch.clamp(x, 0, 1), [-0.0, 0.0, 0.0, 1.0, NAN, 1.0, 0.0]),
    "clamp to -0": (lambda x: torch.clamp(x, -1, -0.0), [-0.0, 0.0, -1.0, -0.0, NAN, -0.0, -1.0]),
    "clamp from 0": (lambda x: torch.clamp(x, min=0.0), [-0.0, 0.0, 0.0, 2.0, NAN, INF, 0.0]),
    "elu": (F.elu, [-0.0, 0.0, -0.6321205496788025, 2.0, NAN, INF, -1.0]),
    "selu": (torch.selu, [-0.0, 0.0, -1.1113307476043701, 2.1014020442962646, NAN, INF, -1.7580993175506592]),
    "celu": (torch.celu, [-0.0, 0.0, -0.6321205496788025, 2.0, NAN, INF, -1.0]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.5), [-0.0, 0.0, -0.5, 2.0, NAN, INF, -INF]),
    "prelu": (lambda x: F.prelu(x, torch.tensor([0.5])), [-0.0, 0.0, -0.5, 2.0, NAN, INF, -INF]),
    "hardswish": (F.hardswish, [-0.0, 0.0, -0.3333333432674408, 1.6666666269302368, NAN, INF, NAN]),
    "hardsigmoid": (F.hardsigmoid, [0.5, 0.5, 0.3333333432674408, 0.8333333134651184, NAN, 1.0, 0.0]),
    "softshrink": (lambda x: F.softshrink(x, 0.5), [-0.0, 0.0, -0.5, 1.5, NAN, INF, -INF]),
    "hardshrink": (lambda x: F.hardshrink(x, 0.5), [0.0, 0.0, -1.0, 2.0, NAN, INF, -INF]),
    "threshold": (lambda x: F.threshold(x, 0.0, 0.0), [0.0, 0.0, 0.0, 2.0, NAN, INF, 0.0]),
    "frac": (torch.frac, [0.0, 0.0, 0.0, 0.0, NAN, NAN, NAN]),
    "xlogy": (lambda x: torch.xlogy(x, x), [0.0, 0.0, NAN, 1.3862943649291992, NAN, INF, NAN]),
    "entr": (torch.special.entr, [0.0, 0.0, -INF, -1.3862943649291992, NAN, -INF, -INF]),
    "logit": (lambda x: torch.logit(x, 0.25), [-1.0986123] * 3 + [1.0986123, NAN, 1.0986123, -1.0986123]),
    "heaviside": (lambda x: torch.heaviside(x, torch.tensor(-2.0)), [-2.0, -2.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
    "rsqrt": (torch.rsqrt, [-INF, INF, NAN, 0.7071067690849304, NAN, 0.0, NAN]),
    "softplus": (F.softplus, [0.6931472, 0.6931472, 0.31326169, 2.1269281, NAN, INF, 0.0]),
    "mish": (F.mish, [-0.0, 0.0, -0.3034014403820038, 1.9439589977264404, NAN, INF, NAN]),
}


@pytest.mark.parametrize("copies", [1, 100, 10_000], ids=["few", "in vectors", "in blocks"])
@pytest.mark.parametrize("name", list(RECORDED))
def test_values_at_edges(name: str, copies: int) -> None:
    function, wanted = RECORDED[name]
    found = function(torch.tensor([-0.0, 0.0, -1.0, 2.0, NAN, INF, -INF] * copies)).numpy()
    expected = np.array(wanted * copies, np.float32)
    assert np.allclose(found, expected, rtol=1e-6, atol=0, equal_nan=True)
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def test_numbers_of_integers_wrap_around() -> None:
    assert torch.add(
        torch.tensor([5], dtype=torch.uint8), torch.tensor([2], dtype=torch.uint8), alpha=255
    ).tolist() == [3]
    assert torch.rsub(
        torch.tensor([5], dtype=torch.int8), torch.tensor([100], dtype=torch.int8), alpha=-9
    ).tolist() == [-111]


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64, np.complex64, np.complex128])
@pytest.mark.parametrize("count", [5, 5_000])
def test_choices_by_bits(dtype: Any, count: int) -> None:
    rng = np.random.default_rng(1)
    test = rng.random(count) < 0.5
    a, b = (rng.integers(0, 100, count).astype(dtype) for _ in range(2))
    number = np.dtype(dtype).type(1)
    for one, other in ((a, b), (a, 0), (0, b), (a, number), (number, b), (a, np.array(number))):
        wanted = np.where(test, np.asarray(one, dtype), np.asarray(other, dtype))
        found = blocked.chosen(test, one, other)
        assert found.dtype == dtype and np.array_equal(found, wanted)
        for out in (np.empty(count, dtype), np.empty(2 * count, dtype)[::2], a.copy(), b.copy()):
            sides = [out if np.array_equal(out, side) else side for side in (one, other)]
            assert blocked.chosen(test, *sides, out=out) is out
            assert np.array_equal(out, wanted)
    stretched = blocked.chosen(test[:, None], a[:3], b[:, None])
    assert np.array_equal(stretched, np.where(test[:, None], a[:3], b[:, None]))


def _rounded_once(number: float, x: torch.Tensor, y: torch.Tensor) -> list[float]:
    """y + number x of exact numbers, rounded to float32 at the end."""
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return [float(np.float32(float(Fraction(number) * Fraction(a) + Fraction(b)))) for a, b in pairs]


_FEATURES = np._core._multiarray_umath.__cpu_features__


@pytest.mark.skipif(not (_FEATURES.get("FMA3") or _FEATURES.get("ASIMD")), reason="the processor rounds products")
def test_sums_with_a_factor_are_rounded_once() -> None:
    """As in PyTorch, so that bytes of images that are mixed as floats are PyTorch's."""
    torch.manual_seed(0)
    x, y = torch.rand(301) * 255, torch.rand(301) * 255
    factor, other = float(np.float32(-0.7)), y + x.round()
    for found, expected in (
        (y.add(x, alpha=-0.7), _rounded_once(factor, x, y)),
        (y.clone().add_(x, alpha=-0.7), _rounded_once(factor, x, y)),
        (y.sub(x, alpha=0.7), _rounded_once(factor, x, y)),
        (torch.rsub(x, y, alpha=0.7), _rounded_once(factor, x, y)),
        (torch.addcmul(y, x, torch.full_like(x, -0.7)), _rounded_once(factor, x, y)),
        (torch.addcmul(y, x, torch.ones_like(x), value=-0.7), _rounded_once(1.0, x * factor, y)),
        (torch.lerp(y, other, 0.3), _rounded_once(float(np.float32(0.3)), other - y, y)),
        (torch.lerp(y, other, 0.75), _rounded_once(-0.25, other - y, other)),
    ):
        assert found.tolist() == expected
