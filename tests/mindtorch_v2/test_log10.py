"""Logarithms to base 10 of float32 are rounded correctly: decibels of powers of ten are whole numbers, as PyTorch's."""

from __future__ import annotations

import mindtorch_v2 as torch


def test_powers_of_ten():
    powers = torch.tensor([1e-6, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e5])
    expected = [-6, -3, -2, -1, 0, 1, 2, 3, 5]
    assert torch.log10(powers).tolist() == expected and [torch.log10(x).item() for x in powers] == expected
    assert powers.clone().log10_().tolist() == expected
    assert torch.log10(powers, out=torch.empty(9)).tolist() == expected
    assert str(torch.log10(torch.tensor([0.0, 1e-3, 0.1]))) == "tensor([-inf, -3., -1.])"


def test_nearly_as_rounded_from_doubles():
    torch.manual_seed(0)
    x = torch.rand(10_000) * 10
    got, wanted = torch.log10(x), torch.log10(x.double()).float()
    assert (got != wanted).sum() <= len(x) // 50 and ((got - wanted).abs() <= wanted.abs() * 2**-22).all()
    assert torch.log10(torch.tensor([-1.0])).isnan().all() and torch.log10(torch.tensor([0.0])).item() == -torch.inf
