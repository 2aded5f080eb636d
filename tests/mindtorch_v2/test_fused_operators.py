"""torch_npu's fused operators on the CPU: what they are made of, in other operators; and the same on an NPU by tests/npu/test_fused_on_npu.py."""

from __future__ import annotations

import math

import pytest

import mindtorch_v2 as torch

npu = torch.ops.npu
F = torch.nn.functional


def test_rms_norm() -> None:
    x = torch.randn(2, 3, 8, requires_grad=True)
    gamma = torch.randn(8, requires_grad=True)
    y, rstd = npu.npu_rms_norm(x, gamma, 1e-5)
    expected = F.rms_norm(x, (8,), gamma, 1e-5)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(rstd, torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5))
    upper = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, gamma), upper)
    for a, b in zip(found, torch.autograd.grad(expected, (x, gamma), upper), strict=True):
        torch.testing.assert_close(a, b)


def test_add_rms_norm_gives_the_sum_too() -> None:
    a, b, gamma = torch.randn(4, 6), torch.randn(4, 6), torch.randn(6)
    y, _, total = npu.npu_add_rms_norm(a, b, gamma)
    assert torch.equal(total, a + b)
    torch.testing.assert_close(y, F.rms_norm(a + b, (6,), gamma, 1e-6))


@pytest.mark.parametrize("mode", ["half", "interleave"])
def test_rotary_mul(mode: str) -> None:
    x = torch.randn(2, 3, 4, 8, requires_grad=True)
    cos, sin = (torch.randn(1, 3, 1, 8, requires_grad=True) for _ in range(2))
    if mode == "half":
        rotated = torch.cat((-x[..., 4:], x[..., :4]), -1)
    else:
        rotated = torch.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
    expected = x * cos + rotated * sin
    made = npu.npu_rotary_mul(x, cos, sin, mode)
    torch.testing.assert_close(made, expected)
    upper = torch.randn_like(made)
    found = torch.autograd.grad(made, (x, cos, sin), upper)
    for a, b in zip(found, torch.autograd.grad(expected, (x, cos, sin), upper), strict=True):
        torch.testing.assert_close(a, b)
    with pytest.raises(RuntimeError, match="rotary_mode of npu_rotary_mul should be half or interleave"):
        npu.npu_rotary_mul(x, cos, sin, "quarter")


def test_swiglu() -> None:
    x = torch.randn(3, 8, requires_grad=True)
    made = npu.npu_swiglu(x)
    torch.testing.assert_close(made, F.silu(x[:, :4]) * x[:, 4:])
    (a,) = torch.autograd.grad(made, x, torch.ones_like(made))
    (b,) = torch.autograd.grad(F.silu(x[:, :4]) * x[:, 4:], x, torch.ones(3, 4))
    torch.testing.assert_close(a, b)
    with pytest.raises(RuntimeError, match="odd"):
        npu.npu_swiglu(torch.ones(2, 3))


def _heads(x: torch.Tensor, layout: str, count: int) -> torch.Tensor:
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    x = x.transpose(0, 1) if layout == "SBH" else x
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
@pytest.mark.parametrize("mask", [None, "causal", "given"])
def test_fusion_attention(layout: str, mask: str | None) -> None:
    shapes = {"BSH": (2, 5, 16), "SBH": (5, 2, 16), "BSND": (2, 5, 4, 4), "BNSD": (2, 4, 5, 4)}
    given = [torch.randn(shapes[layout], requires_grad=True) for _ in range(3)]
    hidden, options, seen = None, {}, None
    if mask == "causal":
        hidden, options = torch.triu(torch.ones(2048, 2048, dtype=torch.bool), 1), {"sparse_mode": 2}
        seen = torch.tril(torch.ones(5, 5, dtype=torch.bool))
    elif mask == "given":
        hidden = torch.rand(2, 1, 5, 5) > 0.5
        hidden[..., 0] = False
        seen = ~hidden
    made, top, total, softmax, seed, offset, count = npu.npu_fusion_attention(
        *given, 4, layout, atten_mask=hidden, scale=0.5, **options
    )
    expected = F.scaled_dot_product_attention(*(_heads(x, layout, 4) for x in given), attn_mask=seen, scale=0.5)
    torch.testing.assert_close(_heads(made, layout, 4), expected)
    assert top.shape == total.shape == (2, 4, 5, 8) and not softmax.numel() and (seed, offset, count) == (0, 0, 200)
    upper = torch.randn_like(made)
    found = torch.autograd.grad(made, given, upper)
    wanted = torch.autograd.grad(expected, given, _heads(upper, layout, 4))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)


