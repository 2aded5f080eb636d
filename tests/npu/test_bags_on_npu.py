"""Bags of embeddings on an NPU: sums, means and maxima with padding, by functions of the device."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch

F = torch.nn.functional


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_those_of_the_cpu(mode: str, padding: int | None, scale: bool) -> None:
    torch.npu.reset_fallbacks()
    weight = torch.tensor([[1.0, -2.0], [9.0, 9.0], [math.nan, 1.0], [-math.inf, 3.0], [0.5, 3.0]])
    if mode != "max":
        weight = torch.nan_to_num(weight, 2.0, 0.0, -3.0)
    indices, offsets = torch.tensor([0, 1, 4, 2, 2, 0, 3, 1, 1, 3, 4]), torch.tensor([0, 3, 3, 6, 7, 9])
    sides = []
    for device in ("cpu", "npu"):
        leaf = weight.to(device).detach().requires_grad_()
        options = {"mode": mode, "padding_idx": padding, "scale_grad_by_freq": scale and mode != "max"}
        made = F.embedding_bag(indices.to(device), leaf, offsets.to(device), **options)
        made.backward(torch.arange(12.0, device=device).reshape(6, 2))
        sides.append((made.detach().cpu(), leaf.grad.cpu()))
    for a, b in zip(*sides, strict=True):
        torch.testing.assert_close(b, a, equal_nan=True)
    assert not torch.npu.fallbacks()


def test_factors_go_with_padding() -> None:
    torch.npu.reset_fallbacks()
    weight, factors = torch.randn(4, 3), torch.randn(2, 3)
    indices = torch.tensor([[0, 1, 2], [3, 1, 1]])
    sides = []
    for device in ("cpu", "npu"):
        leaf, own = weight.to(device).detach().requires_grad_(), factors.to(device).detach().requires_grad_()
        made = F.embedding_bag(indices.to(device), leaf, mode="sum", per_sample_weights=own, padding_idx=1)
        made.sum().backward()
        sides.append((made.detach().cpu(), leaf.grad.cpu(), own.grad.cpu()))
    for a, b in zip(*sides, strict=True):
        torch.testing.assert_close(b, a)
    assert not torch.npu.fallbacks()
