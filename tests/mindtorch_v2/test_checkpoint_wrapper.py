"""Wrapped modules compute what they compute without a wrapper, by the same names."""

from __future__ import annotations

from functools import partial

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    OffloadWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from mindtorch_v2.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2)))


def gradients(module):
    torch.manual_seed(1)
    x = torch.randn(3, 4, requires_grad=True)
    module(x).square().sum().backward()
    return [x.grad, *(p.grad for p in module.parameters())]


@pytest.mark.parametrize(
    "wrapper",
    [checkpoint_wrapper, offload_wrapper, partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.REENTRANT)],
)
def test_gradients_and_names(wrapper):
    plain, wrapped = model(), model()
    apply_activation_checkpointing(wrapped, wrapper, check_fn=lambda m: isinstance(m, (nn.Linear, nn.Sequential)))
    assert isinstance(wrapped[1], (CheckpointWrapper, OffloadWrapper)) and type(wrapped[1][2]) is type(wrapped[1])
    assert wrapped[1][0].in_features == 4
    assert list(wrapped.state_dict()) == list(plain.state_dict())
    assert [name for name, _ in wrapped[1][0].named_parameters()] == ["weight", "bias"]
    for ours, theirs in zip(gradients(wrapped), gradients(plain), strict=True):
        assert torch.equal(ours, theirs)
    wrapped.load_state_dict(plain.state_dict())
    plain.load_state_dict(wrapped.state_dict())


def test_arguments_by_name_with_reentrant_checkpoints():
    class Product(nn.Module):
        def forward(self, x, y=None, factor=2.0):
            return x * y * factor

    module = checkpoint_wrapper(Product(), checkpoint_impl=CheckpointImpl.REENTRANT)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    module(x, y=x * 2, factor=3.0).sum().backward()
    assert x.grad.tolist() == [12.0, 24.0]


def test_policies():
    chosen = model()
    apply_activation_checkpointing(chosen, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    assert isinstance(chosen[0], CheckpointWrapper) and isinstance(chosen[1], nn.Sequential)
    chosen = model()
    policy = CustomPolicy(lambda m: {"preserve_rng_state": False} if isinstance(m, nn.Dropout) else False)
    apply_activation_checkpointing(chosen, auto_wrap_policy=policy)
    assert chosen[1][1].checkpoint_fn.keywords == {"use_reentrant": False, "preserve_rng_state": False}


def test_a_module_in_two_places_is_wrapped_in_the_first():
    tied = nn.ModuleDict({"a": nn.Linear(2, 2)})
    tied["b"] = tied["a"]
    apply_activation_checkpointing(tied)
    assert isinstance(tied["a"], CheckpointWrapper) and isinstance(tied["b"], nn.Linear)
