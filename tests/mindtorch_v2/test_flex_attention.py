"""Attention with functions of scores and masks of blocks: values of NumPy's formula, and some that PyTorch gave."""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn.attention import flex_attention as flex
from mindtorch_v2.nn.attention.flex_attention import AuxOutput, AuxRequest, BlockMask, create_block_mask, flex_attention

DOCUMENTS = np.array([0] * 5 + [1] * 7 + [2] * 8)
PREFIX = np.array([3, 6])
SLOPES = 2.0 ** -np.arange(1, 5, dtype=np.float32)
DISTANCES = np.sin(np.arange(64, dtype=np.float32))
BIAS = np.cos(np.arange(4 * 20 * 20, dtype=np.float32)).reshape(4, 20, 20)

# each is written once, for arrays as for tensors: `of` makes the captured arrays what the positions are
MASKS = {
    "causal": lambda of, b, h, i, j: i >= j,
    "window": lambda of, b, h, i, j: (i >= j) & (i - j < 4),
    "documents": lambda of, b, h, i, j: of(DOCUMENTS)[i] == of(DOCUMENTS)[j],
    "prefix": lambda of, b, h, i, j: (j < of(PREFIX)[b]) | (i >= j),
    "by head": lambda of, b, h, i, j: (i >= j) & (i - j < 2 * h + 1),
    "a row of nothing": lambda of, b, h, i, j: (i >= j) & (i != 3),
}
SCORES = {
    "plain": lambda of, s, b, h, i, j: s,
    "alibi": lambda of, s, b, h, i, j: s - of(SLOPES)[h] * abs(i - j),
    "relative": lambda of, s, b, h, i, j: s + of(DISTANCES)[i - j + 32],
    "bias": lambda of, s, b, h, i, j: s + of(BIAS)[h, i, j],
    "soft cap": lambda of, s, b, h, i, j: 2.0 * (np.tanh if of is np.asarray else torch.tanh)(s / 2.0),
}


def inputs(heads=4, shared=4, queries=20, keys=20, batches=2):
    draw = np.random.default_rng(5)
    return [
        draw.standard_normal(size).astype(np.float32)
        for size in ((2, heads, queries, 8), (batches, shared, keys, 8), (batches, shared, keys, 6))
    ]


