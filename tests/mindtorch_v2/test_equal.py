"""`equal` of tensors: shapes, dtypes, layouts, NaN and signed zeros, and differences wherever they are."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch

_KINDS = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"]


@pytest.mark.parametrize("kind", _KINDS)
def test_one_difference_anywhere(kind: str) -> None:
    dtype = getattr(torch, kind)
    for shape in ((), (1,), (7,), (4, 5), (3, 700), (2, 3, 400)):
        x = torch.ones(shape).to(dtype)
        assert torch.equal(x, x.clone()) and torch.equal(x, x)
        for place in {0, x.numel() // 2, x.numel() - 1}:
            y = x.clone()
            y.view(-1)[place] = 0
            assert not torch.equal(x, y) and not y.equal(x)


def test_layouts_and_shapes() -> None:
    x = torch.arange(12.0).view(3, 4)
    assert torch.equal(x.t(), x.t().contiguous()) and torch.equal(x[:, ::2], torch.tensor([[0.0, 2], [4, 6], [8, 10]]))
    assert not torch.equal(x, x.t()) and not torch.equal(x, x.view(4, 3)) and not torch.equal(x[0], x)
    assert torch.equal(torch.ones(1, 3).expand(2, 3), torch.ones(2, 3)) and torch.equal(
        torch.ones(0, 2), torch.ones(0, 2)
    )
    assert not torch.equal(torch.ones(0, 2), torch.ones(0, 3))


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16"])
def test_nan_and_zeros(kind: str) -> None:
    x = torch.tensor([0.0, 1.0, math.inf]).to(getattr(torch, kind))
    y = torch.tensor([-0.0, 1.0, math.inf]).to(getattr(torch, kind))
    assert torch.equal(x, y)
    x[1] = math.nan
    assert not torch.equal(x, x.clone())
    assert not torch.equal(torch.tensor([math.inf]).to(x.dtype), torch.tensor([-math.inf]).to(x.dtype))


def test_other_dtypes_histories_and_keywords() -> None:
    assert torch.equal(torch.ones(2, requires_grad=True), torch.ones(2))
    assert torch.equal(input=torch.ones(2), other=torch.ones(2))
    with pytest.raises(NotImplementedError):
        torch.equal(torch.ones(2, device="meta"), torch.ones(2, device="meta"))
