"""An LSTM's layer as one operator: against the same layer step by step, and in C against numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops import recurrent


@pytest.mark.parametrize(
    ("layers", "both_ways", "bias", "steps"), [(1, False, True, 4), (2, True, True, 5), (2, False, False, 1)]
)
def test_the_layer_is_what_its_steps_are(layers: int, both_ways: bool, bias: bool, steps: int) -> None:
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(3, 5, layers, bias=bias, bidirectional=both_ways, dtype=torch.float64)
    start = [torch.randn(layers * (1 + both_ways), 2, 5, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    x = torch.randn(steps, 2, 3, dtype=torch.float64, requires_grad=True)

    def found() -> list[torch.Tensor]:
        output, (h, c) = lstm(x, tuple(start))
        read = [x, *start, *lstm.parameters()]
        grads = torch.autograd.grad((output**2).sum() + (h * c).sum(), read, create_graph=True)
        return [output, h, c, *grads, *torch.autograd.grad(sum((g**2).sum() for g in grads), read)]

    whole = found()
    with torch.overrides.BaseTorchFunctionMode():  # which sees single steps
        by_steps = found()
    lstm(x, tuple(start))[0].sum().backward()
    first = [p.grad.clone() for p in (x, *start, *lstm.parameters())]
    with torch.overrides.BaseTorchFunctionMode():
        lstm.zero_grad()
        x.grad = start[0].grad = start[1].grad = None
        lstm(x, tuple(start))[0].sum().backward()
    whole, by_steps = whole + first, by_steps + [p.grad for p in (x, *start, *lstm.parameters())]
    for one, other in zip(whole, by_steps, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_what_does_not_fit_is_refused() -> None:
    x, w, b, h = torch.ones(2, 3, 4), torch.ones(8, 4), torch.ones(8), torch.ones(3, 2)
    rest = (False, [], 2, 2, 1, True, False, False, False)
    with pytest.raises(RuntimeError, match=r"expected weight1 of shape \[8, 2\], but got \[8, 4\]"):
        torch.mkldnn_rnn_layer(x, w, w, b, b, h, h, *rest)
    with pytest.raises(RuntimeError, match="mode 3"):
        torch.mkldnn_rnn_layer(x, w, torch.ones(8, 2), b, b, h, h, False, [], 3, *rest[3:])


@needs_extension
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("batch", "width"), [(6, 1), (1, 5), (19, 70)])
def test_in_c_as_by_numpy(dtype: type, batch: int, width: int, vectors: int) -> None:
    draw, wide, state = np.random.default_rng(0), 4 * width, (batch, width)
    shapes = ((3, batch, 2), (wide, 2), (wide, width), (wide,), (wide,), state, state)
    made = [draw.standard_normal(shape).astype(dtype) for shape in shapes]
    near = {"rtol": 3e-5, "atol": 3e-5} if dtype is np.float32 else {"rtol": 1e-11, "atol": 1e-12}
    for reverse, with_output, with_states in itertools.product((False, True), repeat=3):
        wanted = recurrent.forward.__wrapped__(*made, reverse)
        for one, other in zip(recurrent.forward(*made, reverse), wanted, strict=True):
            np.testing.assert_allclose(one, other, **near)
        given = [draw.standard_normal(part.shape).astype(dtype) for part in wanted[:3]]
        given = [given[0] if with_output else None, *(given[1:] if with_states else (None, None))]
        args = (*made, wanted[0], wanted[3], *given, reverse)
        for one, other in zip(recurrent.backward(*args), recurrent.backward.__wrapped__(*args), strict=True):
            np.testing.assert_allclose(one, other, **near)
