"""torch_npu's fused operators on an NPU: values and gradients of the CPU's references, each by the function that it is bound to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mindtorch_v2 as torch

npu = torch.ops.npu


def _heads(*shape: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [torch.randn(shape).to(dtype) for _ in range(3)]


def _triangle(like: torch.Tensor) -> torch.Tensor:
    return torch.triu(torch.ones(2048, 2048, dtype=torch.bool, device=like.device), 1)


CALLS: dict[str, tuple[Callable[[], list[torch.Tensor]], Callable[..., Any]]] = {
    "rms_norm": (lambda: [torch.randn(2, 3, 8), torch.randn(8)], lambda x, g: npu.npu_rms_norm(x, g)),
    "rotary_mul": (
        lambda: [torch.randn(2, 3, 4, 8), torch.randn(1, 3, 1, 8), torch.randn(1, 3, 1, 8)],
        lambda x, c, s: npu.npu_rotary_mul(x, c, s),
    ),
    "rotary_mul pairs": (
        lambda: [torch.randn(2, 3, 4, 8), torch.randn(1, 3, 1, 8), torch.randn(1, 3, 1, 8)],
        lambda x, c, s: npu.npu_rotary_mul(x, c, s, "interleave"),
    ),
    "swiglu": (lambda: [torch.randn(2, 6, 3)], lambda x: npu.npu_swiglu(x, 1)),
    "attention": (lambda: _heads(2, 5, 16), lambda *x: npu.npu_fusion_attention(*x, 4, "BSH", scale=0.5)[:3]),
    "attention that looks back": (
        lambda: _heads(2, 4, 5, 4),
        lambda q, k, v: npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.5, atten_mask=_triangle(q), sparse_mode=3)[:1],
    ),
    "attention in a band": (
        lambda: _heads(5, 2, 16),
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, 4, "SBH", scale=0.5, atten_mask=_triangle(q), sparse_mode=4, pre_tockens=2, next_tockens=0
        )[:1],
    ),
    "attention with a prefix": (
        lambda: _heads(2, 5, 4, 4),
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, 4, "BSND", scale=0.5, atten_mask=_triangle(q), sparse_mode=6, prefix=[2, 4]
        )[:1],
    ),
    "attention with a shift": (
        lambda: [*_heads(2, 2, 3, 4), torch.randn(1, 2, 3, 3)],
        lambda q, k, v, p: npu.npu_fusion_attention(q, k, v, 2, "BNSD", pse=p, scale=0.5)[:1],
    ),
    "attention of several lengths": (
        lambda: [torch.randn(7, 4, 8), torch.randn(9, 2, 8), torch.randn(9, 2, 8)],
        lambda *x: npu.npu_fusion_attention(
            *x, 4, "TND", scale=0.5, actual_seq_qlen=[2, 2, 7], actual_seq_kvlen=[4, 4, 9]
        )[:3],
    ),
    "attention of several lengths that looks back": (
        lambda: [torch.randn(7, 2, 4) for _ in range(3)],
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, 2, "TND", scale=0.5, atten_mask=_triangle(q), sparse_mode=3, actual_seq_qlen=[3, 7], actual_seq_kvlen=[3, 7]
        )[:1],
    ),
    "attention of several lengths in a band": (
        lambda: [torch.randn(7, 2, 4) for _ in range(3)],
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, 2, "TND", scale=0.5, atten_mask=_triangle(q), sparse_mode=4, pre_tockens=1, next_tockens=0,
            actual_seq_qlen=[4, 7], actual_seq_kvlen=[4, 7],
        )[:1],
    ),
    "attention of sequences of which the last was divided": (
        lambda: [torch.randn(n, 2, 4) for n in (5, 9, 9)],
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, 2, "TND", scale=0.5, atten_mask=_triangle(q), sparse_mode=7, pre_tockens=6, next_tockens=-2,
            actual_seq_qlen=[3, 5, 5], actual_seq_kvlen=[3, 9, 9],
        )[:1],
    ),
    "attention of sequences of which the first was divided": (
        lambda: [torch.randn(n, 2, 4) for n in (7, 8, 8)],
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, 2, "TND", scale=0.5, atten_mask=_triangle(q), sparse_mode=8, pre_tockens=4, next_tockens=1,
            actual_seq_qlen=[0, 3, 7], actual_seq_kvlen=[0, 4, 8],
        )[:1],
    ),
    "attention of several lengths with a mask and prefixes": (
        lambda: [torch.randn(7, 2, 4) for _ in range(3)],
        lambda q, k, v: (
            npu.npu_fusion_attention(
                q, k, v, 2, "TND", scale=0.5, atten_mask=_triangle(q)[:4, :4], actual_seq_qlen=[3, 7], actual_seq_kvlen=[3, 7]
            )[0]
            + npu.npu_fusion_attention(
                q, k, v, 2, "TND", scale=0.5, atten_mask=_triangle(q), sparse_mode=6, prefix=[1, 3], actual_seq_qlen=[3, 7], actual_seq_kvlen=[3, 7]
            )[0],
        ),
    ),
    "attention of several lengths that drops": (
        lambda: [torch.randn(7, 2, 4) for _ in range(3)],
        lambda q, k, v: npu.npu_fusion_attention(
            q, k, v, 2, "TND", keep_prob=0.5, dropout_mask=(torch.arange(16) * 13).to(torch.uint8).to(q.device),
            actual_seq_qlen=[3, 7], actual_seq_kvlen=[3, 7],
        )[:1],
    ),
    "permute": (
        lambda: [torch.randn(4, 3)],
        lambda x: npu.npu_moe_token_permute(x, torch.tensor([[2, 0], [1, 2], [0, 1], [2, 1]], device=x.device), 6),
    ),
    "unpermute": (
        lambda: [torch.randn(6, 3), torch.rand(4, 2)],
        lambda x, p: npu.npu_moe_token_unpermute(
            x, torch.tensor([4, 0, 2, 5, 1, 3, 7, 6], dtype=torch.int32, device=x.device), p
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    make, call = CALLS[name]
    given = [t.to(dtype) for t in make()]
    sides = []
    for device in ("cpu", "npu"):
        leaves = [t.to(device).detach().requires_grad_() for t in given]
        made = call(*leaves)
        made = [made] if isinstance(made, torch.Tensor) else list(made)
        gradients = torch.autograd.grad(made[0], leaves, torch.ones_like(made[0]))
        assert all(t.device.type == device for t in (*made, *gradients))
        sides.append([t.detach().cpu().double() for t in (*made, *gradients)])
    limit = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 5e-2}[dtype]
    for a, b in zip(*sides, strict=True):
        torch.testing.assert_close(a, b, rtol=limit, atol=limit)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_inference_and_quantisation(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    x = torch.randn(4, 16)
    weight, columns = torch.randint(-9, 9, (16, 8), dtype=torch.int8), torch.rand(8) + 0.5

    def run(device: str) -> list[torch.Tensor]:
        given = [t.to(dtype).to(device) for t in (q, k, v)]
        attended = npu.npu_fused_infer_attention_score(
            *given,
            num_heads=4,
            num_key_value_heads=2,
            input_layout="BNSD",
            scale=0.3,
            actual_seq_lengths_kv=[3, 6],
            softmax_lse_flag=True,
        )
        turned = npu.npu_fused_infer_attention_score(
            *given, num_heads=4, num_key_value_heads=2, input_layout="BNSD_BSND", scale=0.3
        )[0]
        assert turned.shape == (2, 3, 4, 8)
        whole, scale = npu.npu_dynamic_quant(x.to(dtype).to(device))
        product = npu.npu_quant_matmul(
            whole, weight.to(device), columns.to(device), pertoken_scale=scale, output_dtype=dtype
        )
        summed = npu.npu_add_rms_norm(
            x.to(dtype).to(device), x.to(dtype).to(device), torch.ones(16, dtype=dtype, device=device)
        )
        return [t.cpu().double() for t in (*attended, turned, whole, scale, product, *summed)]

    limit = 5e-3 if dtype is torch.float16 else 5e-2
    for a, b in zip(run("cpu"), run("npu"), strict=True):
        torch.testing.assert_close(a, b, rtol=limit, atol=limit)


def test_groups() -> None:
    x, weight = torch.randn(6, 4), torch.randn(3, 4, 5)
    for options in (
        {"group_list": torch.tensor([2, 2, 6])},
        {"group_list": torch.tensor([2, 0, 4]), "group_list_type": 1},
    ):
        sides = []
        for device in ("cpu", "npu"):
            moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
            sides.append(
                npu.npu_grouped_matmul([x.to(device)], [weight.to(device)], group_type=0, split_item=3, **moved)[0]
            )
        torch.testing.assert_close(sides[1].cpu(), sides[0])
    pairs = npu.npu_grouped_matmul([x.npu(), x[:2].npu()], [weight[0].npu(), weight[1].npu()], group_type=-1)
    torch.testing.assert_close(pairs[1].cpu(), x[:2] @ weight[1])


def test_the_dtype_that_a_function_has_not_is_said() -> None:
    with pytest.raises(RuntimeError, match=r"npu_rms_norm \(aclnnRmsNorm\).*161002"):
        npu.npu_rms_norm(
            torch.ones(2, 4, dtype=torch.float64, device="npu"), torch.ones(4, dtype=torch.float64, device="npu")
        )
