"""Subscripts in C give what the Python code behind them gives: results, errors, versions, aliasing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from _native_outcomes import needs_extension

import mindtorch_v2 as torch
from mindtorch_v2 import Tensor

pytestmark = [needs_extension, pytest.mark.filterwarnings("ignore")]

K = torch.tensor([0, 2, 1])
PAIR = torch.tensor([[0, 1], [-1, 0]])
MASK = torch.arange(60).view(4, 3, 5) % 3 == 0
ROWS = torch.tensor([True, False, True, True])
KEYS: list = [
    *(
        0,
        -1,
        4,
        slice(1, 3),
        slice(None),
        slice(3, 1),
        None,
        ...,
        (0, 1),
        (0, 1, 2),
        (0, ..., 1),
        (slice(None), 1),
        (slice(1, None), 0),
    ),
    *(
        (..., None),
        (None, 0),
        (slice(None, None, 2), ..., slice(1, 4, 2)),
        (0, 0, 0, 0),
        (..., ...),
        True,
        False,
        (0, True),
        "x",
        1.5,
        [0, 2],
    ),
    *(
        K,
        (K,),
        (slice(None), K),
        (K, K),
        (K, None, K),
        (K, slice(None), K),
        (..., K),
        (0, K),
        (K, 0),
        (slice(1, 3), K),
        (None, K),
        (slice(0, 2), PAIR),
    ),
    *(
        PAIR,
        (PAIR, PAIR),
        (K[:1], PAIR),
        K.to(torch.int32),
        K.to(torch.uint8),
        K + 3,
        K.float(),
        torch.tensor(1),
        (torch.tensor(1), K),
        K[:0],
    ),
    *(
        MASK,
        ROWS,
        (ROWS, K),
        (slice(None), MASK[0, :, 0]),
        (..., MASK[0, 0]),
        MASK[:, :, 0],
        (ROWS, 0),
        (ROWS, ..., 0),
        torch.tensor(True),
        MASK & False,
    ),
    *(
        MASK[:2],
        (0, MASK[0]),
        (None, ROWS),
        (K.expand(2, 3), slice(1, None)),
        (slice(None), PAIR.t()),
        (PAIR.t(), slice(None), 0),
    ),
]
VALUES: list = [
    *(0, 1.0, -2, 2.5, True, float("nan"), 1e300, 300, 2**40, -0.0, 1j, "x", None, [1, 2, 3, 4, 5]),
    *(
        torch.tensor(3.0),
        torch.tensor(3),
        torch.arange(5.0),
        torch.arange(5),
        torch.ones(1, 1, 1, 1),
        torch.ones(3, 5),
        torch.ones(7),
        torch.tensor([True]),
    ),
    *(torch.ones(3, 1), torch.ones(1, 3, 1), torch.zeros(3, 5, dtype=torch.bfloat16), torch.ones(2, 2, 3, 5)),
]


def _targets() -> list[Tensor]:
    base = torch.arange(60.0).view(4, 3, 5)
    fresh = lambda: base.clone()  # noqa: E731 (one word for each)
    leaf = fresh().requires_grad_()
    return [
        *(
            fresh(),
            fresh().to(torch.int64),
            fresh().to(torch.bfloat16),
            fresh() > 30,
            fresh().to(torch.uint8),
            fresh().to(torch.complex64),
        ),
        *(
            fresh().transpose(0, 2).contiguous().transpose(0, 2),
            fresh()[:, :, ::1],
            torch.zeros(4, 3, 10)[..., ::2],
            torch.zeros(8, 3, 5)[::2],
        ),
        *(
            torch.zeros(5).expand(4, 3, 5),
            torch.zeros(4, 0, 5),
            torch.tensor(1.0),
            torch.arange(4.0),
            leaf,
            leaf * 2,
            (leaf * 2)[:],
            leaf.detach(),
        ),
        *(
            torch.from_numpy(np.zeros((4, 3, 5), np.float16)),
            fresh().unbind(0)[0].view(3, 5),
            torch.empty(4, 3, 5, device="meta"),
        ),
    ]


def _said(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    data = None if value.device.type == "meta" else repr(value.detach().to(torch.complex128).tolist())
    node = value.grad_fn
    strides = value.stride() if value.numel() else None
    return (
        type(value),
        value.dtype,
        tuple(value.shape),
        strides,
        value.requires_grad,
        node and node.name(),
        value._is_view(),
        data,
    )


def _outcome(call: Any, *arguments: Any) -> Any:
    try:
        return _said(call(*arguments))
    except Exception as error:  # noqa: BLE001 (the error is what is compared)
        return type(error), str(error)


@pytest.mark.parametrize("number", range(len(_targets())))
def test_reading(number: int) -> None:
    for key in KEYS:
        x = _targets()[number]
        found, wanted = _outcome(Tensor.__getitem__, x, key), _outcome(Tensor.__getitem__.__wrapped__, x, key)
        assert found == wanted, (x.shape, x.dtype, key)


@pytest.mark.parametrize("number", range(len(_targets())))
def test_writing(number: int) -> None:
    for count, (key, value) in enumerate(itertools.product(KEYS, VALUES)):
        if number > 3 and count % 3:
            continue
        x, y = _targets()[number], _targets()[number]
        found, wanted = (
            _outcome(Tensor.__setitem__, x, key, value),
            _outcome(Tensor.__setitem__.__wrapped__, y, key, value),
        )
        assert found == wanted, (x.shape, x.dtype, key, value)
        assert _said(x) == _said(y), (x.shape, x.dtype, key, value)
        assert x._version == y._version, (x.shape, x.dtype, key, value)


def test_writing_with_modes_and_histories() -> None:
    for write in (Tensor.__setitem__, Tensor.__setitem__.__wrapped__):
        with torch.no_grad():
            leaf = torch.zeros(3, requires_grad=True)
            write(leaf, 0, 5.0)
            assert leaf.tolist() == [5, 0, 0] and leaf._version == 1
            view = torch.zeros(2, requires_grad=True)[:1]
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad|no_grad mode"):
            write(view, 0, 1.0)
        x, w = torch.zeros(3), torch.ones(2, requires_grad=True)
        write(x, slice(1, None), w)
        assert x.requires_grad and x.grad_fn is not None
        x.sum().backward()
        assert w.grad.tolist() == [1, 1]
        pieces = torch.zeros(4).split(2)
        write(pieces[0], 0, 1.0)
        assert pieces[0].tolist() == [1, 0]
        x = torch.arange(6.0)
        with pytest.raises(RuntimeError, match="single memory location"):
            write(x, slice(1, None), x[:-1])
        with pytest.raises(RuntimeError, match="single memory location"):
            write(x, K, x[3:])
        saved = torch.ones(3, requires_grad=True)
        scaled = torch.ones(3)
        product = saved * scaled
        write(scaled, K, 2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()


def test_reading_in_inference_mode() -> None:
    x = torch.arange(12.0).view(3, 4)
    with torch.inference_mode():
        assert x[K].is_inference() and x[x > 3].is_inference() and x.t().contiguous().is_inference()
        made = x[K]
        made[0] = 1.0
        assert made[0].tolist() == [1, 1, 1, 1]


def test_subscripts_of_another_number_of_arguments_are_refused() -> None:
    x = torch.arange(3.0)
    for call in (
        lambda: x.__getitem__(),
        lambda: x.__getitem__(0, 1),
        lambda: x.__setitem__(0),
        lambda: x.__setitem__(0, 1, 2),
        lambda: torch.Tensor.__setitem__(x, 0),
    ):
        with pytest.raises(TypeError):
            call()
    assert x.tolist() == [0, 1, 2]
