"""`__torch_dispatch__`: wrapper subclasses and modes below the tape; what they see is what PyTorch's see."""

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.overrides import _disabled_torch_function_impl
from mindtorch_v2.utils._python_dispatch import TorchDispatchMode
from mindtorch_v2.utils._pytree import tree_map

SEEN: list[str] = []


class Wrapper(torch.Tensor):
    """Holds another tensor, and notes the operators that it runs on it."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )
        made.inner = inner
        return made

    __torch_function__ = _disabled_torch_function_impl

    def __repr__(self):
        return f"Wrapper({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        SEEN.append(str(func))

        def inner(value):
            return value.inner if isinstance(value, cls) else value

        results = func(*tree_map(inner, args), **tree_map(inner, kwargs or {}))
        return tree_map(lambda value: cls(value) if isinstance(value, torch.Tensor) else value, results)


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


def test_what_a_wrapper_shows():
    x = Wrapper(torch.arange(6.0).reshape(2, 3).t(), requires_grad=True)
    assert (x.shape, x.stride(), x.dtype, x.requires_grad, x.is_leaf) == ((3, 2), (1, 3), torch.float32, True, True)
    assert x.device == torch.device("cpu") and not SEEN


def test_operators_are_seen_below_the_tape():
    x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = x.exp() * 2
    assert isinstance(y, Wrapper) and y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert SEEN[:3] == ["aten.exp.default", "aten.mul.Tensor", "aten.sum.default"]
    assert isinstance(x.grad, Wrapper)
    torch.testing.assert_close(x.grad.inner, 2 * torch.tensor([1.0, 2.0]).exp())


def test_views_writes_and_numbers():
    x = Wrapper(torch.tensor([1.0, 2.0]))
    assert x[1].item() == 2.0 and bool(x[1])
    assert SEEN == ["aten.select.int", "aten._local_scalar_dense.default"] * 2
    SEEN.clear()
    y = x.add_(1)
    assert y is x and x.inner.tolist() == [2.0, 3.0] and x._version == 1 and SEEN == ["aten.add_.Tensor"]
    torch.add(x, 1, out=x)
    assert SEEN[-1] == "aten.add.out" and x.inner.tolist() == [3.0, 4.0]


def test_history_of_writes():
    x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = x * 1
    y.mul_(x)
    y.exp_()
    y.sum().backward()
    torch.testing.assert_close(x.grad.inner, torch.tensor([2.0, 4.0]) * torch.tensor([1.0, 4.0]).exp())


def test_who_declines():
    class Declines(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="all __torch_dispatch__ handlers returned NotImplemented"):
        Declines(torch.ones(2)).abs()
    assert Declines(torch.ones(2)).shape == (2,)


class Counting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_modes_see_factories_writes_and_derivatives():
    with Counting() as mode:
        x = torch.ones(2, requires_grad=True)
        y = (x * 3).sum()
        y.backward()
        x.detach().zero_()
    assert mode.seen[:3] == ["aten.ones.default", "aten.mul.Tensor", "aten.sum.default"]
    assert mode.seen[-2:] == ["aten.detach.default", "aten.zero_.default"]
    assert x.grad.tolist() == [3.0, 3.0]


def test_modes_nest_and_end():
    class Doubling(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) * 2

    with Counting() as outer, Doubling():
        assert torch.ones(1).tolist() == [2.0]
    assert outer.seen == ["aten.ones.default", "aten.mul.Tensor"]
    assert torch.ones(1).tolist() == [1.0]


def test_overloads_are_one_object():
    assert torch.ops.aten.add.Tensor is torch.ops.aten.add.Tensor
    assert torch.ops.aten.add.out.overloadpacket is torch.ops.aten.add
    assert torch.ops.aten.add_.Tensor.__name__ == "add_.Tensor"


def test_schemas_say_what_is_written():
    def written(overload):
        return [a.name for a in overload._schema.arguments if a.alias_info is not None and a.alias_info.is_write]

    assert written(torch.ops.aten.add.Tensor) == []
    assert written(torch.ops.aten.add_.Tensor) == ["self"]
    assert written(torch.ops.aten.add.out) == ["out"]
    assert torch.ops.aten.add.Tensor._schema.name == "aten::add"


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x > 1, "aten.gt.Scalar"),
        (lambda x: x.eq_(1), "aten.eq_.Scalar"),
        (lambda x: x % 2, "aten.remainder.Scalar"),
        (lambda x: 1 - x, "aten.rsub.Scalar"),
        (lambda x: x**2, "aten.pow.Tensor_Scalar"),
        (lambda x: 2**x, "aten.pow.Scalar"),
        (lambda x: x & 1, "aten.bitwise_and.Scalar"),
        (lambda x: x.clamp(min=1), "aten.clamp.default"),
        (lambda x: x.clamp(torch.tensor(1)), "aten.clamp.Tensor"),
        (lambda x: torch.eq(x, 1, out=torch.empty(3, dtype=torch.bool)), "aten.eq.Scalar_out"),
        (lambda x: x > x.inner, "aten.gt.Tensor"),
        (lambda x: x + 1, "aten.add.Tensor"),
        (lambda x: x.mul_(2), "aten.mul_.Tensor"),
        (lambda x: x // 2, "aten.floor_divide.default"),
    ],
)
def test_numbers_have_overloads_of_their_own(call, expected):
    call(Wrapper(torch.arange(1, 4)))
    assert SEEN == [expected]


def test_sequences_arrive_as_lists():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            given.append((str(func), args[1:]))
            return func(*args, **(kwargs or {}))

    given: list = []
    x = torch.ones(2, 3)
    with Mode():
        x.sum((0, 1))
        x.permute(1, 0)
    assert given == [("aten.sum.dim_IntList", ([0, 1],)), ("aten.permute.default", ([1, 0],))]


def test_a_wrapper_may_keep_its_tensor_by_any_name():
    x = Wrapper(torch.ones(2, 3))
    x._data = x.inner
    assert x.numel() == x.nelement() == 6
    assert (x.shape, x.size(1), x.stride(), x.dim(), x.device) == ((2, 3), 3, (3, 1), 2, torch.device("cpu"))
    assert (x + 1).inner.tolist() == [[2.0] * 3] * 2 and x._data is x.inner
