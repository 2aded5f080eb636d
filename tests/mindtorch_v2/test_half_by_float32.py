"""Half types that operators compute in float32: what they save and update takes part, and the result is that of float32, rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F

HALVES = (torch.bfloat16, torch.float16)


def drawn(*shape: int, dtype: Any = torch.float32, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32)).to(dtype)


def gradients(module: Any, x: Any, dtype: Any) -> list:
    """The output and all gradients of a module of `dtype`, in float32; where dtype is float32, of the numbers that the half type holds."""
    module, x = module.to(dtype), x.to(dtype).requires_grad_()
    y = module(x)
    upper = drawn(*y.shape, seed=1).to(torch.bfloat16).to(torch.float16).to(dtype)
    made = torch.autograd.grad(y, [x, *module.parameters()], upper)
    return [t.detach().to(torch.float32) for t in (y, *made)]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "module",
    [
        lambda: nn.BatchNorm2d(4),
        lambda: nn.BatchNorm2d(4).eval(),
        lambda: nn.GroupNorm(2, 4),
        lambda: nn.InstanceNorm2d(4, affine=True),
        lambda: nn.LayerNorm([6, 6]),
        lambda: nn.Upsample(scale_factor=2, mode="bilinear"),
        lambda: nn.Upsample(scale_factor=2, mode="nearest"),
        lambda: nn.Upsample(scale_factor=2, mode="bicubic"),
        lambda: nn.ReflectionPad2d(2),
        lambda: nn.ReplicationPad2d(2),
        lambda: nn.AdaptiveAvgPool2d(3),
        lambda: nn.AdaptiveMaxPool2d(3),
        lambda: nn.AvgPool2d(3, 2, 1),
        lambda: nn.MaxPool2d(3, 1, 1),
        lambda: nn.GLU(1),
    ],
)
def test_gradients_are_those_of_float32(module: Any, dtype: Any) -> None:
    x = drawn(3, 4, 6, 6).to(torch.bfloat16).to(torch.float16).to(torch.float32)
    half, single = gradients(module(), x, dtype), gradients(module(), x, torch.float32)
    bound = 2.0**-7 if dtype is torch.bfloat16 else 2.0**-10
    for found, wanted in zip(half, single, strict=True):
        # The statistics that are saved in the half type bring another rounding.
        torch.testing.assert_close(found, wanted, rtol=2 * bound, atol=2 * bound * wanted.abs().max().item())


@pytest.mark.parametrize("dtype", HALVES)
def test_running_statistics_of_a_half_type_are_updated(dtype: Any) -> None:
    x = drawn(8, 3, 5).to(dtype)
    half, single = nn.BatchNorm1d(3).to(dtype), nn.BatchNorm1d(3)
    half(x), single(x.to(torch.float32))
    assert half.running_mean.dtype is half.running_var.dtype is dtype
    assert half.num_batches_tracked.item() == 1
    for found, wanted in ((half.running_mean, single.running_mean), (half.running_var, single.running_var)):
        assert not torch.equal(wanted, torch.zeros(3)) and not torch.equal(wanted, torch.ones(3))
        assert torch.equal(found, wanted.to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (2, 5, 3, 4)])
def test_likelihoods_are_those_of_float32(dtype: Any, reduction: str, weighted: bool, shape: tuple) -> None:
    scores = drawn(*shape).to(dtype)
    target = torch.from_numpy(np.random.default_rng(1).integers(0, 5, shape[:1] + shape[2:]))
    weight = drawn(5).abs().to(dtype) if weighted else None
    found, wanted = [], []
    for kept, made in ((dtype, found), (torch.float32, wanted)):
        x = scores.detach().to(kept, copy=True).requires_grad_()
        loss = F.nll_loss(x, target, None if weight is None else weight.to(kept), reduction=reduction, ignore_index=2)
        loss.sum().backward()
        assert loss.dtype is x.grad.dtype is kept
        made += [loss.detach().to(torch.float32), x.grad.to(torch.float32)]
    bound = 2.0**-7 if dtype is torch.bfloat16 else 2.0**-10
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=2 * bound, atol=2 * bound * b.abs().max().item())


@pytest.mark.parametrize("dtype", HALVES)
def test_what_shrinks_and_replaces_by_bits_keeps_the_numbers(dtype: Any) -> None:
    values = [0.0, -0.0, 0.5, -0.5, 0.498, 0.503, 2.0, -2.0, float("nan"), float("inf"), float("-inf"), 1e-7, -3e4]
    x = torch.tensor(values, dtype=dtype)
    for bound in (0.5, 0.3, 0.0, -1.0):
        rounded = torch.tensor(bound, dtype=dtype).item()
        wanted = [0.0 if -rounded <= v <= rounded else v for v in x.tolist()]
        assert torch.equal(F.hardshrink(x, bound).nan_to_num(7.0), torch.tensor(wanted, dtype=dtype).nan_to_num(7.0))
    limits = torch.finfo(dtype)
    plain = x.nan_to_num().tolist()
    assert (
        plain[8:11] == [0.0, limits.max, limits.min] and plain[:8] == x.tolist()[:8] and plain[11:] == x.tolist()[11:]
    )
    assert x.nan_to_num(1.0, 2.0, 3.0).tolist()[8:11] == [1.0, 2.0, 3.0]
    assert x.nan_to_num_(1.0, 2.0, 3.0) is x and x.tolist()[8:11] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("dtype", HALVES)
def test_a_trace_is_rounded_once(dtype: Any) -> None:
    x = torch.full((300, 300), 0.1).to(dtype)
    assert torch.equal(x.trace(), x.to(torch.float32).trace().to(dtype))


COMPARED = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
TOLD = {
    "logical_not": np.logical_not,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isposinf": np.isposinf,
    "isneginf": np.isneginf,
    "signbit": np.signbit,
}


def halves(dtype: Any, count: int) -> Any:
    values = np.random.default_rng(count).integers(-3, 4, count) / 10
    values[:8] = 0.0, -0.0, np.nan, np.inf, -np.inf, 1e-7, -1e-7, 0.1
    return torch.from_numpy(values).to(dtype)


def exact(x: Any) -> np.ndarray:
    return x.to(torch.float64).numpy()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("count", [9, 300, 5000])
@pytest.mark.parametrize("name", COMPARED)
def test_comparisons_are_exact(name: str, count: int, dtype: Any) -> None:
    x, y = halves(dtype, count), halves(dtype, count).flip(0)
    call, wanted = getattr(torch, name), COMPARED[name]
    cases = [(x, y), (x[::2], y[::2]), (x[None], y[:3, None]), (x, y[4])]
    for a, b in cases:
        found = call(a, b)
        assert found.dtype is torch.bool
        assert np.array_equal(found.numpy(), wanted(exact(a), exact(b)))
        kept = torch.empty_like(found)
        assert call(a, b, out=kept) is kept and torch.equal(kept, found)
    changed = x.clone()
    getattr(changed, name + "_")(y)
    assert np.array_equal(exact(changed), wanted(exact(x), exact(y)).astype(np.float64))
    if name in ("lt", "le", "gt", "ge", "eq", "ne"):
        for number in (0, 0.1, -0.3, 2, float("nan"), float("inf")):
            rounded = torch.tensor(number, dtype=dtype).item()
            assert np.array_equal(call(x, number).numpy(), wanted(exact(x), rounded)), number


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("count", [9, 300, 5000])
@pytest.mark.parametrize("name", TOLD)
def test_what_is_told_of_elements_is_exact(name: str, count: int, dtype: Any) -> None:
    x = halves(dtype, count)
    for given in (x, x[::3], x[None].expand(2, count)):
        found = getattr(torch, name)(given)
        assert found.dtype is torch.bool
        assert np.array_equal(found.numpy(), TOLD[name](exact(given)))


@pytest.mark.parametrize("dtype", HALVES)
def test_an_lstm_layer_is_that_of_float32(dtype: Any) -> None:
    half, single = nn.LSTM(6, 5, 2).to(dtype), nn.LSTM(6, 5, 2)
    single.load_state_dict({name: value.to(torch.float32) for name, value in half.state_dict().items()})
    x, made = drawn(7, 3, 6).to(dtype), []
    for module in (half, single):
        given = x.to(next(module.parameters()).dtype, copy=True).requires_grad_()
        output, (h, c) = module(given)
        (output.sum() + h.sum() * 2 - c.sum()).backward()
        made.append([t.to(torch.float32) for t in (output, h, c, given.grad, *(p.grad for p in module.parameters()))])
    bound = 2.0**-6 if dtype is torch.bfloat16 else 2.0**-9
    for found, wanted in zip(*made, strict=True):
        torch.testing.assert_close(found, wanted, rtol=2 * bound, atol=2 * bound * wanted.abs().max().item())
