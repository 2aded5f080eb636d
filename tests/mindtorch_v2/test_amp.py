"""Automatic mixed precision: which operators are cast, the state of a thread, scaling of losses."""

from __future__ import annotations

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _state
from mindtorch_v2.amp import GradScaler, autocast, custom_bwd, custom_fwd
from mindtorch_v2.amp._state import get_autocast_dtype, is_autocast_enabled

F = torch.nn.functional
LOWER, FULL = torch.bfloat16, torch.float32


@pytest.fixture
def a():
    torch.manual_seed(0)
    return torch.randn(2, 2)


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda a: a @ a, LOWER),
        (lambda a: torch.mm(a, a), LOWER),
        (lambda a: torch.matmul(a, a[0]), LOWER),
        (lambda a: torch.bmm(a[None], a[None]), LOWER),
        (lambda a: torch.addmm(a, a, a), LOWER),
        (lambda a: torch.einsum("ij,jk->ik", a, a), LOWER),
        (lambda a: F.linear(a, a), LOWER),
        (lambda a: F.conv1d(a[None], torch.ones(3, 2, 1)), LOWER),
        (lambda a: F.scaled_dot_product_attention(a[None, None], a[None, None], a[None, None]), LOWER),
        (lambda a: F.mse_loss(a @ a, a), FULL),
        (lambda a: F.cross_entropy(a @ a, torch.tensor([0, 1])), FULL),
        (lambda a: torch.prod(a @ a), FULL),
        (lambda a: torch.cat([a @ a, a]), FULL),
        (lambda a: torch.stack([a @ a, a @ a]), LOWER),
        (lambda a: F.softmax(a @ a, -1), LOWER),
        (lambda a: F.layer_norm(a @ a, [2]), LOWER),
        (lambda a: a @ a + a, FULL),
        (lambda a: torch.mv(a, a[0]), FULL),
        (lambda a: torch.mm(a.double(), a.double()), torch.float64),
        (lambda a: torch.mm(a, a, out=torch.empty(2, 2)), FULL),
    ],
)
def test_dtypes_are_pytorchs(a, call, dtype):
    with autocast("cpu"):
        assert call(a).dtype is dtype


def test_nesting_and_state(a):
    assert not is_autocast_enabled("cpu") and _state.TLS.autocast is None
    with autocast("cpu"):
        assert is_autocast_enabled("cpu") and not is_autocast_enabled("cuda")
        with autocast("cpu", enabled=False):
            assert (a @ a).dtype is FULL
        with autocast("cpu", dtype=torch.float16):
            assert get_autocast_dtype("cpu") is torch.float16 and (a @ a).dtype is torch.float16
        assert get_autocast_dtype("cpu") is LOWER and (a @ a).dtype is LOWER
    assert not is_autocast_enabled("cpu") and (a @ a).dtype is FULL
    assert _state.TLS.autocast is None and torch.Tensor in _state.PLAIN


def test_other_threads_are_not_touched(a):
    seen = []
    with autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((a @ a).dtype))
        thread.start()
        thread.join()
    assert seen == [FULL]


def test_decorator(a):
    @autocast("cpu")
    def product():
        return a @ a

    assert product().dtype is LOWER and product.__name__ == "product"
    with pytest.raises(TypeError, match=r"autocast\(\)\(func\) requires a callable, but got int"):
        autocast("cpu")(3)


def test_gradients_are_in_the_dtype_of_the_weights(a):
    weight = torch.ones(2, 2, requires_grad=True)
    with autocast("cpu"):
        F.linear(a, weight).sum().backward()
    assert weight.grad.dtype is FULL
    assert torch.allclose(weight.grad, a.sum(0).expand(2, 2), atol=2e-2)


def test_arguments():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class 'int'>`"):
        autocast(3)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        autocast("no_such_device")
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast."):
        assert autocast("cpu", dtype=torch.float64)._enabled is False
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert autocast("cuda")._enabled is False


def test_custom_function(a):
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            seen.append((x.dtype, is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(is_autocast_enabled("cpu"))
            return grad * 2

    x = a.to(LOWER).requires_grad_()
    with autocast("cpu"):
        y = Double.apply(x)
    y.sum().backward()
    assert seen == [(FULL, False), False] and x.grad.dtype is LOWER


def test_scaler():
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=2)
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    history = []
    for factor in (1.0, 2.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((parameter * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        history.append((round(parameter[0].item(), 4), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
    assert history == [(0.9, 4.0, 1), (0.7, 8.0, 0), (0.7, 4.0, 0), (0.6, 4.0, 1)]
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_\\(\\) has already been called on this optimizer"):
        scaler.unscale_(optimizer)


def test_scaler_state():
    scaler = GradScaler("cpu")
    state = {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1}
    scaler.load_state_dict(state)
    assert scaler.state_dict() == state
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        scaler.load_state_dict({})
    disabled = GradScaler("cpu", enabled=False)
    assert disabled.scale(3) == 3 and disabled.state_dict() == {} and disabled.get_scale() == 1.0
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not GradScaler().is_enabled()