def test_fusion_attention_takes_a_shift_and_drops() -> None:
    q, k, v = (torch.randn(1, 2, 3, 4) for _ in range(3))
    pse = torch.randn(1, 2, 3, 3)
    made = npu.npu_fusion_attention(q, k, v, 2, "BNSD", pse=pse, scale=0.5)[0]
    expected = torch.softmax(0.5 * (q @ k.mT + pse), -1) @ v
    torch.testing.assert_close(made, expected)
    zeros, ones = torch.zeros(1, 1, 64, 64), torch.ones(1, 1, 64, 64)
    dropped = npu.npu_fusion_attention(zeros, zeros, ones, 1, "BNSD", keep_prob=0.75)
    assert dropped[0].mean().item() == pytest.approx(1, abs=0.05) and dropped[0].unique().numel() > 1
    again = npu.npu_fusion_attention(
        zeros, zeros, ones, 1, "BNSD", keep_prob=0.75,
        dropout_mask=npu._npu_dropout_gen_mask(zeros, [1, 1, 64, 64], 0.25, dropped[4], dropped[5]),
    )  # fmt: skip
    assert torch.equal(again[0], dropped[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_layout": "TND"}, "TND needs actual_seq_qlen"),
        ({"input_layout": "XYZ"}, "input_layout should be"),
        ({"keep_prob": 0.0}, "range of"),
        ({"head_num": 3}, "heads"),
        ({"sparse_mode": 2}, "needs atten_mask"),
        ({"sink": torch.ones(2)}, "sink is not supported"),
    ],
)
def test_fusion_attention_refuses(change: dict, message: str) -> None:
    x = torch.randn(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match=message):
        npu.npu_fusion_attention(x, x, x, **{"head_num": 2, "input_layout": "BNSD", **change})