def by_formula(query, key, value, score, mask):
    """(attention, logarithms of sums) in float64."""
    query, key, value = (x.astype(np.float64) for x in (query, key, value))
    key, value = (x.repeat(query.shape[1] // x.shape[1], 1) for x in (key, value))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    at = np.ogrid[tuple(slice(n) for n in scores.shape)]
    scores = np.where(mask(np.asarray, *at), score(np.asarray, scores, *at), -np.inf)
    powers = np.exp(scores)
    sums = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return powers / np.where(sums == 0, 1, sums) @ value, np.log(sums[..., 0])


def bound(function):
    """`function` of tensors, with a signature that tells how many arguments there are."""
    if function in SCORES.values():
        return lambda s, b, h, i, j: function(torch.tensor, s, b, h, i, j)
    return lambda b, h, i, j: function(torch.tensor, b, h, i, j)


def wave(*size, step):
    return torch.sin(torch.arange(math.prod(size), dtype=torch.float64) * step).reshape(size).float()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shared, queries, batches", [(4, 20, 2), (2, 20, 2), (1, 12, 1)])
def test_values(score, mask, shared, queries, batches):
    given = inputs(shared=shared, queries=queries, batches=batches)
    blocks = create_block_mask(bound(MASKS[mask]), 2, 4, queries, 20, device="cpu", BLOCK_SIZE=8)
    out, aux = flex_attention(
        *map(torch.tensor, given),
        score_mod=bound(SCORES[score]),
        block_mask=blocks,
        enable_gqa=shared != 4,
        return_aux=AuxRequest(lse=True),
    )
    want, lse = by_formula(*given, SCORES[score], MASKS[mask])
    assert out.dtype == aux.lse.dtype == torch.float32 and aux.max_scores is None
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(aux.lse.numpy(), lse, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype, near", [("float16", 3e-3), ("bfloat16", 3e-2), ("float64", 1e-12)])
def test_dtypes(dtype, near):
    dtype = getattr(torch, dtype)
    given = [torch.tensor(x).to(dtype) for x in inputs()]
    out, aux = flex_attention(*given, score_mod=bound(SCORES["alibi"]), return_aux=AuxRequest(lse=True))
    want, lse = by_formula(*(x.double().numpy() for x in given), SCORES["alibi"], lambda of, b, h, i, j: i >= 0)
    assert out.dtype == dtype and aux.lse.dtype == (dtype if dtype == torch.float64 else torch.float32)
    np.testing.assert_allclose(out.double().numpy(), want, rtol=near, atol=near)
    np.testing.assert_allclose(aux.lse.numpy(), lse, rtol=min(near, 1e-5), atol=min(near, 1e-5))


def test_scale_strides_and_autocast():
    query, key, value = map(torch.tensor, inputs())
    plain = torch.nn.functional.scaled_dot_product_attention
    close = torch.testing.assert_close
    close(flex_attention(query, key, value, scale=0.7), plain(query, key, value, scale=0.7))
    # the result lies as the query does, but for the last dimension
    by_length = query.transpose(1, 2).contiguous().transpose(1, 2)
    assert flex_attention(by_length, key, value).stride() == (480, 6, 24, 1)
    assert flex_attention(query.mT.contiguous().mT, key, value).stride() == (480, 120, 6, 1)
    with torch.autocast("cpu", torch.bfloat16):
        cast = flex_attention(query, key, value)
    assert cast.dtype == torch.bfloat16
    assert torch.equal(cast, flex_attention(query.bfloat16(), key.bfloat16(), value.bfloat16()))
    assert torch.equal(torch.compile(flex_attention)(query, key, value), flex_attention(query, key, value))


def recorded():
    query, key, value = wave(1, 4, 6, 4, step=0.7) * 2, wave(1, 2, 6, 4, step=1.3) * 2, wave(1, 2, 6, 3, step=2.1)
    bias = wave(4, 11, step=0.37)
    leaves = [x.requires_grad_() for x in (query, key, value, bias)]
    blocks = create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j <= h) & (i != 2), None, 4, 6, 6, device="cpu", BLOCK_SIZE=2
    )

    def score(s, b, h, i, j):
        return torch.tanh(s + bias[h, i - j + 5])

    # by the inner function: `flex_attention` refuses inputs that require gradients on CPUs, as PyTorch does
    out, scores = flex._attend(query, key, value, score, blocks.mask_mod, 0.5)
    return leaves, out, flex._log_sums(scores)


def test_gradients_are_those_of_pytorch():
    leaves, out, lse = recorded()
    (out * wave(1, 4, 6, 3, step=0.9)).sum().backward()

    def close(tensor, *want):
        torch.testing.assert_close(tensor.detach().flatten(), torch.tensor(want), rtol=1e-5, atol=2e-6)

    close(lse[0, 3], 0.992768, 0.139171, -math.inf, 1.599383, 2.118049, 1.858471)
    close(out[0, 3, 1:4], 0.106207, 0.804682, -0.918688, 0.0, 0.0, 0.0, 0.127263, 0.791704, -0.92664)
    close(leaves[0].grad[0, 3, 4], 0.000326, -0.000602, -0.000648, 0.000255)
    close(leaves[0].grad[0, 3, 2], 0.0, 0.0, 0.0, 0.0)
    close(leaves[1].grad[0, 1, :2], 0.003223, 0.001124, -0.001504, -0.003425, 0.002877, 0.00298, 0.001681, -0.000408)
    close(leaves[2].grad[0, 1, :2], 0.409188, 1.104001, 0.963329, -0.015513, -0.759663, -0.928915)
    close(leaves[3].grad[3], 0.0, 0.0, 0.0, 0.0, 0.0, -0.002572, 0.000114, 0.001599, 0.004245, 0.0, 0.0)


def test_gradients_of_sums_pass_rows_of_nothing_by():
    leaves, _, lse = recorded()
    torch.where(lse.isinf(), 0.0, lse).sum().backward()
    assert all(bool(x.grad.isfinite().all()) for x in (leaves[0], leaves[1], leaves[3]))
    assert bool((leaves[0].grad[:, :, 2] == 0).all()) and bool((leaves[0].grad[:, :, 3] != 0).any())


def test_scores_of_a_function_may_be_integers():
    query, key, value = map(torch.tensor, inputs())
    distances = torch.arange(query.size(-2))[:, None] - torch.arange(key.size(-2))
    out = flex_attention(query, key, value, lambda s, b, h, i, j: i - j)
    torch.testing.assert_close(out, torch.softmax(distances.float(), -1) @ value)


def test_captured_tensors_get_gradients_through_the_function():
    query, key, value = map(torch.tensor, inputs())
    bias = torch.tensor(BIAS, requires_grad=True)
    flex_attention(query, key, value, lambda s, b, h, i, j: s + bias[h, i, j]).square().sum().backward()
    other = torch.tensor(BIAS, requires_grad=True)
    torch.nn.functional.scaled_dot_product_attention(query, key, value, other).square().sum().backward()
    torch.testing.assert_close(bias.grad, other.grad)


def test_a_function_of_scores_and_its_mask():
    mask = flex.create_mask(lambda s, b, h, i, j: torch.where(i >= j, s, -math.inf), None, 2, 3, 3, device="cpu")
    assert mask.tolist() == [[[[True, False, False], [True, True, False], [True, True, True]]] * 2]
    both = flex.and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i - j < 2)
    either = flex.or_masks(lambda b, h, i, j: i > j, lambda b, h, i, j: i == 0)
    assert flex.create_mask(both, 1, 1, 3, 3, device="cpu").int().tolist() == [[[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]]
    assert flex.create_mask(either, 1, 1, 3, 3, device="cpu").int().tolist() == [[[[1, 1, 1], [1, 0, 0], [1, 1, 0]]]]
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        flex.and_masks(3)
    assert flex.create_mask(flex.noop_mask, None, None, 2, 2, device="cpu").all()


def causal(length=8, keys=None, size=2, **options):
    return create_block_mask(
        lambda b, h, i, j: i >= j, None, None, length, keys or length, device="cpu", BLOCK_SIZE=size, **options
    )


def test_blocks():
    blocks = causal(7, 5)
    want = {
        "kv_num_blocks": [[[1, 1, 1, 3]]],
        "kv_indices": [[[[0, 1, 2], [1, 0, 2], [2, 0, 1], [0, 1, 2]]]],
        "full_kv_num_blocks": [[[0, 1, 2, 0]]],
        "full_kv_indices": [[[[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]]],
        "q_num_blocks": [[[2, 2, 2]]],
        "q_indices": [[[[0, 3, 1, 2], [1, 3, 0, 2], [2, 3, 0, 1]]]],
        "full_q_num_blocks": [[[2, 1, 0]]],
        "full_q_indices": [[[[1, 2, 0, 3], [2, 0, 1, 3], [0, 1, 2, 3]]]],
    }
    for name, values in want.items():
        assert getattr(blocks, name).tolist() == values and getattr(blocks, name).dtype == torch.int32, name
    assert (blocks.shape, blocks.numel(), blocks.seq_lengths, blocks.BLOCK_SIZE) == ((1, 1, 7, 5), 35, (7, 5), (2, 2))
    assert str(blocks) == "BlockMask(shape=(1, 1, 7, 5), sparsity=-2.86%, \n(0, 0)\n██    \n████  \n██████\n██████\n)"
    assert blocks.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]]]
    assert causal().to_string(2) == "(0, 0)\n░░  \n██░░\n"
    assert repr(causal()).splitlines()[1] == "    kv_num_blocks=torch.Size([1, 1, 4]),"
    assert repr(causal()).endswith("    shape=(1, 1, 8, 8),\n    sparsity=37.50%,\n    mask_mod=<lambda>\n)")
    whole = blocks.as_tuple()
    assert len(whole) == 17 and whole[:2] == (7, 5) and whole[-3:-1] == (2, 2) and len(blocks.as_tuple(False)) == 15
    together = causal(separate_full_blocks=False)
    assert together.full_kv_num_blocks is None and together.kv_num_blocks.tolist() == [[[1, 2, 3, 4]]]
    assert blocks.to("meta").kv_indices.device.type == "meta"


