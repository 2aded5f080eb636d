"""complex32: what is moved, converted, printed and computed keeps both parts. Values are PyTorch's."""

from __future__ import annotations

import pickle
import warnings

import pytest

import mindtorch_v2 as torch

pytestmark = [
    pytest.mark.skipif(torch.complex32.np is None, reason="this ml_dtypes has no complex32"),
    pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental"),
]


def _given() -> torch.Tensor:
    return torch.tensor([1 + 2j, 3 - 4j, 0j]).to(torch.chalf)


@pytest.mark.parametrize(
    "call, want",
    [
        (lambda h: h.tolist(), [1 + 2j, 3 - 4j, 0j]),
        (lambda h: h[1].item(), 3 - 4j),
        (lambda h: (h + h).tolist(), [2 + 4j, 6 - 8j, 0j]),
        (lambda h: (h * h).tolist(), [-3 + 4j, -7 - 24j, 0j]),
        (lambda h: h.conj().tolist(), [1 - 2j, 3 + 4j, 0j]),
        (lambda h: h.abs().tolist(), [2.236328125, 5.0, 0.0]),
        (lambda h: h.real.tolist(), [1.0, 3.0, 0.0]),
        (lambda h: h.imag.tolist(), [2.0, -4.0, 0.0]),
        (lambda h: torch.view_as_real(h).tolist(), [[1.0, 2.0], [3.0, -4.0], [0.0, 0.0]]),
        (lambda h: torch.cat([h, h])[[3, 1]].tolist(), [1 + 2j, 3 - 4j]),
        (lambda h: h.long().tolist(), [1, 3, 0]),
        (lambda h: h.bool().tolist(), [True, True, False]),
        (lambda h: h.to(torch.bfloat16).tolist(), [1.0, 3.0, 0.0]),
        (lambda h: torch.ones(3, dtype=torch.int32).to(torch.chalf).tolist(), [1, 1, 1]),
        (lambda h: torch.full((2,), 1 + 1j, dtype=torch.chalf).tolist(), [1 + 1j, 1 + 1j]),
        (lambda h: torch.tensor(2.5).chalf().item(), 2.5 + 0j),
        (lambda h: h.half().add_(h.real).tolist(), [2.0, 6.0, 0.0]),
        (lambda h: torch.ones(3, dtype=torch.cfloat).add_(h).tolist(), [2 + 2j, 4 - 4j, 1 + 0j]),
        (lambda h: h.clone().copy_(torch.ones(3)).tolist(), [1, 1, 1]),
        (lambda h: (h == h).tolist(), [True] * 3),
        (lambda h: h.storage().tolist(), [1 + 2j, 3 - 4j, 0j]),
        (lambda h: pickle.loads(pickle.dumps(h)).tolist(), [1 + 2j, 3 - 4j, 0j]),
        (lambda h: repr(h), "tensor([1.+2.j, 3.-4.j, 0.+0.j], dtype=torch.complex32)"),
        (lambda h: repr(torch.tensor([1.25 + 4j, -7.0 + 6j], dtype=torch.chalf)), "tensor([ 1.2500+4.j, -7.0000+6.j], dtype=torch.complex32)"),
    ],
)  # fmt: skip
def test_keeps_both_parts(call, want):
    assert call(_given()) == want


def test_draws_the_numbers_of_a_seed():
    torch.manual_seed(0)
    assert torch.randn(2, dtype=torch.chalf).tolist() == [1.08984375 - 0.20751953125j, -1.541015625 + 0.40185546875j]
    assert torch.rand(1, dtype=torch.chalf).item() == 0.45556640625 + 0.63232421875j


def test_says_once_that_it_is_experimental():
    torch.set_warn_always(True)
    try:
        for call in (
            lambda: torch.randn(3, dtype=torch.chalf),
            lambda: torch.empty(3, dtype=torch.chalf),
            lambda: _given() + 1,
        ):
            with pytest.warns(UserWarning, match="ComplexHalf support is experimental"):
                call()
    finally:
        torch.set_warn_always(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.zeros(3, dtype=torch.chalf)


def test_numbers_of_the_default_dtype():
    torch.set_default_dtype(torch.half)
    try:
        assert torch.tensor(1j).dtype is torch.complex32 and torch.full((2,), 1j).dtype is torch.complex64
        torch.set_default_dtype(torch.bfloat16)
        with pytest.raises(RuntimeError, match="invalid default scalar type for complex"):
            torch.tensor(1j)
        assert (torch.ones(2) * 1j).dtype is torch.complex64
    finally:
        torch.set_default_dtype(torch.float32)
