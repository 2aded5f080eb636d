"""`torch.utils.swap_tensors`, and modules whose parameters are swapped: `torch.__future__`."""

from __future__ import annotations

import weakref

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_two_tensors_take_each_others_place():
    a, b = torch.ones(2, requires_grad=True), nn.Parameter(torch.zeros(3))
    a.note = 1
    seen = []
    a.register_hook(seen.append)
    torch.utils.swap_tensors(a, b)
    assert (type(a), type(b)) == (nn.Parameter, torch.Tensor)
    assert (a.tolist(), b.tolist(), b.note) == ([0] * 3, [1] * 2, 1)
    (b * 2).sum().backward()
    assert (b.grad.tolist(), a.grad, len(seen)) == ([2, 2], None, 1)


def test_what_is_held_elsewhere_is_not_swapped():
    a = torch.ones(2, requires_grad=True)
    held = a * a
    with pytest.raises(RuntimeError, match="Expected use_count of t1 to be 1 or 2 with an AccumulateGrad node"):
        torch.utils.swap_tensors(a, torch.ones(2))
    del held
    plain = torch.ones(2)
    reference = weakref.ref(plain)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref associated with it"):
        torch.utils.swap_tensors(a, plain)
    assert reference() is plain
    assert a.requires_grad


def test_a_detached_tensor_and_its_source():
    a = torch.ones(2)
    torch.utils.swap_tensors(a, b := a.detach())
    a.add_(1)
    assert a._version == b._version == 1


def test_conversion_keeps_parameters_and_their_gradients(swapping):
    m = nn.Linear(2, 2)
    weight = m.weight
    m(torch.ones(1, 2)).sum().backward()
    m.double()
    assert m.weight is weight
    assert weight.dtype is weight.grad.dtype is torch.float64


@pytest.mark.parametrize("assign", [False, True])
def test_loading_keeps_parameters(swapping, assign):
    m = nn.Linear(2, 2)
    weight = m.weight
    m.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.zeros(2)}, assign=assign)
    assert m.weight is weight
    assert isinstance(weight, nn.Parameter)
    assert weight.tolist() == [[1, 1], [1, 1]]


def test_a_module_that_a_function_hides_stays_hidden():
    from mindtorch_v2._torch_proxy import install, is_installed, uninstall

    before = is_installed()
    install()
    try:
        import torch.autograd.gradcheck

        assert callable(torch.autograd.gradcheck)
        from torch.autograd.gradcheck import GradcheckError

        assert issubclass(GradcheckError, RuntimeError)
    finally:
        if not before:
            uninstall()


def test_tables_of_global_hooks_can_be_assigned():
    calls = []
    nn.modules.module.register_module_forward_hook(lambda *args: calls.append(args))
    nn.Sigmoid()(torch.ones(1))
    nn.modules.module._global_forward_hooks = {}
    nn.Sigmoid()(torch.ones(1))
    assert len(calls) == 1


def test_handlers_see_methods():
    seen = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Watched)
    x.detach()
    torch.detach(x)
    x + 1
    assert seen == [torch.Tensor.detach, torch.detach, torch.Tensor.add]
