"""What every module can do: members, hooks, state dicts, moves, printing. Expected values are PyTorch's."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.modules import module as module_file


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.block = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("cache", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.block(self.first(x)) * self.scale


class Plain(nn.Module):
    pass


def message(kind, call):
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# Members


def test_members_by_name():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["first.weight", "first.bias", "block.1.weight"]
    assert [name for name, _ in net.named_buffers()] == ["scale", "cache"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "block", "block.0", "block.1"]
    assert [name for name, _ in net.named_children()] == ["first", "block"]
    assert [name for name, _ in net.named_parameters(prefix="net", recurse=False)] == []
    assert [name for name, _ in net.block.named_parameters(prefix="net")] == ["net.1.weight"]
    assert len(list(net.modules())) == 5


def test_shared_members_are_listed_once():
    net = Plain()
    net.a = nn.Linear(2, 2, bias=False)
    net.b = net.a
    net.c = nn.Linear(2, 2, bias=False)
    net.c.weight = net.a.weight
    assert [name for name, _ in net.named_parameters()] == ["a.weight"]
    names = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert names == ["a.weight", "b.weight", "c.weight"]
    assert [name for name, _ in net.named_modules()] == ["", "a", "c"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "a", "b", "c"]
    assert len(list(net.children())) == 2
    assert list(net.state_dict()) == ["a.weight", "b.weight", "c.weight"]


def test_assignment_moves_between_kinds():
    net = Plain()
    net.x = 1
    net.x = nn.Parameter(torch.ones(2))
    assert "x" in net._parameters and "x" not in net.__dict__
    net.x = None
    assert net._parameters["x"] is None and net.x is None
    net.x = nn.Parameter(torch.ones(1))
    del net.x
    assert not hasattr(net, "x")
    net.y = nn.Buffer(torch.ones(1), persistent=False)
    assert list(net._buffers) == ["y"] and "y" not in net.__dict__
    assert "y" in net._non_persistent_buffers_set
    net.y = torch.zeros(3)
    assert net._buffers["y"].shape == (3,) and "y" in net._non_persistent_buffers_set
    net.z = torch.ones(1)
    assert "z" in net.__dict__


def test_wrong_assignments():
    net = Net()
    assert message(TypeError, lambda: setattr(net.first, "weight", torch.ones(1))) == (
        "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)"
    )
    assert message(TypeError, lambda: setattr(net, "first", 3)) == (
        "cannot assign 'int' as child module 'first' (torch.nn.Module or None expected)"
    )
    assert message(TypeError, lambda: setattr(net, "scale", 3)) == (
        "cannot assign 'int' as buffer 'scale' (torch.nn.Buffer, torch.Tensor or None expected)"
    )
    assert message(AttributeError, lambda: net.nothing) == "'Net' object has no attribute 'nothing'"


def test_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.member = value

    assert message(AttributeError, lambda: Early(nn.Parameter(torch.ones(1)))) == (
        "cannot assign parameters before Module.__init__() call"
    )
    assert message(AttributeError, lambda: Early(nn.ReLU())) == "cannot assign module before Module.__init__() call"


@pytest.mark.parametrize(
    ("call", "kind", "expected"),
    [
        (lambda n: n.register_parameter(1, None), TypeError, "parameter name should be a string. Got int"),
        (lambda n: n.register_parameter("a.b", None), KeyError, "'parameter name can\\'t contain \".\"'"),
        (lambda n: n.register_parameter("", None), KeyError, "'parameter name can\\'t be empty string \"\"'"),
        (lambda n: n.register_parameter("forward", None), KeyError, "\"attribute 'forward' already exists\""),
        (
            lambda n: n.register_parameter("p", torch.ones(1)),
            TypeError,
            "cannot assign 'torch.FloatTensor' object to parameter 'p' (torch.nn.Parameter or None required)",
        ),
        (
            lambda n: n.register_buffer("b", 1),
            TypeError,
            "cannot assign 'int' object to buffer 'b' (torch Tensor or None required)",
        ),
        (lambda n: n.register_buffer("a.b", None), KeyError, "'buffer name can\\'t contain \".\"'"),
        (lambda n: n.add_module("a.b", None), KeyError, "'module name can\\'t contain \".\", got: a.b'"),
        (lambda n: n.add_module("", None), KeyError, "'module name can\\'t be empty string \"\"'"),
        (lambda n: n.add_module("m", 1), TypeError, "int is not a Module subclass"),
        (lambda n: n.get_submodule("block.7"), AttributeError, "Sequential has no attribute `7`"),
        (lambda n: n.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda n: n.get_parameter("first.scale"), AttributeError, "Linear has no attribute `scale`"),
        (lambda n: n.get_parameter("scale"), AttributeError, "`scale` is not an nn.Parameter"),
        (lambda n: n.get_buffer("first.weight"), AttributeError, "`weight` is not a buffer"),
        (lambda n: n.set_submodule("", nn.ReLU()), ValueError, "Cannot set the submodule without a target name!"),
        (lambda n: n.train(1), ValueError, "training mode is expected to be boolean"),
        (
            lambda n: n.to(torch.int32),
            TypeError,
            "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int32",
        ),
        (lambda n: n.load_state_dict(3), TypeError, "Expected state_dict to be dict-like, got <class 'int'>."),
        (lambda n: Plain()(1), NotImplementedError, 'Module [Plain] is missing the required "forward" function'),
        (lambda n: Plain(1), TypeError, "Plain.__init__() takes 1 positional argument but 2 were given"),
        (lambda n: Plain(a=1), TypeError, "Plain.__init__() got an unexpected keyword argument 'a'"),
    ],
)
def test_messages(call, kind, expected):
    net = Net()
    assert message(kind, lambda: call(net)) == expected


def test_submodules_by_path():
    net = Net()
    assert net.get_submodule("") is net
    assert net.get_submodule("block.1") is net.block[1]
    assert net.get_parameter("block.1.weight") is net.block[1].weight
    assert net.get_buffer("scale") is net.scale
    replacement = nn.Tanh()
    net.set_submodule("block.0", replacement)
    assert net.block[0] is replacement


def test_apply_visits_children_first():
    seen = []
    Net().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_modes_and_gradient_flags():
    net = Net()
    assert net.eval() is net and not any(module.training for module in net.modules())
    assert net.train().block[0].training
    net.requires_grad_(False)
    assert not any(param.requires_grad for param in net.parameters())


def test_dir_has_members_but_no_numbers():
    names = dir(Net())
    assert {"first", "block", "scale", "forward", "state_dict"} <= set(names)
    assert "0" not in dir(Net().block)


# Calls and hooks


def test_hook_order():
    log = []
    layer = nn.Identity()
    layer.register_forward_pre_hook(lambda m, a: log.append("pre"))
    layer.register_forward_pre_hook(lambda m, a, k: log.append("pre kw"), with_kwargs=True)
    layer.register_forward_pre_hook(lambda m, a: log.append("first"), prepend=True)
    layer.register_forward_hook(lambda m, a, o: log.append("post"))
    layer.register_forward_hook(lambda m, a, k, o: log.append(("post kw", k)), with_kwargs=True)
    handles = [
        module_file.register_module_forward_pre_hook(lambda m, a: log.append("global pre")),
        module_file.register_module_forward_hook(lambda m, a, o: log.append("global post")),
    ]
    try:
        layer(torch.ones(1))
    finally:
        for handle in handles:
            handle.remove()
    assert log == ["global pre", "first", "pre", "pre kw", "global post", "post", ("post kw", {})]
    log.clear()
    nn.Identity()(torch.ones(1))
    assert log == []


def test_hooks_replace_arguments_and_results():
    layer = nn.Identity()
    first = layer.register_forward_pre_hook(lambda m, a: a[0] + 1)
    layer.register_forward_hook(lambda m, a, o: o * 10)
    assert layer(torch.ones(1)).item() == 20
    first.remove()
    assert layer(torch.ones(1)).item() == 10
    layer.register_forward_pre_hook(lambda m, a, k: ((a[0] + k.pop("by"),), k), with_kwargs=True)
    assert layer(torch.ones(1), by=2).item() == 30
    layer.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
    assert message(RuntimeError, lambda: layer(torch.ones(1), by=2)) == (
        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got 3."
    )


def test_always_called_hooks_run_after_a_failure():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    log = []
    layer = Fails()
    layer.register_forward_hook(lambda m, a, o: log.append(("always", o)), always_call=True)
    layer.register_forward_hook(lambda m, a, o: log.append("not"))
    with pytest.raises(ValueError, match="^no$"):
        layer(torch.ones(1))
    assert log == [("always", None)]


def test_full_backward_hooks():
    log = []
    layer = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
    layer.register_full_backward_hook(lambda m, gi, go: log.append((gi[0].tolist(), go[0].tolist())))
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert log == [([[4.0, 6.0]], [[2.0]])]
    assert x.grad.tolist() == [[4.0, 6.0]]
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]


def test_full_backward_hook_changes_the_gradient():
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0 + 7,))
    x = torch.ones(2, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_full_backward_hook_without_input_gradients():
    log = []
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda m, gi, go: log.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed"):
        layer(torch.ones(1, 2)).sum().backward()
    assert log == [((None,), [[1.0]])]


def test_both_kinds_of_backward_hooks_do_not_mix():
    layer = nn.Tanh()
    layer.register_full_backward_hook(lambda *a: None)
    assert message(RuntimeError, lambda: layer.register_backward_hook(lambda *a: None)) == (
        "Cannot use both regular backward hooks and full backward hooks on a single Module. "
        "Please use only one of them."
    )


def test_regular_backward_hook():
    log = []
    layer = nn.Tanh()
    layer.register_backward_hook(lambda m, gi, go: log.append(go[0].tolist()))
    x = torch.zeros(2, requires_grad=True)
    layer(x).sum().backward()
    assert log == [[1.0, 1.0]]


def test_registration_hooks():
    log = []
    handles = [
        module_file.register_module_parameter_registration_hook(lambda m, n, p: log.append(("p", n))),
        module_file.register_module_buffer_registration_hook(lambda m, n, b: log.append(("b", n))),
        module_file.register_module_module_registration_hook(lambda m, n, s: log.append(("m", n))),
    ]
    try:
        Net()
    finally:
        for handle in handles:
            handle.remove()
    assert log == [
        ("p", "weight"),
        ("p", "bias"),
        ("m", "first"),
        ("p", "weight"),
        ("m", "0"),
        ("m", "1"),
        ("m", "block"),
        ("b", "scale"),
        ("b", "cache"),
    ]


# State dicts


def test_state_dict():
    net = Net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert list(state) == ["scale", "first.weight", "first.bias", "block.1.weight"]
    assert not state["first.weight"].requires_grad
    assert state["first.weight"].data_ptr() == net.first.weight.data_ptr()
    assert net.state_dict(keep_vars=True)["first.weight"] is net.first.weight
    assert list(net.first.state_dict(prefix="x.")) == ["x.weight", "x.bias"]
    assert dict(state._metadata) == {name: {"version": 1} for name in ("", "first", "block", "block.0", "block.1")}


def test_load_state_dict():
    net, other = Net(), Net()
    assert repr(net.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(net.first.weight, other.first.weight)
    assert net.first.weight is not other.first.weight
    result = net.load_state_dict({"first.weight": torch.ones(4, 3), "more": torch.ones(1)}, strict=False)
    assert result.missing_keys == ["scale", "first.bias", "block.1.weight"]
    assert result.unexpected_keys == ["more"]
    assert net.first.weight.sum().item() == 12


def test_load_state_dict_errors():
    net = Net()
    state = net.state_dict()
    del state["first.bias"]
    state["first.weight"] = torch.ones(2, 2)
    state["block.1.weight"] = 3
    state["first.more"] = torch.ones(1)
    state["other.x"] = torch.ones(1)
    assert message(RuntimeError, lambda: net.load_state_dict(state)) == (
        "Error(s) in loading state_dict for Net:\n\t"
        'Missing key(s) in state_dict: "first.bias". \n\t'
        'Unexpected key(s) in state_dict: "other.x", "first.more". \n\t'
        "size mismatch for first.weight: copying a param with shape torch.Size([2, 2]) from checkpoint, "
        "the shape in current model is torch.Size([4, 3]).\n\t"
        'While copying the parameter named "block.1.weight", expected torch.Tensor or Tensor-like object from '
        "checkpoint but received <class 'int'>"
    )


def test_load_state_dict_assign():
    net = Net()
    state = {name: torch.ones(tensor.shape) for name, tensor in net.state_dict().items()}
    net.load_state_dict(state, assign=True)
    assert net.first.weight.data_ptr() == state["first.weight"].data_ptr()
    assert isinstance(net.first.weight, nn.Parameter) and net.first.weight.requires_grad
    assert net.scale is state["scale"]


def test_scalars_of_old_checkpoints():
    net = Plain()
    net.p = nn.Parameter(torch.tensor(1.0))
    net.load_state_dict({"p": torch.tensor([5.0])})
    assert net.p.item() == 5


def test_extra_state():
    class Extra(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    net = nn.Sequential(Extra())
    net[0].count = 4
    state = net.state_dict()
    assert list(state) == ["0._extra_state"]
    fresh = nn.Sequential(Extra())
    fresh.load_state_dict(state)
    assert fresh[0].count == 4
    assert message(RuntimeError, lambda: fresh.load_state_dict({})).endswith(
        'Missing key(s) in state_dict: "0._extra_state". '
    )


def test_state_dict_hooks():
    log = []
    net = Net()
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(("pre", prefix, keep)))
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: log.append(("post", len(state))))
    net._register_state_dict_hook(lambda m, state, prefix, meta: OrderedDict(only=state["scale"]))
    assert list(net.state_dict()) == ["only"]
    assert log == [("pre", "", False), ("post", 4)]


def test_load_state_dict_hooks():
    log = []
    net = Net()
    net._register_load_state_dict_pre_hook(lambda state, prefix, *rest: state.pop("extra", None))
    net.first.register_load_state_dict_pre_hook(lambda m, state, prefix, *rest: log.append((type(m).__name__, prefix)))
    net.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    state = net.state_dict()
    del state["scale"]
    state["extra"] = torch.ones(1)
    net.load_state_dict(state)
    assert log == [("Linear", "first.")]


# Moves


def test_dtype_changes_keep_parameters():
    net = Net()
    weight = net.first.weight
    net(torch.ones(1, 3)).sum().backward()
    grad = weight.grad
    assert net.double() is net
    assert net.first.weight is weight and weight.dtype == torch.float64
    assert weight.grad is grad and grad.dtype == torch.float64
    assert net.scale.dtype == torch.float64
    net.to(torch.bfloat16)
    assert {tensor.dtype for tensor in net.state_dict().values()} == {torch.bfloat16}
    net.to(torch.ones(1, dtype=torch.float16))
    assert weight.dtype == torch.float16
    net.to("cpu", torch.float32)
    assert weight.dtype == torch.float32


def test_integer_buffers_keep_their_dtype():
    norm = nn.BatchNorm1d(2).half()
    assert norm.num_batches_tracked.dtype == torch.int64
    assert norm.running_mean.dtype == torch.float16


def test_meta_device():
    net = nn.Linear(2, 2, device="meta")
    weight = net.weight
    assert weight.is_meta and isinstance(weight, nn.Parameter)
    assert message(NotImplementedError, lambda: net.to("cpu")) == (
        "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
        "torch.nn.Module.to() when moving module from meta to a different device."
    )
    net.to_empty(device="cpu")
    assert net.weight is not weight and net.weight.device.type == "cpu" and net.weight.shape == (2, 2)
    net.to("meta")
    assert net.weight.is_meta and net.weight.requires_grad


def test_zero_grad():
    net = Net()
    net(torch.ones(1, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.first.weight.grad is None


# Copies and printing


def test_deepcopy():
    net = Net()
    net.first.register_forward_hook(lambda m, a, o: o)
    twin = copy.deepcopy(net)
    assert twin.first.weight is not net.first.weight
    assert torch.equal(twin.first.weight, net.first.weight)
    assert type(twin.first.weight) is nn.Parameter and twin.first.weight.requires_grad
    assert len(twin.first._forward_hooks) == 1


def test_pickle():
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.25))
    twin = pickle.loads(pickle.dumps(net))
    assert repr(twin) == repr(net)
    assert torch.equal(twin[0].weight, net[0].weight) and isinstance(twin[0].weight, nn.Parameter)


def test_repr():
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (block): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Linear(in_features=4, out_features=2, bias=False)\n"
        "  )\n"
        ")"
    )
    assert repr(Plain()) == "Plain()"


# Parameters


def test_parameter():
    data = torch.ones(2)
    param = nn.Parameter(data)
    assert param.data_ptr() == data.data_ptr() and param.requires_grad and param.is_leaf
    assert isinstance(param, torch.Tensor) and not isinstance(data, nn.Parameter)
    assert repr(param) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert repr(nn.Parameter(torch.tensor([1]), requires_grad=False)) == "Parameter containing:\ntensor([1])"
    assert type(param + 1) is torch.Tensor and type(param.detach()) is torch.Tensor and type(param.data) is torch.Tensor
    assert nn.Parameter().shape == (0,)
    param.mark = 3
    twin = pickle.loads(pickle.dumps(param))
    assert twin.mark == 3 and twin.tolist() == [1.0, 1.0] and type(twin) is nn.Parameter
    assert message(RuntimeError, lambda: nn.Parameter(torch.tensor([1]))) == (
        "Only Tensors of floating point and complex dtype can require gradients"
    )


def test_parameter_of_a_computed_tensor_is_a_leaf():
    source = torch.ones(2, requires_grad=True) * 2
    param = nn.Parameter(source)
    assert param.is_leaf and param.grad_fn is None
    with torch.no_grad():
        assert nn.Parameter(torch.ones(1)).requires_grad


def test_buffer():
    buffer = nn.Buffer(torch.ones(2), persistent=False)
    assert type(buffer) is torch.Tensor and isinstance(buffer, nn.Buffer) and not buffer.persistent
    assert not isinstance(torch.ones(1), nn.Buffer)


def test_call_super_init_reaches_other_bases():
    class Other:
        def __init__(self, value):
            self.value = value

    class Both(nn.Module, Other):
        call_super_init = True

    assert Both(3).value == 3
