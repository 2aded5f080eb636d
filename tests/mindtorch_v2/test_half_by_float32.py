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