def test_orders_of_writing():
    blocks = causal(compute_dq_write_order=True)
    assert blocks.dq_write_order.tolist() == [[[[0, 1, 2, 3], [0, -1, 1, 2], [0, -1, -1, 1], [0, -1, -1, -1]]]]
    assert blocks.dq_write_order_full.tolist() == [[[[1, 2, 3, 0], [1, 2, -1, 0], [1, -1, -1, 0], [-1, -1, -1, 0]]]]
    blocks = causal(compute_dq_write_order=True, dq_kv_order=False)
    assert blocks.dq_write_order.tolist() == [[[[0, 0, 0, 0], [1, 1, 1, 1], [2, 1, 2, 2], [3, 1, 2, 3]]]]
    with pytest.raises(ValueError, match="dq_kv_order must be a bool when using create_block_mask"):
        causal(dq_kv_order=3)


def test_parts_of_masks():
    blocks = create_block_mask(lambda b, h, i, j: i >= j + h, 2, 3, 8, 8, device="cpu", BLOCK_SIZE=2)
    for part, shape in (
        (blocks[0], (1, 3, 4)),
        (blocks[-1, 1:], (1, 2, 4)),
        (blocks[:, 2, torch.tensor([1])], (2, 1, 1)),
    ):
        assert part.kv_num_blocks.shape == shape and part.seq_lengths == (8, 8)
    assert blocks[1, 2].to_dense().tolist() == blocks.to_dense()[1:, 2:].tolist()
    assert blocks[5].kv_num_blocks.shape == (0, 3, 4)
    query = torch.ones(1, 3, 8, 4)
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        flex_attention(query, query, query, block_mask=blocks[0])
    part = blocks[0]
    part.mask_mod = blocks.mask_mod
    assert torch.equal(flex_attention(query, query, query, block_mask=part)[0, 0, :, 0], torch.ones(8))
    small = causal(7, 5)._adjust(4, 3)
    assert small.shape == (1, 1, 4, 3) and small.kv_indices.tolist() == [[[[0, 1], [1, 0]]]]
    assert small.full_kv_num_blocks.tolist() == [[[0, 1]]]