_LARGE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("seen", [None, "back", "mask"])
def test_fusion_attention_of_several_lengths(seen: str | None) -> None:
    lengths = ((2, 4), (0, 0), (5, 5), (1, 3))
    q_ends, k_ends = [2, 2, 7, 8], [4, 4, 9, 12]
    q, k, v = (torch.randn(n, h, 4, dtype=torch.float64, requires_grad=True) for n, h in ((8, 4), (12, 2), (12, 2)))
    options = {}
    if seen == "back":
        options = {"atten_mask": torch.triu(torch.ones(2048, 2048, dtype=torch.bool), 1), "sparse_mode": 3}
    elif seen == "mask":
        options = {"atten_mask": torch.arange(25).reshape(5, 5) % 4 == 3}
    made, top, total, softmax, _, _, count = npu.npu_fusion_attention(
        q, k, v, 4, "TND", scale=0.5, actual_seq_qlen=q_ends, actual_seq_kvlen=k_ends, **options
    )
    assert made.shape == (8, 4, 4) and top.shape == total.shape == (8, 4, 8) and softmax.numel() == 0
    assert count == 4 * sum(a * b for a, b in lengths)
    parts = []
    for (rows, keys), q_end, k_end in zip(lengths, q_ends, k_ends, strict=True):
        if not rows:
            continue
        one = q[q_end - rows : q_end].transpose(0, 1)
        two, three = (t[k_end - keys : k_end].transpose(0, 1).repeat_interleave(2, 0) for t in (k, v))
        scores = one @ two.transpose(1, 2) * 0.5
        if seen == "back":
            hidden = torch.ones(rows, keys, dtype=torch.bool).triu(keys - rows + 1)
        elif seen == "mask":
            hidden = options["atten_mask"][:rows, :keys]
        if seen:
            scores = scores.masked_fill(hidden, -torch.inf)
        parts.append((torch.softmax(scores, -1) @ three).transpose(0, 1))
    expected = torch.cat(parts)
    torch.testing.assert_close(made, expected)
    above = torch.randn_like(made)
    for a, b in zip(torch.autograd.grad(made, (q, k, v), above), torch.autograd.grad(expected, (q, k, v), above)):
        torch.testing.assert_close(a, b)
    meta = npu.npu_fusion_attention(
        *(t.to("meta") for t in (q, k, v)), 4, "TND", actual_seq_qlen=q_ends, actual_seq_kvlen=k_ends
    )
    assert meta[0].shape == made.shape and meta[1].shape == top.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actual_seq_qlen": None}, "needs actual_seq_qlen"),
        ({"actual_seq_qlen": [3, 5]}, "do not rise to its 6 positions"),
        ({"actual_seq_kvlen": [4, 2, 6]}, "do not rise to its 6 positions"),
        ({"actual_seq_kvlen": [6]}, "2 sequences of queries and 1 of keys"),
        ({"actual_seq_kvlen": [0, 6]}, "a sequence of queries has no keys"),
        ({"head_num": 3}, "query has 2 heads, not 3"),
        ({"pse": torch.ones(1, 2, 6, 6)}, "pse of the layout TND is not supported"),
        ({"sparse_mode": 3}, "needs atten_mask"),
        ({"atten_mask": torch.ones(2, 2, dtype=torch.bool)}, "does not fit query and key"),
        ({"sparse_mode": 7}, "sparse_mode 7 needs atten_mask"),
        ({"sparse_mode": 9}, "sparse_mode should be 0 to 8, but got 9"),
        ({"sparse_mode": 7, "atten_mask": _LARGE, "next_tockens": 1}, "at least 0 and at most 0 here, but got 1"),
        ({"sparse_mode": 7, "atten_mask": _LARGE, "pre_tockens": 2}, "pre_tockens of at least 3, the keys"),
        ({"sparse_mode": 8, "atten_mask": _LARGE, "next_tockens": -1}, "next_tockens of at least 0 here, but got -1"),
        (
            {"sparse_mode": 7, "atten_mask": _LARGE, "next_tockens": 0, "actual_seq_kvlen": [2, 6]},
            "sparse_mode 7 of the layout TND wants no more queries than keys",
        ),
    ],
)
def test_fusion_attention_of_several_lengths_refuses(change: dict, message: str) -> None:
    x = torch.randn(6, 2, 4)
    given = {"head_num": 2, "input_layout": "TND", "actual_seq_qlen": [3, 6], "actual_seq_kvlen": [3, 6]}
    with pytest.raises(RuntimeError, match=message):
        npu.npu_fusion_attention(x, x, x, **{**given, **change})


@pytest.mark.parametrize(
    ("whole", "lengths", "first", "second"),
    [
        # The second sequence is divided behind two of its queries: CANN's own example of each mode.
        (3, ((3, 4, 5), (3, 6, 8)), {"sparse_mode": 7, "pre_tockens": 6, "next_tockens": -2}, {"sparse_mode": 3}),
        (2, ((3, 5, 4), (3, 4, 4)), {"sparse_mode": 2}, {"sparse_mode": 8, "pre_tockens": 4, "next_tockens": 1}),
    ],
)
def test_fusion_attention_of_divided_sequences(whole: int, lengths: tuple, first: dict, second: dict) -> None:
    rows, keys = lengths
    q, k, v = (
        torch.randn(n, h, 4, dtype=torch.float64, requires_grad=True)
        for n, h in ((sum(rows), 4), (sum(keys), 2), (sum(keys), 2))
    )
    mask = torch.triu(torch.ones(2048, 2048, dtype=torch.bool), 1)

    def attend(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: tuple, keys: tuple, **more: int
    ) -> torch.Tensor:
        ends = ([sum(n[: i + 1]) for i in range(len(n))] for n in (rows, keys))
        options = dict(zip(("actual_seq_qlen", "actual_seq_kvlen"), ends))
        return npu.npu_fusion_attention(q, k, v, 4, "TND", scale=0.5, atten_mask=mask, **options, **more)[0]

    expected = attend(q, k, v, rows, keys, sparse_mode=whole)
    cut, joined = rows[0] + 2, keys[0] + keys[1]
    made = torch.cat(
        [
            attend(q[:cut], k[:joined], v[:joined], (rows[0], 2, 0), (keys[0], keys[1], 0), **first),
            attend(q[cut:], k[keys[0] :], v[keys[0] :], (0, rows[1] - 2, rows[2]), (0, *keys[1:]), **second),
        ]
    )
    torch.testing.assert_close(made, expected)
    above = torch.randn_like(made)
    for a, b in zip(torch.autograd.grad(made, (q, k, v), above), torch.autograd.grad(expected, (q, k, v), above)):
        torch.testing.assert_close(a, b)


