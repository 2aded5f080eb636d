"""Optimizers and schedules against PyTorch's, recorded by tests/record_nn.py, and what every optimizer can do."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path

import nn_cases
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim
from mindtorch_v2.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

RECORD = json.loads((Path(__file__).parent / "data" / "nn.json").read_text())


def param(*values):
    return nn.Parameter(torch.tensor(values or (1.0, 2.0)))


def message(kind, call):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "recorded"),
    list(zip(nn_cases.OPTIMIZERS, RECORD["optimizers"], strict=True)),
    ids=nn_cases.OPTIMIZERS,
)
def test_optimizer(expression, recorded):
    optimizer, params = nn_cases.run_optimizer(torch, expression)
    assert repr(optimizer) == recorded["repr"]
    for tensor, entry in zip(params, recorded["params"], strict=True):
        found = np.array(tensor.detach().reshape(-1).tolist())
        # Rounding grows where a line search ends.
        rtol = 1e-4 if "LBFGS" in expression else 2e-6
        np.testing.assert_allclose(found, np.array(entry["values"]), rtol=rtol, atol=1e-7)
    state = optimizer.state_dict()
    assert {str(number): sorted(entries) for number, entries in state["state"].items()} == recorded["state"]
    assert [sorted(group) for group in state["param_groups"]] == recorded["groups"]


@pytest.mark.parametrize("expression", nn_cases.OPTIMIZERS)
def test_resuming_gives_the_same(expression):
    optimizer, params = nn_cases.run_optimizer(torch, expression, steps=2)
    _, straight = nn_cases.run_optimizer(torch, expression, steps=4)
    twins = [nn.Parameter(tensor.detach().clone()) for tensor in params]
    resumed = eval(expression, {**vars(optim), "torch": torch, "p": twins})
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))

    def closure():
        resumed.zero_grad()
        loss = sum((tensor**2 * (scale + 1) - tensor.abs()).sum() for scale, tensor in enumerate(twins))
        loss.backward()
        return loss

    for _ in range(2):
        resumed.step(closure)
    for tensor, expected in zip(twins, straight, strict=True):
        assert torch.equal(tensor, expected)


@pytest.mark.parametrize(
    ("expression", "recorded"),
    list(zip(nn_cases.SCHEDULES, RECORD["schedules"], strict=True)),
    ids=nn_cases.SCHEDULES,
)
def test_schedule(expression, recorded):
    scheduler, _, history = nn_cases.run_schedule(torch, expression)
    for epoch, (found, expected) in enumerate(zip(history, recorded["history"], strict=True)):
        np.testing.assert_allclose(
            np.array(found), np.array(expected), rtol=1e-12, atol=1e-18, err_msg=f"epoch {epoch}"
        )
    assert sorted(scheduler.state_dict()) == recorded["keys"]


@pytest.mark.parametrize("expression", nn_cases.SCHEDULES)
def test_schedules_resume(expression):
    scheduler, optimizer, _ = nn_cases.run_schedule(torch, expression)
    twin, other, _ = nn_cases.run_schedule(torch, expression)
    state = copy.deepcopy(scheduler.state_dict())
    groups = copy.deepcopy(optimizer.state_dict())
    for each in (scheduler, twin):
        if "OneCycle" not in expression:
            each.step(1) if "Plateau" in expression else each.step()
    expected = [group["lr"] for group in other.param_groups]
    optimizer.load_state_dict(groups)
    scheduler.load_state_dict(state)
    if "OneCycle" not in expression:
        scheduler.step(1) if "Plateau" in expression else scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == expected


# Groups and state


def test_groups():
    first, second, third = param(), param(), param()
    optimizer = optim.SGD([{"params": first}, {"params": [second], "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    assert [group["momentum"] for group in optimizer.param_groups] == [0.9, 0.9]
    optimizer.add_param_group({"params": third, "momentum": 0.0})
    assert len(optimizer.param_groups) == 3 and optimizer.param_groups[2]["params"][0] is third
    assert [group["params"] for group in optimizer.state_dict()["param_groups"]] == [[0], [1], [2]]


def test_named_parameters():
    layer = nn.Linear(2, 1)
    optimizer = optim.SGD(layer.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is layer.weight
    assert message(ValueError, lambda: optimizer.add_param_group({"params": [param()]})) == (
        "all optimizer param groups should be with/without names. cannot add param group without names to the optimizer"
    )


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (lambda p: optim.SGD([], 0.1), ValueError, "optimizer got an empty parameter list"),
        (
            lambda p: optim.SGD(p, 0.1),
            TypeError,
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
            "torch.FloatTensor",
        ),
        (
            lambda p: optim.SGD([1], 0.1),
            TypeError,
            "optimizer can only optimize Tensors, but one of the params is int",
        ),
        (lambda p: optim.SGD([p * 2], 0.1), ValueError, "can't optimize a non-leaf Tensor"),
        (
            lambda p: optim.SGD([{"params": {p}}], 0.1),
            TypeError,
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead.",
        ),
        (
            lambda p: optim.SGD([{"params": p}, {"params": p}], 0.1),
            ValueError,
            "some parameters appear in more than one parameter group",
        ),
        (lambda p: optim.SGD([p], -1.0), ValueError, "Invalid learning rate: -1.0"),
        (
            lambda p: optim.SGD([p], 0.1, nesterov=True),
            ValueError,
            "Nesterov momentum requires a momentum and zero dampening",
        ),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda p: optim.AdamW([p], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (
            lambda p: optim.Adam([p], torch.tensor(0.1), foreach=True),
            ValueError,
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (
            lambda p: optim.Adam([p], foreach=True, fused=True),
            RuntimeError,
            "`fused` and `foreach` cannot be `True` together.",
        ),
        (lambda p: optim.Rprop([p], etas=(1.5, 2)), ValueError, "Invalid eta values: 1.5, 2"),
        (
            lambda p: optim.LBFGS([{"params": [p]}, {"params": [param()]}]),
            ValueError,
            "LBFGS doesn't support per-parameter options (parameter groups)",
        ),
        (
            lambda p: optim.SGD([p], 0.1).load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "loaded state dict has a different number of parameter groups",
        ),
        (
            lambda p: optim.SGD([p], 0.1).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
            ValueError,
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        ),
        (lambda p: optim.lr_scheduler.StepLR(p, 3), TypeError, "Parameter is not an Optimizer"),
        (
            lambda p: optim.lr_scheduler.LambdaLR(optim.SGD([p], 0.1), [len, len]),
            ValueError,
            "Expected 1 lr_lambdas, but got 2",
        ),
        (
            lambda p: optim.lr_scheduler.OneCycleLR(optim.SGD([p], 0.1), 1.0),
            ValueError,
            "You must define either total_steps OR (epochs AND steps_per_epoch)",
        ),
        (
            lambda p: optim.lr_scheduler.CyclicLR(optim.Adagrad([p]), 0.1, 0.2),
            ValueError,
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
        ),
    ],
)
def test_messages(call, kind, expected):
    assert message(kind, lambda: call(param())) == expected


def test_duplicates_warn():
    weight = param()
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optim.SGD([weight, weight], 0.1)


def test_state_moves_to_the_parameters_dtype():
    weight = param()
    optimizer = optim.Adam([weight])
    weight.grad = torch.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    half = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    other = optim.Adam([half])
    other.load_state_dict(state)
    assert other.state[half]["exp_avg"].dtype == torch.bfloat16
    assert other.state[half]["step"].dtype == torch.float32 and other.state[half]["step"].item() == 1


def test_parameters_without_gradient_stay():
    first, second = param(), param()
    optimizer = optim.AdamW([first, second])
    first.grad = torch.ones(2)
    optimizer.step()
    assert second.tolist() == [1.0, 2.0] and second not in optimizer.state


def test_zero_grad():
    weight = param()
    optimizer = optim.SGD([weight], 0.1)
    (weight * 2).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_closure_and_result():
    weight = param(3.0)
    optimizer = optim.SGD([weight], 0.1)

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9
    assert optimizer.step() is None
    np.testing.assert_allclose(weight.tolist(), [1.8], rtol=1e-6)


def test_gradients_through_a_differentiable_step():
    rate = torch.tensor(0.1, requires_grad=True)
    weight = torch.tensor([2.0], requires_grad=True).clone()
    weight.retain_grad()
    optimizer = optim.SGD([weight], rate, differentiable=True)
    weight.grad = torch.tensor([3.0])
    optimizer.step()
    weight.sum().backward()
    assert rate.grad.item() == -3


# Hooks


def test_step_hooks():
    log = []
    weight = param()
    optimizer = optim.SGD([weight], 0.1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    handles = [
        register_optimizer_step_pre_hook(lambda o, args, kwargs: log.append("global pre")),
        register_optimizer_step_post_hook(lambda o, args, kwargs: log.append("global post")),
    ]
    try:
        optimizer.step()
    finally:
        for handle in handles:
            handle.remove()
    assert log == ["global pre", "pre", "post", "global post"]
    log.clear()
    optim.SGD([param()], 0.1).step()
    assert log == []


def test_state_dict_hooks():
    log = []
    optimizer = optim.SGD([param()], 0.1)
    optimizer.register_state_dict_pre_hook(lambda o: log.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: log.append("load pre"))
    optimizer.register_load_state_dict_post_hook(lambda o: log.append("load post"))
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert log == ["pre", "load pre", "load post"]


def test_own_optimizers():
    class Halve(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def step(self, closure=None):
            with torch.no_grad():
                for group in self.param_groups:
                    for tensor in group["params"]:
                        tensor.mul_(0.5)

    log = []
    weight = param()
    optimizer = Halve([weight])
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    optimizer.step()
    assert weight.tolist() == [0.5, 1.0] and log == ["post"]


def test_pickle_and_copy():
    weight = param()
    optimizer = optim.Adam([weight], 0.25)
    weight.grad = torch.ones(2)
    optimizer.step()
    twin = pickle.loads(pickle.dumps(optimizer))
    assert repr(twin) == repr(optimizer)
    assert (
        twin.state[twin.param_groups[0]["params"][0]]["exp_avg"].tolist() == optimizer.state[weight]["exp_avg"].tolist()
    )
    assert repr(copy.deepcopy(optimizer)) == repr(optimizer)


# Order of steps


def test_scheduler_before_optimizer_warns():
    optimizer = optim.SGD([param()], 0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        scheduler.step()


def test_the_right_order_does_not_warn():
    optimizer = optim.SGD([param()], 0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()
    np.testing.assert_allclose(scheduler.get_last_lr(), [0.01])
    assert optimizer.param_groups[0]["initial_lr"] == 0.1


def test_rates_that_are_tensors_stay_tensors():
    rate = torch.tensor(0.5)
    optimizer = optim.Adam([param()], rate, foreach=False)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.25


def test_averaged_model():
    layer = nn.Linear(1, 1, bias=False)
    averaged = optim.swa_utils.AveragedModel(layer)
    for value in (1.0, 3.0, 8.0):
        with torch.no_grad():
            layer.weight.fill_(value)
        averaged.update_parameters(layer)
    np.testing.assert_allclose(averaged.module.weight.item(), 4.0)
    assert averaged.n_averaged.item() == 3
    exponential = optim.swa_utils.AveragedModel(layer, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5))
    exponential.update_parameters(layer)
    with torch.no_grad():
        layer.weight.fill_(4.0)
    exponential.update_parameters(layer)
    assert exponential.module.weight.item() == 6


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        (lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.2), 4),
        (lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.2, eps=1e-3), 4),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.2), 4),
        (lambda p: torch.optim.SGD(p, lr=0.1), 3),
    ],
)
def test_groups_of_mixed_parameters_step_like_single_ones(make, steps) -> None:
    """A transposed, an empty and a double parameter, one without gradient: each as in an optimizer of its own."""

    def fresh() -> list:
        turned = torch.arange(6.0).reshape(2, 3).t()
        return [
            torch.nn.Parameter(value.clone())
            for value in (torch.arange(4.0), turned, torch.zeros(0), torch.ones(2, dtype=torch.float64), torch.ones(3))
        ]

    together, apart = fresh(), fresh()
    group, singles = make(together), [make([param]) for param in apart]
    for number in range(steps):
        for params in (together, apart):
            for param in params[:-1]:
                param.grad = torch.full_like(param, number + 0.5)
        group.step()
        for optimizer in singles:
            optimizer.step()
    for one, other in zip(together, apart):
        torch.testing.assert_close(one, other)
        assert one._version == other._version
    assert together[-1].tolist() == [1.0] * 3 and together[0]._version >= steps
