"""Weights of bytes: the products, turning modules, saving, and how large the error is."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._quantization import Int8Linear


def exact(rows: Any, made: Int8Linear) -> np.ndarray:
    """The product with the weight that the bytes stand for, in float64."""
    weight = made.weight.double().numpy() * made.scale.double().numpy()[:, None]
    result = rows.double().numpy() @ weight.T
    return result if made.bias is None else result + made.bias.detach().double().numpy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33])
@pytest.mark.parametrize("columns", [1, 7, 16, 63, 200])
def test_products(dtype: Any, rows: int, columns: int) -> None:
    torch.manual_seed(rows)
    linear = nn.Linear(columns, 37, dtype=dtype)
    made = torch.quantize_weights(linear)
    x = torch.randn(rows, columns).to(dtype)
    found = made(x)
    assert isinstance(made, Int8Linear) and found.dtype is dtype and found.shape == (rows, 37)
    tolerance = 1e-5 if dtype is torch.float32 else 2e-2
    assert np.allclose(found.detach().double().numpy(), exact(x, made), rtol=tolerance, atol=tolerance)


def test_rows_do_not_depend_on_each_other() -> None:
    """A row's bits are the same alone and among others that the same loop takes."""
    torch.manual_seed(0)
    made = torch.quantize_weights(nn.Linear(131, 50))
    x = torch.randn(8, 131)
    assert torch.equal(made(x), torch.cat([made(x[:4]), made(x[4:])]))
    assert torch.equal(made(x.view(2, 4, 131)), made(x).view(2, 4, 50)) and made(x[0]).shape == (50,)


def test_the_error_is_small() -> None:
    """The weights differ by at most half a step; for normal weights the product by about 0.9 %."""
    torch.manual_seed(0)
    linear = nn.Linear(512, 512, bias=False)
    nn.init.normal_(linear.weight)
    made = torch.quantize_weights(linear)
    away = (made.dequantized() - linear.weight).abs()
    assert bool((away <= made.scale[:, None] * 0.5001).all())
    x = torch.randn(64, 512)
    want = linear(x)
    error = ((made(x) - want).square().mean() / want.square().mean()).sqrt().item()
    assert 0.004 < error < 0.012


def test_zeros_and_extremes() -> None:
    linear = nn.Linear(3, 4, bias=False)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[0.0, 0, 0], [127, -127, 1], [1e-30, 0, -1e-30], [3e38, -3e38, 0]]))
    made = torch.quantize_weights(linear)
    assert made.weight.tolist() == [[0, 0, 0], [127, -127, 1], [127, 0, -127], [127, -127, 0]]
    assert torch.isfinite(made(torch.tensor([[0.5, 0.25, 1.0]]))).all()
    assert torch.quantize_weights(nn.Linear(0, 2, bias=False))(torch.zeros(3, 0)).tolist() == [[0.0, 0.0]] * 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.body = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8, bias=False))
        self.again = self.body[0]
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids: Any) -> Any:
        h = self.tokens(ids)
        h = h + self.attention(h, h, h)[0]
        return self.head(h + self.body(h))


def test_modules_are_turned_in_place_and_saved() -> None:
    torch.manual_seed(0)
    net, other = Net().eval(), Net().eval()
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    want = net(ids)
    assert torch.quantize_weights(net, skip=("body.2",)) is net
    assert isinstance(net.body[0], Int8Linear) and net.again is net.body[0]
    assert type(net.body[2]) is nn.Linear and type(net.tokens) is nn.Embedding
    # Attention reads the weight of its projection, of a class of its own, itself.
    assert not isinstance(net.attention.out_proj, Int8Linear)
    found = net(ids)
    assert ((found - want).square().mean() / want.square().mean()).sqrt() < 0.03
    assert "Int8Linear(in_features=8, out_features=16, bias=True)" in repr(net)
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    torch.quantize_weights(other, skip=lambda name, module: name == "body.2")
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(ids), found) and other.body[0].weight.dtype is torch.int8
    other.bfloat16()
    assert other.body[0].scale.dtype is torch.bfloat16 and other.body[0].weight.dtype is torch.int8
    assert other(ids).dtype is torch.bfloat16
    assert torch.quantize_weights(Net(), least=100).body[0].weight.numel() == 128


def test_gradients_reach_inputs_and_biases() -> None:
    torch.manual_seed(0)
    made = torch.quantize_weights(nn.Linear(6, 5))
    x = torch.randn(3, 6, requires_grad=True)
    made(x).square().sum().backward()
    same = x.detach().clone().requires_grad_()
    (nn.functional.linear(same, made.dequantized(), made.bias).square().sum()).backward()
    assert torch.allclose(x.grad, same.grad, rtol=1e-4, atol=1e-5) and made.bias.grad is not None


def test_what_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"quantize_weights\(\): Linear has weights of torch.float64"):
        torch.quantize_weights(nn.Linear(2, 2).double())
    made = torch.quantize_weights(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="expect scales to have the dtype of A"):
        made(torch.zeros(1, 2).bfloat16())
    with torch.device("meta"):
        assert torch.quantize_weights(nn.Linear(4, 3))(torch.empty(2, 4)).shape == (2, 3)