def test_fused_infer_attention_score_of_groups_and_lengths() -> None:
    q, k, v = torch.randn(2, 4, 1, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    made, lse = npu.npu_fused_infer_attention_score(
        q, k, v, num_heads=4, num_key_value_heads=2, input_layout="BNSD", scale=1 / math.sqrt(8),
        actual_seq_lengths_kv=[3, 6], softmax_lse_flag=True,
    )  # fmt: skip
    for b, length in enumerate((3, 6)):
        one = [t[b : b + 1, :, :length] for t in (k, v)]
        expected = F.scaled_dot_product_attention(q[b : b + 1], *one, enable_gqa=True)
        torch.testing.assert_close(made[b : b + 1], expected)
    scores = q @ k.repeat_interleave(2, 1).mT / math.sqrt(8)
    torch.testing.assert_close(lse[1], torch.logsumexp(scores[1], -1, keepdim=True))
    with pytest.raises(RuntimeError, match="block_table is not supported"):
        npu.npu_fused_infer_attention_score(q, k, v, block_table=torch.ones(1, dtype=torch.int32), num_heads=4)


def test_dynamic_quant_and_its_product() -> None:
    x, weight = torch.randn(4, 16), torch.randn(16, 8)
    quantised, scale = npu.npu_dynamic_quant(x)
    torch.testing.assert_close(scale, x.abs().amax(-1) / 127)
    torch.testing.assert_close(quantised * scale[:, None], x, atol=0.02, rtol=0)
    other, columns = npu.npu_dynamic_quant(weight, quant_mode="perchannel")
    made = npu.npu_quant_matmul(quantised, other, columns, pertoken_scale=scale, output_dtype=torch.float16)
    torch.testing.assert_close(made.float(), x @ weight, atol=0.15, rtol=0.05)
    whole = npu.npu_quant_matmul(quantised, other, columns, output_dtype=torch.int32)
    assert (
        torch.equal(whole, torch._int_mm(quantised, other)) if hasattr(torch, "_int_mm") else whole.dtype is torch.int32
    )
    with pytest.raises(RuntimeError, match="scale of int64"):
        npu.npu_quant_matmul(quantised, other, columns)


def test_a_scale_of_int64_holds_a_float() -> None:
    a, b = torch.randint(-9, 9, (3, 4), dtype=torch.int8), torch.randint(-9, 9, (4, 2), dtype=torch.int8)
    packed = torch.tensor([0.25, 0.5]).view(torch.int32).to(torch.int64)
    made = npu.npu_quant_matmul(a, b, packed, offset=torch.tensor([1.0]))
    expected = (a.double() @ b.double() * torch.tensor([0.25, 0.5]).double() + 1).round().clamp(-128, 127)
    assert torch.equal(made, expected.to(torch.int8))


@pytest.mark.parametrize("counts", [False, True])
def test_grouped_matmul(counts: bool) -> None:
    x, weight = torch.randn(6, 4), torch.randn(3, 4, 5)
    lengths = [2, 0, 4]
    ends = [2, 2, 6]
    expected = torch.cat([part @ w for part, w in zip(x.split(lengths), weight, strict=True)])
    options = {"group_type": 0, "split_item": 3, "group_list_type": int(counts)}
    numbers = lengths if counts else ends
    for given in (torch.tensor(numbers), numbers):
        (made,) = npu.npu_grouped_matmul([x], [weight], group_list=given, **options)
        torch.testing.assert_close(made, expected)
    pairs = npu.npu_grouped_matmul(
        [x, x[:2]], [weight[0], weight[1]], bias=[torch.ones(5), torch.zeros(5)], group_type=-1
    )
    torch.testing.assert_close(pairs[0], x @ weight[0] + 1)
    (columns,) = npu.npu_grouped_matmul(
        [x.mT.contiguous()], [torch.ones(6, 2)], group_list=torch.tensor(ends), group_type=2, split_item=3
    )
    torch.testing.assert_close(columns[2], x[2:].sum(0)[:, None].expand(4, 2))
    assert not columns[1].any()
    with pytest.raises(RuntimeError, match="group_type"):
        npu.npu_grouped_matmul([x], [weight])
    with pytest.raises(RuntimeError, match="scale is not supported"):
        npu.npu_grouped_matmul([x], [weight], scale=[torch.ones(5)], group_type=0, split_item=3)


def test_tokens_go_to_their_experts_and_come_back() -> None:
    tokens = torch.randn(4, 3, requires_grad=True)
    experts = torch.tensor([[2, 0], [1, 2], [0, 1], [2, 1]])
    permuted, where = npu.npu_moe_token_permute(tokens, experts)
    order = experts.reshape(-1).argsort(stable=True)
    assert torch.equal(permuted, tokens[order // 2])
    weights = torch.rand(4, 2, requires_grad=True)
    back = npu.npu_moe_token_unpermute(permuted, where, weights)
    torch.testing.assert_close(back, tokens * weights.sum(1, keepdim=True))
    found = torch.autograd.grad(back.sum(), (tokens, weights))
    torch.testing.assert_close(found[0], weights.sum(1, keepdim=True).expand(4, 3))
    torch.testing.assert_close(found[1], tokens.sum(1, keepdim=True).expand(4, 2))
    fewer, where = npu.npu_moe_token_permute(tokens, experts, 5)
    assert torch.equal(fewer, tokens[order[:5] // 2])
    dropped = npu.npu_moe_token_unpermute(fewer, where, torch.ones(4, 2))
    counts = torch.zeros(8).index_fill(0, order[:5], 1).reshape(4, 2).sum(1, keepdim=True)
    torch.testing.assert_close(dropped, tokens * counts)


def test_init_routing() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    rows = torch.tensor([[0, 3], [1, 4], [2, 5]], dtype=torch.int32)
    experts = torch.tensor([[1, 0], [0, 2], [1, 1]], dtype=torch.int32)
    expanded, where, ordered = npu.npu_moe_init_routing(x, rows, experts, 3)
    assert ordered.tolist() == [0, 0, 1, 1, 1, 2]
    assert torch.equal(expanded[where[rows.reshape(-1).long()].long()], x.repeat_interleave(2, 0))
    assert npu.npu_moe_init_routing(x, rows, experts, 2)[0].shape == (4, 2)


def test_formats_are_those_of_tensors_and_what_is_missing_says_why() -> None:
    x = torch.randn(2, 3)
    with pytest.warns(UserWarning, match="allow_internel_format|allow_internal_format"):
        made = npu.npu_format_cast(x, 29)
    assert made.data_ptr() == x.data_ptr() and torch.equal(made, x)
    with pytest.raises(NotImplementedError, match="no documented prototype"):
        npu.npu_scatter_pa_kv_cache(x, x, x, x, x)


def test_dropout_by_bits() -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, requires_grad=True)
    made, mask = npu._npu_dropout(x, 0.25)
    assert mask.shape == (128,) and mask.dtype is torch.uint8
    assert made.unique().tolist() == [0.0, pytest.approx(4 / 3)]
    (gradient,) = torch.autograd.grad(made.sum(), x)
    assert torch.equal(gradient, made)
