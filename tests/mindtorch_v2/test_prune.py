"""`nn.utils.prune`, against values recorded from PyTorch."""

from __future__ import annotations

import copy

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.utils import prune

T = torch.tensor


def linear(*rows: list[float]) -> nn.Linear:
    made = nn.Linear(len(rows[0]), len(rows), bias=False)
    made.weight.data = T(list(rows))
    return made


def test_a_pruned_parameter_is_the_original_times_a_mask():
    m = linear([3.0, -1.0], [2.0, -4.0])
    weight = m.weight
    assert prune.l1_unstructured(m, "weight", 1) is m
    assert m.weight_orig is weight
    assert (sorted(m._parameters), sorted(m._buffers)) == (["bias", "weight_orig"], ["weight_mask"])
    assert m.weight.tolist() == [[3, 0], [2, -4]]
    assert prune.is_pruned(nn.Sequential(m))
    m(torch.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[1, 0], [1, 1]]
    prune.remove(m, "weight")
    assert m.weight is weight
    assert weight.tolist() == [[3, 0], [2, -4]]
    assert not prune.is_pruned(m)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        prune.remove(m, "weight")


def test_methods_add_up():
    m = linear([3.0, -1.0], [2.0, -4.0])
    prune.l1_unstructured(m, "weight", 1)
    prune.ln_structured(m, "weight", amount=1, n=2, dim=0)
    (hook,) = m._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer)
    assert [type(method) for method in hook] == [prune.L1Unstructured, prune.LnStructured]
    assert m.weight_mask.tolist() == [[0, 0], [1, 1]]
    prune.custom_from_mask(m, "weight", T([[1.0, 1.0], [0.0, 1.0]]))
    assert m.weight.tolist() == [[0, 0], [0, -4]]
    other = prune.L1Unstructured(1)
    other._tensor_name = "bias"
    with pytest.raises(ValueError, match="acting on the parameter named 'weight'"):
        hook.add_pruning_method(other)
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        hook.add_pruning_method("x")


def test_random_masks_are_pytorchs():
    torch.manual_seed(0)
    ones = torch.ones(3, 2)
    assert prune.RandomStructured(1, 0).compute_mask(ones, ones).tolist() == [[1, 1], [1, 1], [0, 0]]
    assert prune.RandomUnstructured(2).compute_mask(torch.ones(6), torch.ones(6)).tolist() == [1, 1, 0, 1, 0, 1]


def test_parameters_are_pruned_together():
    a, b = linear([3.0, -1.0]), linear([0.5, -4.0])
    prune.global_unstructured([(a, "weight"), (b, "weight")], prune.L1Unstructured, amount=0.5)
    assert (a.weight.tolist(), b.weight.tolist()) == ([[3, 0]], [[0, -4]])
    with pytest.raises(TypeError, match='Only "unstructured" PRUNING_TYPE supported'):
        prune.global_unstructured([(a, "weight")], prune.LnStructured, amount=1, n=2)


def test_what_fails_leaves_the_module_as_it_was():
    m = linear([3.0, -1.0])
    with pytest.raises(ValueError, match="amount=5 should be smaller than the number of parameters to prune=2"):
        prune.l1_unstructured(m, "weight", 5)
    assert sorted(m._parameters) == ["bias", "weight"]
    assert not m._buffers
    for amount, error in ((-1, ValueError), (1.5, ValueError), ("a", TypeError)):
        with pytest.raises(error):
            prune.L1Unstructured(amount)


def test_scores_and_tensors():
    assert prune.L1Unstructured(1).prune(T([3.0, -1, 2]), importance_scores=T([1.0, 2, 0])).tolist() == [3, -1, 0]
    assert prune.LnStructured(1, 2, 0).prune(T([[0.0, 1], [2, 3]])).tolist() == [[0, 0], [2, 3]]
    m = prune.identity(linear([1.0]), "weight")
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(m)
