"""Which way attention takes, causal biases, and what encoders say of nested tensors. As in PyTorch."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel
from mindtorch_v2.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left
from mindtorch_v2.nn.functional import scaled_dot_product_attention as attention


def test_the_choice():
    q = torch.ones(1, 2, 3, 8)
    flash, math = SDPBackend.FLASH_ATTENTION.value, SDPBackend.MATH.value
    choose = torch._fused_sdp_choice
    assert choose(q, q, q) == choose(q.half(), q.half(), q.half()) == choose(q, q, q, is_causal=True) == flash
    assert choose(q, q[:, :1], q[:, :1], enable_gqa=True) == flash
    assert choose(q, q, q, torch.ones(3, 3, dtype=torch.bool)) == flash
    for args in (
        (q[0], q[0], q[0]),
        (q, q.double(), q),
        (q, q, q, None, 0.3),
        (q, q, q, torch.ones(3, 3, requires_grad=True)),
        (q, q.mT.contiguous().mT, q),
    ):
        assert choose(*args) == math
    with sdpa_kernel(SDPBackend.MATH):
        assert choose(q, q, q) == math and _cur_sdpa_kernel_backends() == [SDPBackend.MATH]
        assert attention(q, q, q).tolist() == q.tolist()
    with (
        sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION]),
        pytest.raises(RuntimeError, match="No viable backend for scaled_dot"),
    ):
        attention(q, q, q)
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a list .*, got int"):
        sdpa_kernel(1).__enter__()
    assert not isinstance(SDPBackend.MATH, int) and int(SDPBackend.MATH) == 0
    assert repr(SDPBackend.MATH) == "<SDPBackend.MATH: 0>" and str(SDPBackend.MATH) == "SDPBackend.MATH"


def test_causal_biases():
    torch.manual_seed(0)
    q, k = torch.rand(1, 2, 2, 4), torch.rand(1, 2, 3, 4)
    upper, lower = causal_upper_left(2, 3), causal_lower_right(2, 3)
    assert upper._materialize().tolist() == [[True, False, False], [True, True, False]]
    assert lower._materialize().tolist() == [[True, True, False], [True, True, True]]
    assert attention(q, k, k, attn_mask=upper).tolist() == attention(q, k, k, is_causal=True).tolist()
    wanted = attention(q, k, k, attn_mask=lower._materialize())
    assert attention(q, k, k, attn_mask=lower).tolist() == wanted.tolist()
    assert repr(upper) == repr(upper._materialize()) and upper.variant is CausalVariant.UPPER_LEFT
    with pytest.raises(ValueError, match="^CausalBias should not be used with causal=True$"):
        attention(q, k, k, attn_mask=upper, is_causal=True)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant, got int"):
        CausalBias(1, 2, 3)
    with pytest.warns(
        UserWarning, match="Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv"
    ):
        causal_lower_right(3, 2)


def test_an_encoder_says_why_it_has_no_nested_tensors():
    def layer(**options):
        return torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, **options)

    for made, words in (
        (layer(bias=False), "encoder_layer.self_attn was passed bias=False"),
        (layer(norm_first=True), "encoder_layer.norm_first was True"),
        (layer(activation=torch.tanh), "encoder_layer.activation_relu_or_gelu was not True"),
        (torch.nn.TransformerEncoderLayer(4, 2, 8), "encoder_layer.self_attn.batch_first was not True"),
        (torch.nn.TransformerEncoderLayer(3, 1, 8, batch_first=True), "encoder_layer.self_attn.num_heads is odd"),
    ):
        with pytest.warns(UserWarning, match=f"self.use_nested_tensor is False because {words}"):
            torch.nn.TransformerEncoder(made, 1)
    torch.nn.TransformerEncoder(layer(), 1)