def test_the_function_alone_says_what_is_seen():
    query = torch.tensor(inputs(queries=8, keys=8)[0])
    one = BlockMask.from_kv_blocks(
        torch.ones(1, 1, 2, dtype=torch.int32), torch.zeros(1, 1, 2, 2, dtype=torch.int32), BLOCK_SIZE=4
    )
    assert one.shape == (1, 1, 8, 8) and one.to_dense().tolist() == [[[[1, 0], [1, 0]]]]
    assert torch.equal(flex_attention(query, query, query, block_mask=one), flex_attention(query, query, query))


Q = torch.ones(2, 2, 8, 4)


@pytest.mark.parametrize(
    "args, options, kind, text",
    [
        (
            (Q.clone().requires_grad_(), Q, Q),
            {},
            NotImplementedError,
            "FlexAttention does not support backward on CPU.",
        ),
        ((Q[0], Q[0], Q[0]), {}, NotImplementedError, "NYI: query, key, and value must be 4D tensors"),
        ((Q, Q[..., :3], Q), {}, ValueError, "the same embedding dimension but got E=4 and E=3."),
        ((Q, Q[:, :1], Q[:, :1]), {}, ValueError, r"got Hq=2 and Hkv=1. Try setting enable_gqa=True for GQA."),
        ((Q[:, :1], Q, Q), {"enable_gqa": True}, ValueError, "multiple of kv heads for GQA but got Hq=1 and Hkv=2."),
        ((Q, Q[:1], Q[:1]), {}, ValueError, "got block_mask=None, Bq=2, and Bkv=1."),
        ((Q, Q[:1], Q[:1]), {"block_mask": causal()}, ValueError, "got Bq=2, Bkv=1, B_block_mask=1."),
        ((Q, Q, Q), {"block_mask": causal(4)}, ValueError, "a smaller length than you're using it for"),
        (
            (Q, Q, Q),
            {"block_mask": causal(16)},
            ValueError,
            "either 1. create a new block mask with the correct length",
        ),
        (
            (Q, Q, Q),
            {"block_mask": causal().to("meta")},
            RuntimeError,
            "to be on the same device but got cpu and meta.",
        ),
        ((Q, Q[:, :, :0], Q[:, :, :0]), {}, IndexError, r"max\(\): Expected reduction dim 3 to have non-zero size."),
        ((Q.to("meta"),) * 3, {}, ValueError, "Found input tensors on meta device."),
        ((Q, Q.to("meta"), Q), {}, ValueError, "but got query.device: cpu, key.device: meta, and value.device: cpu"),
        ((Q, Q, Q), {"return_aux": AuxRequest(max_scores=True)}, NotImplementedError, "not supported on CPU/MPS."),
        ((Q, Q, Q), {"kernel_options": {"BACKEND": "X"}}, ValueError, "Invalid BACKEND value 'X'. Must be one of"),
        ((Q, Q, Q), {"return_lse": True, "return_aux": AuxRequest()}, ValueError, "both return_lse and return_aux"),
    ],
)
def test_refusals(args, options, kind, text):
    with pytest.raises(kind, match=text):
        flex_attention(*args, **options)


