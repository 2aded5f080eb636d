"""The attention kernel in C against the numpy one, and what the composite does with operands that fit beyond question."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.cpu.ops.attention import flash_attention, flash_attention_backward
from mindtorch_v2._dispatch import native

needs_extension = pytest.mark.skipif(native.extension is None, reason="the extension is not built")


def operands(kind: str, batch: int, heads: int, queries: int, keys: int, width: int) -> list[np.ndarray]:
    """query, key and value as models have them: (batch, length, heads, width), transposed."""
    draw = np.random.default_rng(0)
    return [
        draw.standard_normal((batch, n, heads, width)).astype(kind).transpose(0, 2, 1, 3) for n in (queries, keys, keys)
    ]


@needs_extension
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize(
    ("queries", "keys", "width"), [(1, 1, 1), (1, 7, 32), (5, 3, 17), (4, 40, 8), (40, 70, 8), (40, 2100, 4)]
)
def test_kernel_gives_what_numpy_gives(kind: str, queries: int, keys: int, width: int) -> None:
    query, key, value = operands(kind, 2, 3, queries, keys, width)
    draw = np.random.default_rng(1)
    some = draw.random((2, 1, queries, keys)) > 0.3
    nothing = np.zeros((queries, keys), bool)
    masks = [
        None,
        some,
        nothing,
        draw.standard_normal((queries, keys)).astype(kind),
        draw.random((1, 3, 1, keys)) > 0.5,
    ]
    close = {"rtol": 2e-5, "atol": 2e-6} if kind == "float32" else {"rtol": 1e-12, "atol": 1e-13}
    for mask, causal, scale in itertools.product(masks, (False, True), (None, 0.25)):
        args = (query, key, value, 0.0, causal, mask, scale)
        with np.errstate(all="ignore"):
            found, wanted = flash_attention(*args), flash_attention.__wrapped__(*args)
        for one, other in zip(found, wanted):
            assert one.dtype == other.dtype and one.strides == other.strides
            np.testing.assert_allclose(one, other, **close)
        grad = draw.standard_normal(query.shape).astype(kind)
        for upper in (grad, np.broadcast_to(np.ones((), kind), query.shape)):
            args = (upper, query, key, value, *wanted, 0.0, causal, mask, scale)
            given, by_numpy = flash_attention_backward(*args), flash_attention_backward.__wrapped__(*args)
            for one, other in zip(given, by_numpy):
                assert one.dtype == other.dtype and one.strides == other.strides
                np.testing.assert_allclose(one, other, rtol=10 * close["rtol"], atol=30 * close["atol"])


@pytest.mark.usefixtures("vectors")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("queries", "keys", "width"), [(1, 1, 1), (1, 700, 64), (3, 45, 17), (32, 33, 8), (33, 20, 8)])
def test_few_queries_of_half_types(dtype: Any, queries: int, keys: int, width: int) -> None:
    near = 2**-7 if dtype is torch.bfloat16 else 2**-10
    query, key, value = (torch.from_numpy(x).to(dtype) for x in operands("float32", 2, 3, queries, keys, width))
    seen = torch.from_numpy(np.random.default_rng(1).random((2, 1, queries, keys)) > 0.3)
    added = torch.randn(queries, keys).to(dtype)
    flash = torch._scaled_dot_product_flash_attention_for_cpu
    for mask, causal, scale in itertools.product((None, seen, seen & False, added), (False, True), (None, 0.25)):
        wide = mask if mask is None or mask.dtype is torch.bool else mask.double()
        wanted, sums = flash(query.double(), key.double(), value.double(), 0.0, causal, attn_mask=wide, scale=scale)
        for _ in range(3):  # the second call is planned
            made, logsum = flash(query, key, value, 0.0, causal, attn_mask=mask, scale=scale)
            assert made.dtype is dtype and made.stride() == query.stride() and logsum.dtype is torch.float32
            torch.testing.assert_close(made.double(), wanted, rtol=near, atol=near)
            torch.testing.assert_close(logsum.double(), sums, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_heads_that_share_keys_give_what_repeated_ones_do(dtype: Any) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    torch.manual_seed(0)
    key, value = (torch.randn(2, 3, 21, 8, dtype=dtype, requires_grad=True) for _ in range(2))
    plain, turned = torch.randn(2, 6, 1, 8, dtype=dtype), torch.randn(2, 1, 6, 8, dtype=dtype).transpose(1, 2)
    masks = (None, torch.rand(1, 21) > 0.4, torch.randn(2, 1, 1, 21).to(dtype), torch.rand(2, 6, 1, 21) > 0.4)
    near = 1e-6 if dtype is torch.float32 else 2**-7
    for query, mask, causal in itertools.product((plain, turned, plain.expand(2, 6, 2, 8)), masks, (False, True)):
        if mask is not None and causal:
            continue
        query = query.detach().requires_grad_(True)
        made = attend(query, key, value, mask, is_causal=causal, enable_gqa=True)
        wanted = attend(query, *(x.repeat_interleave(2, 1) for x in (key, value)), mask, is_causal=causal)
        assert made.stride() == wanted.stride()
        torch.testing.assert_close(made, wanted, rtol=near, atol=near)
        upper = torch.randn_like(made)
        for one, other in zip(
            torch.autograd.grad(made, (query, key, value), upper),
            torch.autograd.grad(wanted, (query, key, value), upper),
            strict=True,
        ):
            torch.testing.assert_close(one, other, rtol=4 * near, atol=8 * near)


def test_attention_of_one_query_by_hand() -> None:
    query = torch.tensor([[[[0.0, 2.0]]]])
    key = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    value = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=0.5)
    weight = 1 / (1 + np.exp(-1.0))
    torch.testing.assert_close(out, torch.tensor([[[[1 + 2 * weight, 2 + 2 * weight]]]], dtype=torch.float32))
    query.requires_grad_(True)
    torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=0.5)[..., 0].sum().backward()
    slope = weight * (1 - weight)
    torch.testing.assert_close(query.grad, torch.tensor([[[[-slope, slope]]]], dtype=torch.float32))


def test_wrong_operands_are_refused() -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    query = torch.ones(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="same dtype"):
        attend(query, query.double(), query)
    with pytest.raises(RuntimeError):
        attend(query, torch.ones(1, 2, 3, 5), torch.ones(1, 2, 3, 5))
    assert attend(query, torch.ones(1, 2, 5, 4), torch.ones(1, 2, 5, 4)).tolist() == query.tolist()
