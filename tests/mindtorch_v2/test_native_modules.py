"""Attributes and calls of modules, and making parameters: what the C extension stands before keeps every rule."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import weakref
from collections import OrderedDict
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn


class Plain(nn.Module):
    scale = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(1))
        self.count = 0

    @property
    def doubled(self) -> int:
        return self.count * 2

    @doubled.setter
    def doubled(self, value: int) -> None:
        self.count = value // 2

    def forward(self, x: Any, *, plus: float = 0.0) -> Any:
        return x * self.weight + plus


def test_where_values_go() -> None:
    made = Plain()
    assert list(made._parameters) == ["weight"] and list(made._buffers) == ["seen"] and list(made._modules) == ["inner"]
    assert made.count == 0 and "count" in vars(made) and "weight" not in vars(made)
    made.doubled = 8
    assert made.count == 4 and "doubled" not in vars(made)
    made.scale = 3.0
    assert made.scale == 3.0 and Plain.scale == 2.0 and "scale" in vars(made)
    made.extra = nn.ReLU()
    made.bias = nn.Parameter(torch.zeros(2))
    assert list(made._modules) == ["inner", "extra"] and list(made._parameters) == ["weight", "bias"]
    made.note = None
    made.note = nn.Parameter(torch.zeros(1))  # from the instance dict to the parameters
    assert "note" not in vars(made) and made.note is made._parameters["note"]
    made.inner = nn.Parameter(torch.zeros(1))  # from the modules to the parameters
    assert "inner" not in made._modules and "inner" in made._parameters
    with pytest.raises(TypeError, match="as parameter 'inner'"):
        made.inner = nn.ReLU()
    assert list(made._modules) == ["extra"]
    made.weight = None
    assert made.weight is None and made._parameters["weight"] is None
    made.seen = torch.ones(1)
    assert made._buffers["seen"].tolist() == [1.0]
    for name in ("note", "extra", "seen", "count"):
        delattr(made, name)
        assert not hasattr(made, name)


def test_refusals() -> None:
    made = Plain()
    for name, value, error, message in (
        ("weight", 3, TypeError, "cannot assign 'int' as parameter 'weight'"),
        ("weight", torch.ones(2), TypeError, "cannot assign 'torch.FloatTensor' as parameter"),
        ("inner", "text", TypeError, "cannot assign 'str' as child module 'inner'"),
        ("seen", 1.5, TypeError, "cannot assign 'float' as buffer 'seen'"),
        ("scale", nn.Parameter(torch.ones(1)), KeyError, "attribute 'scale' already exists"),
        ("doubled", nn.Parameter(torch.ones(1)), KeyError, "attribute 'doubled' already exists"),
        ("a.b", nn.Parameter(torch.ones(1)), KeyError, "contain"),
        ("", nn.Parameter(torch.ones(1)), KeyError, "empty string"),
    ):
        with pytest.raises(error, match=message):
            setattr(made, name, value)
    with pytest.raises(AttributeError, match="'Plain' object has no attribute 'nothing'"):
        made.nothing  # noqa: B018 (the look-up is what fails)

    class Early(nn.Module):
        def __init__(self, value: Any) -> None:
            self.early = value

    assert Early(3).early == 3
    for value, what in ((nn.Parameter(torch.ones(1)), "parameters"), (nn.ReLU(), "module")):
        with pytest.raises(AttributeError, match=f"cannot assign {what} before"):
            Early(value)
    derived = nn.Parameter(torch.ones(1)) * 2
    derived.__class__ = nn.Parameter
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor"):
        made.weight = derived


def test_classes_that_take_part() -> None:
    class Behind:
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, ("seen", value) if name == "marked" else value)

    class Mixed(nn.Module, Behind):
        pass

    class Counting(nn.Module):
        def register_parameter(self, name: str, param: Any) -> None:
            vars(self).setdefault("registered", []).append(name)
            super().register_parameter(name, param)

        def __getattr__(self, name: str) -> Any:
            return "made up" if name.startswith("any_") else super().__getattr__(name)

    mixed = Mixed()
    mixed.marked = 1
    assert mixed.marked == ("seen", 1)
    counting = Counting()
    counting.first = nn.Parameter(torch.ones(1))
    assert counting.registered == ["first"] and counting.any_thing == "made up"
    with pytest.raises(KeyError, match="already exists"):
        counting.any_name = nn.Parameter(torch.ones(1))
    ordered = nn.Module()
    ordered.__dict__["_parameters"] = OrderedDict()
    ordered.b, ordered.a = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    ordered._parameters.move_to_end("b")
    assert list(ordered._parameters) == ["a", "b"] and ordered.a is ordered._parameters["a"]


def test_registration_hooks_run() -> None:
    from mindtorch_v2.nn.modules import module as where

    seen: list = []
    handles = [
        where.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)),
        where.register_module_module_registration_hook(lambda m, name, sub: seen.append(name)),
    ]
    Plain()
    for handle in handles:
        handle.remove()
    assert seen == ["weight", "bias", "inner", "weight"]


def test_calls() -> None:
    made = Plain()
    x = torch.tensor([1.0, 2.0])
    assert made(x).tolist() == made.__call__(x).tolist() == nn.Module.__call__(made, x).tolist() == [1, 2]
    assert made(x, plus=1.0).tolist() == [2, 3]
    seen: list = []
    handle = made.register_forward_hook(lambda module, args, out: out + 1)
    assert made(x).tolist() == [2, 3]
    handle.remove()
    handle = made.register_forward_pre_hook(lambda module, args: seen.append(len(args)))
    made(x)
    handle.remove()
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: seen.append("all"))
    made(x)
    handle.remove()
    assert seen == [1, "all"]
    made.forward = lambda x: x - 1  # an instance's own
    assert made(x).tolist() == [0, 1]
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(x)
    with pytest.raises(TypeError, match="forward"):
        Plain()()

    class Variadic(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return args, kwargs

    assert Variadic()(*range(20), a=1, b=2) == (tuple(range(20)), {"a": 1, "b": 2})
    assert list(inspect.signature(nn.Module.__call__).parameters) == ["self", "args", "kwargs"]


def test_parameters_of_plain_tensors() -> None:
    data = torch.ones(3)
    made = nn.Parameter(data)
    assert (
        type(made) is nn.Parameter and made.requires_grad and made.is_leaf and made.grad is None and made._version == 0
    )
    assert vars(made) == {} and made.data_ptr() == data.data_ptr()
    (made * 2).sum().backward()
    assert made.grad.tolist() == [2, 2, 2]
    for call in (
        lambda: nn.Parameter(data, False),
        lambda: nn.Parameter(data, requires_grad=False),
        lambda: nn.Parameter(data=data, requires_grad=False),
    ):
        assert not call().requires_grad
    with torch.no_grad():
        assert nn.Parameter(data).requires_grad
    assert nn.Parameter(torch.arange(3), requires_grad=False).dtype is torch.int64
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        nn.Parameter(torch.arange(3))
    with pytest.raises(TypeError):
        nn.Parameter(data, True, None)  # type: ignore[call-arg]
    assert nn.Parameter().shape == (0,)
    again = nn.Parameter(made)
    assert again is not made and again.grad is None and again.requires_grad
    assert isinstance(made, nn.Parameter) and not isinstance(data, nn.Parameter)
    assert pickle.loads(pickle.dumps(made)).tolist() == [1, 1, 1]

    class Special(nn.Parameter):
        pass

    assert type(Special(data)) is Special
    reference = weakref.ref(made)
    del made, again
    gc.collect()
    assert reference() is None


def test_requires_grad_in_place() -> None:
    x = torch.ones(2)
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    node = x._node
    assert x.requires_grad_(True)._node is node
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert x.requires_grad_(False) is x and not x.requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        torch.arange(2).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf variables"):
        (x.requires_grad_() * 2).requires_grad_(False)


def test_the_tree_is_walked_as_ever() -> None:
    shared = nn.ReLU()
    root = nn.Sequential(nn.Sequential(shared, nn.Linear(1, 1)), shared, nn.Identity())
    root[0].add_module("gone", None)
    assert [name for name, _ in root.named_modules()] == ["", "0", "0.0", "0.1", "2"]
    assert [name for name, _ in root.named_modules(remove_duplicate=False)] == ["", "0", "0.0", "0.1", "1", "2"]
    assert [name for name, _ in root.named_modules(memo={shared}, prefix="p")] == ["p", "p.0", "p.0.1", "p.2"]

    class Renaming(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(1, 1)

        def named_modules(self, memo: Any = None, prefix: str = "", remove_duplicate: bool = True) -> Any:
            yield f"{prefix}!", self
            yield f"{prefix}!one", self.one

    outer = nn.Sequential(Renaming())
    assert [name for name, _ in outer.named_modules()] == ["", "0!", "0!one"]
    assert [name for name, _ in outer.named_parameters()] == ["0!one.weight", "0!one.bias"]
    walk = root.named_modules()
    for name, module in walk:
        if name == "0.1":
            module.late = nn.ReLU()
    assert "0.1.late" in dict(root.named_modules())
    assert inspect.isgenerator(root.parameters()) and inspect.isgenerator(root.named_parameters())


def test_copies_of_modules() -> None:
    made = Plain()
    made.twin = made.inner
    made.register_forward_hook(lambda module, args, out: out)
    made.table = [made.weight]
    table = made._forward_pre_hooks
    made.inner.__dict__["_forward_pre_hooks"] = table  # one table of two modules
    other = copy.deepcopy(made)
    assert other is not made and other.inner is other.twin and other.inner is not made.inner
    assert other.table[0] is other.weight and other.weight is not made.weight and other.weight.tolist() == [1, 1]
    assert list(vars(other)) == list(vars(made)) and len(other._forward_hooks) == 1
    assert other._forward_pre_hooks is other.inner._forward_pre_hooks and other._forward_pre_hooks is not table
    for name, value in vars(made).items():
        assert type(vars(other)[name]) is type(value), name
    memo: dict = {}
    assert copy.deepcopy(made, memo) is memo[id(made)]

    class Custom(Plain):
        def __getstate__(self) -> dict:
            return {**super().__getstate__(), "count": 99}

        def __setstate__(self, state: dict) -> None:
            super().__setstate__({**state, "restored": True})

    copied = copy.deepcopy(Custom())
    assert copied.count == 99 and copied.restored and copied.weight.tolist() == [1, 1]

    class Own(Plain):
        def __deepcopy__(self, memo: dict) -> Any:
            self.__deepcopy__ = None
            made = copy.deepcopy(self, memo)
            del self.__deepcopy__
            return made

    assert type(copy.deepcopy(Own())) is Own


def test_loading_the_own_state() -> None:
    made = Plain()
    before = made.weight._version
    assert str(made.load_state_dict(made.state_dict())) == "<All keys matched successfully>"
    assert made.weight._version == before + 1
    state = {name: value + 1 for name, value in made.state_dict().items()}
    made.load_state_dict(state)
    assert made.weight.tolist() == [2, 2] and made.weight.requires_grad and made.weight.is_leaf
    state["weight"] = torch.ones(3)
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        made.load_state_dict(state)


def test_attributes_through_patched_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Plain()
    seen: list = []
    usual = nn.Module.__getattr__

    def watching(self: Any, name: str) -> Any:
        seen.append(name)
        return usual(self, name)

    monkeypatch.setattr(nn.Module, "__getattr__", watching)
    assert made.weight is made._parameters["weight"] and seen == ["weight"]
    monkeypatch.undo()
    assert made.weight is made._parameters["weight"] and seen == ["weight"]

    class Failing(Plain):
        @property
        def broken(self) -> Any:
            return self.missing

    with pytest.raises(AttributeError, match="no attribute 'broken'|no attribute 'missing'"):
        Failing().broken  # noqa: B018 (the look-up is what fails)
    assert hash(made.weight) == id(made.weight) and hash(torch.ones(1)) != hash(torch.ones(1))
    x = torch.ones(2)
    y = x.detach()
    y.add_(1)
    assert x.tolist() == [2, 2] and x._version == y._version == 1 and not y.requires_grad and y is not x
    assert made.weight.detach().requires_grad is False and type(made.weight.detach()) is torch.Tensor
    assert x.contiguous() is x and x.expand(3, 2).t().contiguous().is_contiguous()