def test_functions_of_every_kind():
    class Causal:
        def __call__(self, b, h, i, j):
            return i >= j

        def method(self, b, h, i, j):
            return i >= j

    def window(b, h, i, j, width=2):
        return i - j < width

    def kinds(function):
        return create_block_mask(function, None, None, 8, 8, device="cpu", BLOCK_SIZE=4).kv_num_blocks.tolist()

    assert kinds(Causal()) == [[[1, 1]]] and kinds(window) == [[[1, 2]]]
    assert kinds(functools.partial(window, width=8)) == [[[0, 0]]]
    with pytest.raises(AssertionError, match="requires a mask_mod function"):  # `self` is counted, as PyTorch does
        kinds(Causal().method)
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        flex_attention(Q, Q, Q, lambda s, b, h, i, j: s + torch.rand(()))


def test_refusals_of_masks():
    with pytest.raises(AssertionError, match="mask.dtype must be torch.bool, got torch.float32"):
        create_block_mask(lambda b, h, i, j: (i >= j) * 1.0, 1, 1, 8, 8, device="cpu")
    with pytest.raises(AssertionError, match="create-block_mask requires a mask_mod function! Got <function"):
        create_block_mask(lambda s, b, h, i, j: s, 1, 1, 8, 8, device="cpu")
    with pytest.raises(AssertionError, match="Expected 4 or 5 positional args, got 2"):
        create_block_mask(lambda i, j: i >= j, 1, 1, 8, 8, device="cpu")
    with pytest.raises(RuntimeError, match="BlockMask must have at least 2 dimensions"):
        BlockMask.from_kv_blocks(torch.ones(1), torch.ones(1))
    with pytest.raises(AssertionError, match="must be both provided or omitted"):
        BlockMask.from_kv_blocks(torch.ones(1), torch.ones(1, 1), torch.ones(1))
    with pytest.warns(DeprecationWarning, match="_compile flag on create_block_mask"):
        assert causal(_compile=True).shape == (1, 1, 8, 8)


def test_further_results():
    flex._WARNINGS_SHOWN.clear()
    with pytest.warns(FutureWarning, match="return_lse is deprecated and will be removed in v2.10."):
        out, lse = flex_attention(Q, Q, Q, return_lse=True)
    torch.testing.assert_close(lse, torch.full((2, 2, 8), 2 + math.log(8)))
    with warnings.catch_warnings():  # once
        warnings.simplefilter("error")
        flex_attention(Q, Q, Q, return_lse=True)
    assert flex_attention(Q, Q, Q, return_aux=AuxRequest())[1] == AuxOutput(None, None)
