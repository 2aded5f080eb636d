"""Helpers of nn: clipping, vectors, packed sequences, parametrizations, stateless calls, attention's choice of kernel."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.attention import SDPBackend, flex_attention, sdpa_kernel
from mindtorch_v2.nn.utils import parametrizations, parametrize, rnn


def message(kind, call):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def with_grads(*grads):
    params = []
    for grad in grads:
        param = nn.Parameter(torch.zeros(len(grad)))
        param.grad = torch.tensor(grad)
        params.append(param)
    return params


# Gradients


def test_clip_grad_norm():
    params = [*with_grads([3.0], [0.0, 4.0]), nn.Parameter(torch.zeros(1))]
    total = nn.utils.clip_grad_norm_(params, 2.5)
    assert total.item() == 5
    np.testing.assert_allclose(params[0].grad.tolist(), [1.5], rtol=1e-5)
    np.testing.assert_allclose(params[1].grad.tolist(), [0.0, 2.0], rtol=1e-5)
    assert nn.utils.clip_grad_norm_(params[0], 100.0).item() == pytest.approx(1.5, rel=1e-5)
    np.testing.assert_allclose(params[0].grad.tolist(), [1.5], rtol=1e-5)


def test_clip_grad_norm_of_other_orders():
    params = with_grads([3.0], [0.0, -4.0])
    assert nn.utils.clip_grad_norm_(params, 1.0, norm_type=math.inf).item() == 4
    assert nn.utils.get_total_norm([torch.tensor([1.0, 2.0]), torch.tensor([3.0])], 1).item() == 6
    assert nn.utils.clip_grad_norm_([], 1.0).item() == 0


def test_clip_grad_norm_of_infinite_gradients():
    params = with_grads([math.inf])
    assert message(RuntimeError, lambda: nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)) == (
        "The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
        "this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
    )


def test_clip_grad_norm_warns_of_an_exhausted_generator():
    with pytest.warns(UserWarning, match="`parameters` is an empty generator, no gradient clipping will occur."):
        nn.utils.clip_grad_norm_((param for param in []), 1.0)


def test_clip_grad_value():
    params = with_grads([3.0, -0.5], [-4.0])
    nn.utils.clip_grad_value_(params, 1)
    assert [param.grad.tolist() for param in params] == [[1.0, -0.5], [-1.0]]


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 1)
    nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
    assert layer.weight.tolist() == [[1.0, 2.0]] and layer.bias.tolist() == [3.0]
    assert nn.utils.parameters_to_vector(layer.parameters()).tolist() == [1.0, 2.0, 3.0]


# Sequences


def test_padding():
    sequences = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    assert rnn.pad_sequence(sequences).tolist() == [[1, 4], [2, 0], [3, 0]]
    assert rnn.pad_sequence(sequences, batch_first=True, padding_value=9).tolist() == [[1, 2, 3], [4, 9, 9]]
    assert rnn.pad_sequence(sequences, True, 0, "left").tolist() == [[1, 2, 3], [0, 0, 4]]
    padded = rnn.pad_sequence(sequences, batch_first=True)
    restored = rnn.unpad_sequence(padded, torch.tensor([3, 1]), batch_first=True)
    assert [sequence.tolist() for sequence in restored] == [[1, 2, 3], [4]]


def test_packing():
    padded = torch.tensor([[1, 2, 3], [4, 0, 0], [5, 6, 0]])
    packed = rnn.pack_padded_sequence(padded, [3, 1, 2], batch_first=True, enforce_sorted=False)
    assert packed.data.tolist() == [1, 5, 4, 2, 6, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [0, 2, 1] and packed.unsorted_indices.tolist() == [0, 2, 1]
    restored, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    assert restored.tolist() == padded.tolist() and lengths.tolist() == [3, 1, 2]
    longer, _ = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=4)
    assert longer.tolist() == [[1, 2, 3, -1], [4, -1, -1, -1], [5, 6, -1, -1]]
    assert [each.tolist() for each in rnn.unpack_sequence(packed)] == [[1, 2, 3], [4], [5, 6]]
    assert packed.to(torch.float64).data.dtype == torch.float64 and packed.to("cpu") is packed


def test_packing_needs_sorted_lengths():
    assert message(RuntimeError, lambda: rnn.pack_padded_sequence(torch.ones(3, 2), [1, 3])).startswith(
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True."
    )
    assert message(RuntimeError, lambda: rnn.pack_padded_sequence(torch.ones(3, 2), [1, 0])) == (
        "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
    )


def test_gradients_pass_through_packing():
    data = torch.ones(3, 2, 1, requires_grad=True)
    packed = rnn.pack_padded_sequence(data, [3, 2])
    (rnn.pad_packed_sequence(packed)[0] * 2).sum().backward()
    assert data.grad.flatten().tolist() == [2.0, 2.0, 2.0, 2.0, 2.0, 0.0]


# Parametrizations


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def test_parametrization():
    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert torch.equal(layer.weight, before)
    assert torch.equal(layer.parametrizations.weight.original, before / 2)
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert list(layer.state_dict()) == ["parametrizations.weight.original"]
    layer.weight = torch.ones(1, 2)
    assert layer.parametrizations.weight.original.tolist() == [[0.5, 0.5]]
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist() == [[2.0, 2.0]]
    twin = copy.deepcopy(layer)
    assert twin.weight.tolist() == [[1.0, 1.0]]
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.tolist() == [[1.0, 1.0]]
    assert isinstance(layer.weight, nn.Parameter) and list(layer.state_dict()) == ["weight"]


def test_parametrizations_are_cached_on_request():
    class Counts(nn.Module):
        calls = 0

        def forward(self, x):
            Counts.calls += 1
            return x * 1

    layer = nn.Linear(1, 1)
    parametrize.register_parametrization(layer, "weight", Counts())
    Counts.calls = 0
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert Counts.calls == 1
    assert layer.weight is not layer.weight


def test_wrong_parametrizations():
    class Shrinks(nn.Module):
        def forward(self, x):
            return x[:1]

    layer = nn.Linear(2, 2)
    assert message(ValueError, lambda: parametrize.register_parametrization(layer, "weight", Shrinks())) == (
        "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled.\n"
        "unparametrized shape: torch.Size([2, 2])\n"
        "parametrized shape: torch.Size([1, 2])"
    )
    assert "does not have a parameter, a buffer, or a parametrized element with name 'x'" in message(
        ValueError, lambda: parametrize.register_parametrization(layer, "x", Doubled())
    )
    assert "does not have a parametrization on weight" in message(
        ValueError, lambda: parametrize.remove_parametrizations(layer, "weight")
    )


def test_weight_norm():
    layer = nn.Linear(2, 3)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    np.testing.assert_allclose(layer.weight.tolist(), before.tolist(), rtol=1e-6)
    assert sorted(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    assert layer.parametrizations.weight.original0.shape == (3, 1)


def test_weight_norm_reads_old_checkpoints():
    layer = parametrizations.weight_norm(nn.Linear(2, 3, bias=False))
    layer.load_state_dict({"weight_g": torch.full((3, 1), 5.0), "weight_v": torch.tensor([[3.0, 4.0]] * 3)})
    np.testing.assert_allclose(layer.weight.tolist(), [[3.0, 4.0]] * 3, rtol=1e-6)


def test_old_weight_norm():
    with pytest.warns(FutureWarning, match="`torch.nn.utils.weight_norm` is deprecated"):
        layer = nn.utils.weight_norm(nn.Linear(2, 3, bias=False))
    assert list(layer.state_dict()) == ["weight_g", "weight_v"]
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight_g.grad is not None
    nn.utils.remove_weight_norm(layer)
    assert list(layer.state_dict()) == ["weight"]
    assert message(ValueError, lambda: nn.utils.remove_weight_norm(layer)).startswith(
        "weight_norm of 'weight' not found"
    )


def test_skip_init():
    layer = nn.utils.skip_init(nn.Linear, 3, 2)
    assert layer.weight.shape == (2, 3) and layer.weight.device.type == "cpu"
    assert message(RuntimeError, lambda: nn.utils.skip_init(nn.ReLU)) == (
        "Module must support a 'device' arg to skip initialization"
    )


def test_fusion_with_batch_normalization():
    conv, norm = nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3)
    for _ in range(3):
        norm(conv(torch.randn(4, 2, 5)))
    data = torch.randn(2, 2, 5)
    fused = nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    np.testing.assert_allclose(fused(data).detach().numpy(), norm(conv(data)).detach().numpy(), rtol=1e-4, atol=1e-5)


# Stateless calls


def test_functional_call():
    layer = nn.Linear(2, 1)
    weight = torch.tensor([[1.0, 2.0]], requires_grad=True)
    call = torch.func.functional_call
    result = call(layer, {"weight": weight, "bias": torch.zeros(1)}, (torch.ones(1, 2),))
    assert result.tolist() == [[3.0]]
    result.sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0]] and layer.weight.grad is None
    assert isinstance(layer.weight, nn.Parameter)


def test_functional_call_reaches_tied_weights():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    net[1].weight = net[0].weight
    result = torch.func.functional_call(net, {"0.weight": torch.tensor([[3.0]])}, torch.ones(1, 1))
    assert result.item() == 9


# Attention


def test_sdpa_kernel():
    with sdpa_kernel(SDPBackend.MATH):
        pass
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        pass
    assert "Backend must be an instance of SDPBackend" in message(
        AssertionError, lambda: sdpa_kernel("math").__enter__()
    )
    assert str(SDPBackend.MATH) == "SDPBackend.MATH"


def test_flex_attention_can_be_imported():
    assert isinstance(flex_attention.BlockMask, type)
    assert flex_attention._DEFAULT_SPARSE_BLOCK_SIZE == 128
    assert flex_attention.AuxRequest().lse is False


def test_a_parametrized_module_is_copied_though_it_is_not_pickled():
    m = nn.utils.parametrizations.weight_norm(nn.Linear(2, 3))
    assert torch.equal(copy.deepcopy(m).weight, m.weight)
