"""Modules and initializers against PyTorch's, recorded by tests/record_nn.py."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import nn_cases
import numpy as np
import pytest

import mindtorch_v2 as torch

RECORD = json.loads((Path(__file__).parent / "data" / "nn.json").read_text())


def same(tensor, recorded, what, rtol=1e-4, atol=2e-5):
    if recorded is None:
        assert tensor is None, what
        return
    assert list(tensor.shape) == recorded["shape"], what
    assert str(tensor.dtype) == "torch." + recorded["dtype"], what
    values = np.array(tensor.detach().reshape(-1).tolist())
    np.testing.assert_allclose(values, np.array(recorded["values"]), rtol=rtol, atol=atol, err_msg=what)


@pytest.mark.parametrize(
    ("case", "recorded"),
    list(zip(nn_cases.MODULES, RECORD["modules"], strict=True)),
    ids=[f"{module} of {inputs}" for module, inputs in nn_cases.MODULES],
)
def test_module(case, recorded):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = nn_cases.run_module(torch, *case)
    assert found["repr"] == recorded["repr"]
    assert list(found["state"]) == list(recorded["state"])
    for name, tensor in found["state"].items():
        same(tensor, recorded["state"][name], f"initial {name}")
    for position, (tensor, entry) in enumerate(zip(found["outputs"], recorded["outputs"], strict=True)):
        same(tensor, entry, f"output {position}")
    for position, (tensor, entry) in enumerate(zip(found["input_grads"], recorded["input_grads"], strict=True)):
        same(tensor, entry, f"gradient of input {position}", rtol=1e-3, atol=1e-4)
    assert list(found["grads"]) == list(recorded["grads"])
    for name, tensor in found["grads"].items():
        same(tensor, recorded["grads"][name], f"gradient of {name}", rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("case", "recorded"),
    [pytest.param(case, recorded, id=case[0]) for case, recorded in zip(nn_cases.INITS, RECORD["inits"], strict=True)],
)
def test_init(case, recorded):
    same(nn_cases.run_init(torch, math, *case), recorded, case[0], rtol=2e-6, atol=1e-7)


def test_every_public_module_exists():
    missing = [name for name in torch.nn.modules.__all__ if not hasattr(torch.nn, name)]
    assert not missing


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        ("nn.Dropout(2.0)", ValueError, "dropout probability has to be between 0 and 1, but got 2.0"),
        ("nn.GroupNorm(2, 3)", ValueError, "num_channels (3) must be divisible by num_groups (2)"),
        ("nn.Embedding(3, 2, padding_idx=5)", AssertionError, "Padding_idx must be within num_embeddings"),
        ("nn.Conv1d(3, 2, 2, groups=2)", ValueError, "in_channels must be divisible by groups"),
        (
            "nn.ConvTranspose1d(2, 2, 2, padding_mode='reflect')",
            ValueError,
            'Only "zeros" padding mode is supported for ConvTranspose1d',
        ),
        ("nn.MultiheadAttention(3, 2)", AssertionError, "embed_dim must be divisible by num_heads"),
        ("nn.BatchNorm1d(2)(t(2, 2, 2, 2))", ValueError, "expected 2D or 3D input (got 4D input)"),
        (
            "nn.BatchNorm1d(2)(t(1, 2))",
            ValueError,
            "Expected more than 1 value per channel when training, got input size torch.Size([1, 2])",
        ),
        ("nn.LSTM(2, 0)", ValueError, "hidden_size must be greater than zero"),
        ("nn.LSTM(2, 3)(t(4, 4, 4, 4))", ValueError, "LSTM: Expected input to be 2D or 3D, got 4D instead"),
        (
            "nn.GRU(2, 3)(t(4, 1, 3))",
            RuntimeError,
            "input.size(-1) must be equal to input_size. Expected 2, got 3",
        ),
        ("nn.Unflatten(1, 3)", TypeError, "unflattened_size must be a tuple of ints, but found type int"),
        ("nn.MSELoss(reduction='x')(t(1), t(1))", ValueError, "x is not a valid value for reduction"),
        (
            "nn.BCEWithLogitsLoss()(t(2), t(3))",
            ValueError,
            "Target size (torch.Size([3])) must be the same as input size (torch.Size([2]))",
        ),
        ("F.interpolate(t(1, 1, 2))", ValueError, "either size or scale_factor should be defined"),
        (
            "F.interpolate(t(1, 1, 2), 4, mode='bilinear')",
            NotImplementedError,
            "Got 3D input, but bilinear mode needs 4D input",
        ),
        ("F.glu(torch.tensor(1.0))", RuntimeError, "glu does not support scalars because halving size must be even"),
        ("init.eye_(t(3))", ValueError, "Only tensors with 2 dimensions are supported"),
        (
            "init.xavier_uniform_(t(3))",
            ValueError,
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
        ),
        ("init.calculate_gain('x')", ValueError, "Unsupported nonlinearity x"),
        ("nn.Sequential()[0]", IndexError, "index 0 is out of range"),
        (
            "nn.ModuleList().extend(3)",
            TypeError,
            "ModuleList.extend should be called with an iterable, but got int",
        ),
        ("nn.ParameterList()(1)", RuntimeError, "ParameterList should not be called."),
    ],
)
def test_messages(call, kind, expected):
    scope = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "init": torch.nn.init, "t": torch.ones}
    with pytest.raises(kind) as caught:
        eval(call, scope)
    assert str(caught.value) == expected


def test_warnings():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        torch.nn.functional.softmax(torch.ones(2, 2))
    with pytest.warns(FutureWarning, match="`nn.init.normal` is now deprecated in favor of `nn.init.normal_`."):
        torch.nn.init.normal(torch.empty(2))
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert torch.nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="Using a target size"):
        torch.nn.functional.mse_loss(torch.ones(2, 1), torch.ones(2))


def test_modules_look_initializers_up_when_they_are_called(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.nn.init, "kaiming_uniform_", lambda tensor, **options: calls.append(tuple(tensor.shape)))
    torch.nn.Linear(3, 2)
    torch.nn.Conv1d(1, 2, 3)
    assert calls == [(2, 3), (2, 1, 3)]


# Containers


def nn_list(*widths):
    return torch.nn.ModuleList(torch.nn.Linear(width, width) for width in widths)


def test_module_list():
    layers = nn_list(1, 2, 3)
    assert [layer.in_features for layer in layers] == [1, 2, 3]
    assert layers[-1].in_features == 3 and len(layers[1:]) == 2 and isinstance(layers[1:], torch.nn.ModuleList)
    layers.insert(1, torch.nn.ReLU())
    assert list(layers._modules) == ["0", "1", "2", "3"] and isinstance(layers[1], torch.nn.ReLU)
    del layers[0]
    assert list(layers._modules) == ["0", "1", "2"] and layers[1].in_features == 2
    assert layers.pop(-1).in_features == 3 and len(layers) == 2
    layers += [torch.nn.Tanh()]
    assert len(layers + [torch.nn.Tanh()]) == 4 and len(layers) == 3
    assert repr(torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.ReLU(), torch.nn.Tanh()])) == (
        "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    )


def test_sequential():
    stack = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())
    named = torch.nn.Sequential(__import__("collections").OrderedDict(a=torch.nn.ReLU(), b=torch.nn.Tanh()))
    assert (
        isinstance(named.a, torch.nn.ReLU) and isinstance(named[1], torch.nn.Tanh) and list(named[:1]._modules) == ["a"]
    )
    assert len(stack + named) == 4 and len(stack * 2) == 4 and len(2 * stack) == 4
    stack.append(torch.nn.GELU()).extend([torch.nn.ELU()])
    assert [type(module).__name__ for module in stack] == ["ReLU", "Tanh", "GELU", "ELU"]
    stack.insert(0, torch.nn.SiLU())
    del stack[1]
    assert [type(module).__name__ for module in stack] == ["SiLU", "Tanh", "GELU", "ELU"]
    stack[0] = torch.nn.Mish()
    assert isinstance(stack[0], torch.nn.Mish)


def test_module_dict():
    layers = torch.nn.ModuleDict({"a": torch.nn.ReLU()})
    layers.update([("b", torch.nn.Tanh())])
    assert list(layers) == ["a", "b"] and "a" in layers and len(layers) == 2
    assert isinstance(layers.pop("a"), torch.nn.ReLU) and list(layers.keys()) == ["b"]
    layers["b"] = torch.nn.GELU()
    assert isinstance(layers.b, torch.nn.GELU)


def test_parameter_containers():
    values = torch.nn.ParameterList([torch.ones(2), 3])
    assert isinstance(values[0], torch.nn.Parameter) and values[1] == 3
    values.append(torch.zeros(1))
    assert [name for name, _ in values.named_parameters()] == ["0", "2"]
    named = torch.nn.ParameterDict({"b": torch.ones(1), "a": torch.ones(2)})
    assert list(named) == ["a", "b"] and isinstance(named["a"], torch.nn.Parameter)
    named["c"] = 4
    assert named.pop("c") == 4 and named.get("c") is None and named.setdefault("d", 5) == 5
    assert list((named | {"e": 1}).keys()) == ["a", "b", "d", "e"]
    assert repr(values) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2]\n"
        "    (1): Object of type: int\n"
        "    (2): Parameter containing: [torch.float32 of size 1]\n"
        ")"
    )


def test_pretrained_embedding():
    table = torch.arange(6.0).view(3, 2)
    layer = torch.nn.Embedding.from_pretrained(table)
    assert layer(torch.tensor([2, 0])).tolist() == [[4.0, 5.0], [0.0, 1.0]] and not layer.weight.requires_grad


def test_lazy_linear():
    layer = torch.nn.LazyLinear(3)
    assert layer.has_uninitialized_params() and repr(layer.weight) == "<UninitializedParameter>"
    assert layer(torch.ones(2, 5)).shape == (2, 3)
    assert type(layer) is torch.nn.Linear and layer.weight.shape == (3, 5) and layer.in_features == 5
    assert type(layer.weight) is torch.nn.Parameter and layer.weight.requires_grad


_SHORT = [[False, False, True], [False, False, False]]


def _encoder(**options):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, **options)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=not options).eval()


@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"}])
def test_encoders_without_gradients_give_what_they_give_with_them(options):
    encoder, x = _encoder(**options), torch.randn(2, 3, 4)
    mask = torch.ones(3, 3, dtype=torch.bool).triu(1)
    for given in ({}, {"mask": mask, "is_causal": True}):
        whole = encoder(x, **given)
        with torch.no_grad():
            assert torch.allclose(encoder(x, **given), whole, atol=1e-6)


def test_encoders_without_gradients_leave_padding_out():
    """As in PyTorch zeros stand for padding then; layers and attention by themselves give NaN where all keys are padding."""
    encoder, x, padding = _encoder(), torch.randn(2, 3, 4), torch.tensor(_SHORT)
    whole = encoder(x, src_key_padding_mask=padding)
    with torch.no_grad():
        rows = encoder(x, src_key_padding_mask=padding)
        assert rows[0, 2].tolist() == [0.0] * 4 and torch.allclose(rows[~padding], whole[~padding], atol=1e-6)
        gap = torch.tensor([[True, False, False], [False] * 3])
        assert not (encoder(x, src_key_padding_mask=gap)[0, 0] == 0).any()  # what does not stand at the end is seen
        none = torch.tensor([[True] * 3, [False] * 3])
        layer = encoder.layers[0]
        assert layer(x, src_key_padding_mask=none).isnan().any(-1).any(-1).tolist() == [True, False]
        out, weights = layer.self_attn(x, x, x, key_padding_mask=none)
        assert out[0].isnan().all() and weights[0].isnan().all() and not out[1].isnan().any()


def test_attention_of_nested_tensors_runs_by_one_operator_alone():
    encoder = _encoder()
    attention, parts = encoder.layers[0].self_attn, [torch.randn(3, 4), torch.randn(2, 4)]
    n = torch.nested.nested_tensor(parts)
    with torch.no_grad():
        out, weights = attention(n, n, n)
        assert torch.allclose(out[1], attention(parts[1][None], parts[1][None], parts[1][None])[0][0], atol=1e-6)
        assert weights.shape == (2, 3, 3) and weights[1, 2].tolist() == [0.0] * 3 and encoder(n)[1].shape == (2, 4)
    for why in ("grad is enabled and at least one of query", "training is enabled"):
        with pytest.raises(AssertionError, match=f"outside of its fast path. The fast path was not hit because {why}"):
            attention(n, n, n)
        attention.train()
    assert not torch.overrides.has_torch_function((n,))
