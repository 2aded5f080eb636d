"""Attention with functions of scores on NPUs, where its inputs may be trained: gradients are those of plain attention with the same bias."""

from __future__ import annotations

import math

import mindtorch_v2 as torch
from mindtorch_v2.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention


def test_training():
    torch.manual_seed(3)
    leaves = [torch.randn(2, 4, 12, 8) for _ in range(3)] + [torch.randn(4, 12, 12)]
    ours = [x.npu().requires_grad_() for x in leaves]
    bias = ours[3]
    blocks = create_block_mask(lambda b, h, i, j: i >= j, None, None, 12, 12, device="npu", BLOCK_SIZE=4)
    out, aux = flex_attention(
        *ours[:3], lambda s, b, h, i, j: s + bias[h, i, j], blocks, return_aux=AuxRequest(lse=True, max_scores=True)
    )
    out.square().sum().backward()

    plain = [x.clone().requires_grad_() for x in leaves]
    seen = torch.ones(12, 12, dtype=torch.bool).tril()
    mask = torch.where(seen, plain[3], -math.inf)
    want = torch.nn.functional.scaled_dot_product_attention(*plain[:3], mask)
    want.square().sum().backward()
    scores = (leaves[0] @ leaves[1].mT) / math.sqrt(8) + mask.detach()

    assert out.device.type == blocks.kv_indices.device.type == "npu"
    near = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(out.detach().cpu(), want.detach(), **near)
    torch.testing.assert_close(aux.lse.detach().cpu(), scores.logsumexp(-1), **near)
    torch.testing.assert_close(aux.max_scores.detach().cpu(), scores.amax(-1), **near)
    for one, other in zip(ours, plain):
        torch.testing.assert_close(one.grad.cpu(), other.grad, **near)
