"""Steps of optimizers as functions: against PyTorch's, recorded by tests/record_nn.py, and against the classes'."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import numpy as np
import optim_function_cases
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim
from mindtorch_v2.optim import _functional
from mindtorch_v2.optim._adafactor import adafactor
from mindtorch_v2.optim._muon import muon
from mindtorch_v2.optim.adagrad import adagrad
from mindtorch_v2.optim.adam import adam
from mindtorch_v2.optim.adamw import adamw
from mindtorch_v2.optim.asgd import asgd
from mindtorch_v2.optim.nadam import nadam
from mindtorch_v2.optim.rprop import rprop
from mindtorch_v2.optim.sgd import sgd

RECORD = json.loads((Path(__file__).parent / "data" / "nn.json").read_text())["functions"]
IDS = [f"{dtype}: {expression}" for dtype, expression in optim_function_cases.FUNCTIONS]
ADAM = {"amsgrad": False, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0, "eps": 1e-8, "maximize": False}
SGD = {"weight_decay": 0, "momentum": 0.9, "lr": 0.1, "dampening": 0, "nesterov": False, "maximize": False}
ADAGRAD = {"lr": 0.1, "weight_decay": 0, "lr_decay": 0, "eps": 1e-10, "maximize": False}


@pytest.mark.parametrize(("case", "recorded"), list(zip(optim_function_cases.FUNCTIONS, RECORD, strict=True)), ids=IDS)
def test_parameters_and_state_are_pytorchs(case, recorded):
    found = optim_function_cases.run_function(torch, *case)
    assert list(found) == list(recorded)
    # Muon computes in bfloat16.
    rtol = 2e-2 if case[1].startswith("muon") else 1e-5
    for name, tensors in found.items():
        for tensor, entry in zip(tensors, recorded[name], strict=True):
            assert list(tensor.shape) == entry["shape"]
            assert str(tensor.dtype) == f"torch.{entry['dtype']}"
            expected = np.array(entry["values"])
            np.testing.assert_allclose(np.array(tensor.reshape(-1).tolist()), expected, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("case", optim_function_cases.FUNCTIONS, ids=IDS)
def test_parameters_are_the_classes_to_the_bit(case):
    found, expected = (
        optim_function_cases.run_function(torch, *case),
        optim_function_cases.run_function(torch, *case, twin=True),
    )
    for tensor, twin in zip(found["p"], expected["p"], strict=True):
        assert torch.equal(tensor, twin)


def test_signatures():
    def names(function):
        given = inspect.signature(function).parameters.values()
        ordered = [one.name for one in given if one.kind is one.POSITIONAL_OR_KEYWORD]
        return " ".join(ordered), {one.name for one in given if one.kind is one.KEYWORD_ONLY}

    options = "foreach capturable differentiable fused grad_scale found_inf has_complex"
    lists = "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps"
    assert names(adamw) == (f"{lists} {options}", set(ADAM))
    assert names(adam) == (f"{lists} {options} decoupled_weight_decay", set(ADAM))
    ways = "has_sparse_grad foreach fused grad_scale found_inf"
    assert names(sgd) == (f"params d_p_list momentum_buffer_list {ways}", set(SGD))
    with pytest.raises(TypeError):
        sgd([], [], [], lr=0.1)  # the other options have no defaults


def test_functional_has_all_of_the_functions():
    for name in "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd".split():
        module = importlib.import_module(f"mindtorch_v2.optim.{name}")
        assert getattr(_functional, name) is getattr(module, name)
        assert name in module.__all__


def test_sparse_adam_counts_from_the_callers_steps():
    twin = nn.Parameter(torch.arange(6.0).reshape(3, 2))
    param, first, second = torch.arange(6.0).reshape(3, 2), torch.zeros(3, 2), torch.zeros(3, 2)
    optimizer = optim.SparseAdam([twin], lr=0.1)
    for step in (1, 2):
        grad = torch.sparse_coo_tensor([[0, 2]], [[1.0, -2.0], [0.5 * step, 3.0]], (3, 2))
        twin.grad = grad
        optimizer.step()
        options = {"eps": 1e-8, "beta1": 0.9, "beta2": 0.999, "lr": 0.1, "maximize": False}
        _functional.sparse_adam([param], [grad], [first], [second], [step], **options)
    assert torch.equal(param, twin)
    assert torch.equal(first, optimizer.state[twin]["exp_avg"])
    assert param[1].tolist() == [2.0, 3.0]
    assert param[0].tolist() == pytest.approx([-0.2, 1.2])


def test_buffers_come_into_their_list():
    param, grad, buffers = torch.ones(2), torch.tensor([1.0, 2.0]), [None]
    sgd([param], [grad], buffers, **SGD)
    assert buffers[0].tolist() == [1.0, 2.0]
    assert buffers[0] is not grad
    kept = buffers[0]
    sgd([param], [grad], buffers, **SGD)
    assert buffers[0] is kept
    np.testing.assert_allclose(kept.tolist(), [1.9, 3.8], rtol=1e-6)
    np.testing.assert_allclose(param.tolist(), [1 - 0.29, 1 - 0.58], rtol=1e-6)


def adam_lists(param):
    return [torch.zeros_like(param)], [torch.zeros_like(param)], [], [torch.tensor(0.0)]


@pytest.mark.parametrize("infinite", [0.0, 1.0])
def test_fused_steps_divide_gradients_by_their_scale_unless_some_are_infinite(infinite):
    scale = {"fused": True, "grad_scale": torch.tensor(4.0), "found_inf": torch.tensor(infinite)}
    param, grad = torch.ones(2), torch.full((2,), 3.0)
    lists = adam_lists(param)
    adam([param], [grad], *lists, **scale, **ADAM)
    skipped = infinite == 1
    assert grad.tolist() == [3.0, 3.0] if skipped else [0.75, 0.75]
    assert lists[3][0].item() == (0 if skipped else 1)
    np.testing.assert_allclose(lists[0][0].tolist(), [0.0, 0.0] if skipped else [0.075, 0.075], rtol=1e-6)
    np.testing.assert_allclose(param.tolist(), [1.0, 1.0] if skipped else [0.9, 0.9], rtol=1e-6)

    param, grad = torch.ones(2), torch.full((2,), 3.0)
    sgd([param], [grad], [None], **scale, **SGD)
    np.testing.assert_allclose(param.tolist(), [1.0, 1.0] if skipped else [0.925, 0.925], rtol=1e-6)

    param, grad, total, step = torch.ones(2), torch.full((2,), 3.0), torch.zeros(2), torch.tensor(0.0)
    adagrad([param], [grad], [total], [step], **scale, **ADAGRAD)
    assert total.tolist() == ([0.0, 0.0] if skipped else [0.5625, 0.5625])
    assert step.item() == (0 if skipped else 1)


def test_a_differentiable_step_is_recorded():
    start, rate = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(0.1, requires_grad=True)
    param = start.clone()
    grad = 2 * start
    sgd([param], [grad], [None], **{**SGD, "momentum": 0, "lr": rate})
    param.sum().backward()
    np.testing.assert_allclose(start.grad.tolist(), [0.8, 0.8], rtol=1e-6)
    assert rate.grad.item() == -6.0

    start = torch.tensor([1.0, 2.0], requires_grad=True)
    param = start.clone()
    lists = adam_lists(param)
    adam([param], [2 * start], *lists, differentiable=True, **ADAM)
    param.sum().backward()
    # The first step has the gradient's sign, whatever its size.
    np.testing.assert_allclose(start.grad.tolist(), [1.0, 1.0], atol=1e-5)


def test_parameters_that_need_gradients_are_not_changed_under_autograd():
    param = nn.Parameter(torch.ones(2))
    for call in (
        lambda: sgd([param], [torch.ones(2)], [None], **{**SGD, "momentum": 0}),
        lambda: sgd([param], [torch.ones(2)], [torch.ones(2)], **SGD),
        lambda: adam([param], [torch.ones(2)], *adam_lists(param.detach()), **ADAM),
    ):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
            call()
        assert param.tolist() == [1.0, 1.0]


ONE, GRAD = torch.ones(2), torch.ones(2)
NUMBER = "API has changed, `{}` argument must contain a list of singleton tensors"
NADAM = {"beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0, "momentum_decay": 0, "eps": 1e-8}
ASGD = {"lambd": 0.1, "lr": 0.1, "t0": 1, "alpha": 0.5, "weight_decay": 0}
RPROP = {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2}
ADAFACTOR = {"d": 1.0, "lr": 0.1, "beta2_decay": -0.8, "weight_decay": 0, "eps1": None, "eps2": 1e-3, "maximize": False}
MUON = {"lr": 0.1, "weight_decay": 0, "momentum": 0.9, "nesterov": True, "ns_coefficients": (3.4, -4.7, 2.0)}
MUON |= {"ns_steps": 5, "eps": 1e-7, "adjust_lr_fn": None}
DEVICES = "must be on supported devices: ['cuda', 'xpu', 'hpu', 'privateuseone', 'xla']."


def lists_of(count):
    return [[torch.zeros(2)] for _ in range(count)]


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (lambda: adam([ONE], [GRAD], *lists_of(2), [], [1], **ADAM), RuntimeError, NUMBER.format("state_steps")),
        (lambda: adamw([ONE], [GRAD], *lists_of(2), [], [1], **ADAM), RuntimeError, NUMBER.format("state_steps")),
        (lambda: adagrad([ONE], [GRAD], *lists_of(1), [1], **ADAGRAD), RuntimeError, NUMBER.format("state_steps")),
        (lambda: rprop([ONE], [GRAD], *lists_of(2), [1], **RPROP), RuntimeError, NUMBER.format("state_steps")),
        (
            lambda: nadam([ONE], [GRAD], *lists_of(2), [1.0], [torch.tensor(0.0)], **NADAM),
            RuntimeError,
            NUMBER.format("mu_products"),
        ),
        (
            lambda: adafactor([ONE], [GRAD], [None], [None], [None], [1], **ADAFACTOR),
            RuntimeError,
            "`state_steps` argument must contain a list of singleton tensors",
        ),
        (
            lambda: adafactor([ONE], [GRAD], [None], [None], [None], [torch.tensor(0.0)], **ADAFACTOR),
            AssertionError,
            "variance should be defined when grad is a vector",
        ),
        (
            lambda: adam([ONE], [GRAD], *adam_lists(ONE), grad_scale=torch.tensor(2.0), **ADAM),
            AssertionError,
            "Expected grad_scale and found_inf to be None",
        ),
        (
            lambda: sgd([ONE], [GRAD], [None], found_inf=torch.tensor(0.0), **SGD),
            AssertionError,
            "Expected grad_scale and found_inf to be None",
        ),
        (
            lambda: sgd([ONE], [GRAD], [None], has_sparse_grad=True, fused=True, **SGD),
            RuntimeError,
            "`_fused_sgd` does not support sparse gradients",
        ),
        (
            lambda: adam([ONE], [GRAD], *adam_lists(ONE), fused=True, differentiable=True, **ADAM),
            RuntimeError,
            "Adam with fused=True does not support differentiable=True",
        ),
        (
            lambda: adam([ONE], [GRAD], *adam_lists(ONE), foreach=True, differentiable=True, **ADAM),
            AssertionError,
            "_foreach ops don't support autograd",
        ),
        (
            lambda: adam([ONE], [GRAD], *adam_lists(ONE), foreach=True, **{**ADAM, "lr": torch.tensor(0.1)}),
            RuntimeError,
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (
            lambda: adam([ONE + 0j], [GRAD + 0j], *adam_lists(ONE + 0j), fused=True, **ADAM),
            NotImplementedError,
            "\"fused_adam_kernel\" not implemented for 'ComplexFloat'",
        ),
        (
            lambda: adam([ONE], [GRAD], *adam_lists(ONE), capturable=True, **ADAM),
            AssertionError,
            f"If capturable=True, params and state_steps {DEVICES}",
        ),
        (
            lambda: asgd([ONE], [GRAD], *lists_of(4), capturable=True, **ASGD),
            AssertionError,
            f"If capturable=True, params, mus, etas, and state_steps {DEVICES}",
        ),
        (
            lambda: muon([ONE], [GRAD], [GRAD], foreach=True, has_complex=False, **MUON),
            RuntimeError,
            "Foreach is not supported for Muon yet",
        ),
        (
            lambda: muon([ONE], [GRAD], [GRAD], has_complex=True, **MUON),
            ValueError,
            "Complex parameters are not supported",
        ),
    ],
)
def test_messages(call, kind, expected):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == expected


def test_capturable_steps_of_classes_need_a_device_too():
    param = nn.Parameter(torch.ones(2))
    param.grad = torch.ones(2)
    for optimizer in (optim.Adam([param], capturable=True), optim.NAdam([param], capturable=True)):
        with pytest.raises(AssertionError, match="^If capturable=True, params"):
            optimizer.step()
    assert param.tolist() == [1.0, 1.0]
