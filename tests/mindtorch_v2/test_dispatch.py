"""How a call finds its kernel: overloads, keywords, numbers for tensors, devices, default dtype, subclasses and modes, registered kernels."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import overrides as _overrides

t = torch.tensor


# Overloads and arguments


def test_positional_and_keyword_forms_meet() -> None:
    x = torch.arange(6.0).view(2, 3)
    for result in (
        torch.sum(x, 1),
        torch.sum(x, dim=1),
        torch.sum(input=x, dim=1),
        torch.sum(x, axis=1),
        torch.sum(x, (1,)),
        torch.sum(x, [1]),
        x.sum(1),
        x.sum(dim=(1,)),
        x.sum(-1),
    ):
        assert result.tolist() == [3.0, 12.0]
    assert x.sum(1, True).shape == (2, 1)
    assert x.sum(1, keepdim=True, dtype=torch.float64).dtype is torch.float64


def test_sizes_as_arguments_or_as_a_list() -> None:
    assert (
        torch.zeros(2, 3).shape
        == torch.zeros((2, 3)).shape
        == torch.zeros([2, 3]).shape
        == torch.zeros(size=(2, 3)).shape
    )
    x = torch.arange(6)
    assert x.view(2, 3).shape == x.view((2, 3)).shape == x.view(torch.Size([2, 3])).shape
    assert x.reshape(3, 2).permute(1, 0).shape == x.reshape((3, 2)).permute((1, 0)).shape
    assert x.view(t(2), 3).shape == (2, 3)
    assert torch.zeros(np.int64(2), 3).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.sum(), TypeError),
        (lambda: torch.zeros(2).add(), TypeError),
        (lambda: torch.zeros(2).add(1, 2, 3), TypeError),
        (lambda: torch.zeros(2).add(foo=1), TypeError),
        (lambda: torch.zeros(2).add("a"), TypeError),
        (lambda: torch.exp(1.0), TypeError),
        (lambda: torch.exp([1.0]), TypeError),
        (lambda: torch.exp(None), TypeError),
        (lambda: torch.zeros("a"), TypeError),
        (lambda: torch.zeros(1.5), TypeError),
        (lambda: torch.zeros(2, dtype="float32"), TypeError),
        (lambda: torch.cat(torch.zeros(2)), TypeError),
        (lambda: torch.cat([torch.zeros(2), 1]), TypeError),
        (lambda: torch.zeros(2, 3).transpose(0), TypeError),
        (lambda: torch.zeros(2).sum(0, 0, 0, 0), TypeError),
    ],
)
def test_wrong_arguments_are_type_errors(call, error) -> None:
    with pytest.raises(error):
        call()


def test_a_bool_is_no_int() -> None:
    with pytest.raises(TypeError):
        torch.zeros(2, 3).transpose(True, False)


@pytest.mark.parametrize("number", [2, 2.0, True, np.float32(2), np.int64(2)])
def test_numbers_stand_for_tensors(number) -> None:
    x = torch.ones(2)
    assert (x + number).tolist() == [1 + float(number)] * 2
    assert (number * x).tolist() == [float(number)] * 2
    assert torch.add(x, number).tolist() == [1 + float(number)] * 2


def test_reflected_operators() -> None:
    x = t([2.0, 4.0])
    assert (1 - x).tolist() == [-1.0, -3.0]
    assert (8 / x).tolist() == [4.0, 2.0]
    assert (7 // x).tolist() == [3.0, 1.0]
    assert (2**x).tolist() == [4.0, 16.0]
    assert (5 % x).tolist() == [1.0, 1.0]
    assert (np.float64(1) * x).tolist() == [2.0, 4.0]


def test_operators_with_strangers() -> None:
    with pytest.raises(TypeError):
        torch.ones(2) + "a"
    with pytest.raises(TypeError):
        torch.ones(2) + None
    assert (torch.ones(2) == "a") is False
    assert (torch.ones(2) != None) is True  # noqa: E711


# Promotion


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (lambda: t([1]), lambda: 1.5, "float32"),
        (lambda: t([1.0]), lambda: t(1.5, dtype=torch.float64), "float32"),
        (lambda: t(1.0), lambda: t(1.5, dtype=torch.float64), "float64"),
        (lambda: t([1], dtype=torch.int8), lambda: t(5), "int8"),
        (lambda: t([1], dtype=torch.int32), lambda: t([5]), "int64"),
        (lambda: t([1], dtype=torch.uint8), lambda: t([1], dtype=torch.int8), "int16"),
        (lambda: t([True]), lambda: 1, "int64"),
        (lambda: t([True]), lambda: True, "bool"),
        (lambda: t([1.0], dtype=torch.float16), lambda: t([1.0], dtype=torch.bfloat16), "float32"),
        (lambda: t([1.0], dtype=torch.bfloat16), lambda: 2.5, "bfloat16"),
        (lambda: t([1.0]), lambda: 1j, "complex64"),
        (lambda: t([1.0], dtype=torch.float64), lambda: 1j, "complex128"),
        (lambda: t([1]), lambda: t(1j), "complex64"),
        (lambda: t(1), lambda: t([True]), "int64"),
        (lambda: t([1], dtype=torch.int16), lambda: t(1.0), "float32"),
    ],
)
def test_promotion(left, right, expected) -> None:
    result = left() + right()
    assert str(result.dtype) == f"torch.{expected}"
    assert torch.result_type(left(), right()) is result.dtype
    meta = left().to("meta")
    other = right()
    other = other.to("meta") if isinstance(other, torch.Tensor) else other
    assert (meta + other).dtype is result.dtype


def test_default_dtype() -> None:
    assert torch.get_default_dtype() is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert t(1.5).dtype is torch.float64
        assert torch.zeros(1).dtype is torch.float64
        assert (t([1]) / 2).dtype is torch.float64
        assert (t([1]) + 1.5).dtype is torch.float64
        assert t(1j).dtype is torch.complex128
        assert torch.arange(0, 1, 0.5).dtype is torch.float64
        assert torch.ones(2, dtype=torch.float32).add(1.5).dtype is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError):
        torch.set_default_dtype(torch.int64)


# out= and in place


def test_out_is_returned_and_resized() -> None:
    out = torch.empty(0)
    result = torch.add(t([1.0, 2.0]), 1, out=out)
    assert result is out and out.tolist() == [2.0, 3.0]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(3), 1, out=torch.zeros(2))


def test_out_keeps_a_storage_and_counts_a_version() -> None:
    out = torch.zeros(2)
    pointer, version = out.data_ptr(), out._version
    torch.mul(t([1.0, 2.0]), 2, out=out)
    assert (out.data_ptr(), out._version) == (pointer, version + 1)


def test_out_cannot_lose_a_category() -> None:
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.add(t([1.0]), 1, out=torch.zeros(1, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        t([1]).add_(1.5)
    assert torch.add(t([1]), 1, out=torch.zeros(1)).dtype is torch.float32


def test_out_of_several_results() -> None:
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    result = torch.max(t([[1.0, 3.0], [4.0, 2.0]]), 1, out=(values, indices))
    assert result.values is values and result.indices is indices
    assert (values.tolist(), indices.tolist()) == ([3.0, 4.0], [1, 0])


def test_in_place_cannot_grow() -> None:
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        torch.zeros(3).add_(torch.zeros(2, 3))


def test_named_results() -> None:
    result = torch.sort(t([3, 1, 2]))
    assert result.values.tolist() == [1, 2, 3] and result.indices.tolist() == [1, 2, 0]
    values, indices = result
    assert isinstance(result, tuple) and values is result[0] and indices is result[1]
    assert type(result).__name__ == "sort"


# Devices


def test_two_devices_do_not_mix() -> None:
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(2) + torch.ones(2, device="meta")


def test_meta_has_no_values() -> None:
    x = torch.ones(2, device="meta")
    with pytest.raises(RuntimeError):
        x.item()
    with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
        x.tolist()
    with pytest.raises(NotImplementedError):
        x.nonzero()
    with pytest.raises(NotImplementedError):
        x.cpu()


# Subclasses and modes


class Logged(torch.Tensor):
    """Keeps the names of the functions that were called on it."""

    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.fixture
def logged():
    Logged.calls = []
    return t([1.0, 2.0]).as_subclass(Logged)


def test_a_subclass_sees_functions_methods_and_operators(logged) -> None:
    result = torch.add(logged, 1)
    logged.sum()
    logged * 2
    2 - logged
    assert type(result) is Logged
    assert "add" in Logged.calls and "sum" in Logged.calls
    assert len(Logged.calls) >= 4


def test_a_subclass_takes_part_wherever_it_stands(logged) -> None:
    assert type(torch.ones(2) + logged) is Logged
    assert type(torch.stack([torch.ones(2), logged])) is Logged
    assert type(torch.add(torch.ones(2), other=logged)) is Logged


def test_a_subclass_keeps_its_attributes_to_itself(logged) -> None:
    logged.note = "a"
    assert not hasattr(logged + 1, "note")


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_nobody_implements() -> None:
    x = t([1.0]).as_subclass(Refusing)
    with pytest.raises(TypeError, match="no implementation found|Multiple dispatch failed"):
        torch.exp(x)


class Duck:
    """No tensor, but it answers for functions."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return "quack", func.__name__, len(args)


def test_anything_with_torch_function_answers() -> None:
    assert torch.add(Duck(), 1) == ("quack", "add", 2)
    assert torch.add(torch.ones(1), Duck()) == ("quack", "add", 2)
    assert torch.stack([Duck(), torch.ones(1)]) == ("quack", "stack", 1)


def test_a_function_mode_sees_calls_without_subclasses() -> None:
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.add(torch.ones(2), 1)
    count = len(seen)
    torch.add(torch.ones(2), 1)
    assert "add" in seen and "ones" in seen and len(seen) == count


def test_function_modes_nest_and_may_answer_themselves() -> None:
    class Answer(torch.overrides.TorchFunctionMode):
        def __init__(self, value):
            super().__init__()
            self.value = value

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.exp:
                return self.value
            return func(*args, **(kwargs or {}))

    with Answer(1):
        with Answer(2):
            assert torch.exp(torch.ones(1)) == 2
        assert torch.exp(torch.ones(1)) == 1
    assert torch.is_tensor(torch.exp(torch.ones(1)))


def test_a_mode_belongs_to_its_thread() -> None:
    found = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            found.append("mode")
            return func(*args, **(kwargs or {}))

    with Mode():
        thread = threading.Thread(target=lambda: torch.exp(torch.ones(1)))
        thread.start()
        thread.join()
        assert found == []


def test_disabled_torch_function(logged) -> None:
    Logged.calls = []
    with torch.overrides.DisableTorchFunctionSubclass():
        result = logged + 1
    assert Logged.calls == [] and type(result) is torch.Tensor


def test_has_and_handle_torch_function(logged) -> None:
    has, handle = torch.overrides.has_torch_function, torch.overrides.handle_torch_function
    assert has((logged,)) and not has((torch.ones(1),))

    def mine(x):
        if has((x,)):
            return handle(mine, (x,), x)
        return "plain"

    assert mine(torch.ones(1)) == "plain"
    assert mine(logged) == "plain" and Logged.calls[-1] == "mine"


# The surface


def test_aliases_are_the_same_operator() -> None:
    x = t([1.0, -2.0])
    for one, other in (
        ("absolute", "abs"),
        ("multiply", "mul"),
        ("greater", "gt"),
        ("arctan", "atan"),
        ("negative", "neg"),
    ):
        assert (
            getattr(torch, one)(*([x] * (2 if other in ("mul", "gt") else 1))).tolist()
            == getattr(torch, other)(*([x] * (2 if other in ("mul", "gt") else 1))).tolist()
        )


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        torch.no_such_function  # noqa: B018
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'no_such_method'"):
        torch.ones(1).no_such_method  # noqa: B018


# Kernels from outside; in processes of their own, since fast paths go for good when one is registered


def _alone(text: str) -> None:
    lead = "import numpy as np, mindtorch_v2 as torch\nfrom mindtorch_v2._dispatch import registry\n"
    found = subprocess.run(
        [sys.executable, "-c", lead + textwrap.dedent(text)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_a_registered_kernel_replaces_the_schema_s() -> None:
    _alone(
        """
        calls = []
        def sin(a):
            calls.append(a.shape)
            return np.sin(a) + 100
        registry.register("sin", "cpu", sin)
        assert registry.get("sin", "cpu") is sin
        x = torch.zeros(2, requires_grad=True)
        assert torch.sin(x).tolist() == x.sin().tolist() == [100.0, 100.0] and calls == [(2,), (2,)]
        assert torch.zeros(2).sin_().tolist() == [100.0, 100.0]
        x.sin().sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
        assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
        """
    )


def test_a_new_operator_needs_a_rule() -> None:
    _alone(
        """
        from mindtorch_v2._rules.spec import Spec
        try:
            registry.register("twice", "cpu", lambda x: x * 2)
        except ValueError as error:
            assert "needs meta=" in str(error)
        else:
            raise AssertionError("no error")
        op = registry.register("twice", "cpu", lambda x: x * 2, meta=lambda x: Spec(tuple(x.shape), x.dtype))
        assert op.function(torch.ones(2)).tolist() == [2.0, 2.0]
        assert op.function(torch.ones(2, device="meta")).is_meta
        try:
            registry.get("nothing", "cpu")
        except KeyError:
            pass
        else:
            raise AssertionError("no error")
        """
    )


def test_a_kernel_for_another_device_leaves_fast_paths_alone() -> None:
    _alone(
        """
        from mindtorch_v2 import _state
        registry.register("add.Tensor", "npu", lambda a, b, alpha: a)
        assert torch.Tensor in _state.PLAIN
        assert (torch.ones(1) + 1).item() == 2
        """
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda out: torch.sum(torch.ones(3), out=out), "sum() received an invalid combination of arguments - got (Tensor, out=Tensor)"),
        (lambda out: torch.argsort(torch.ones(3), out=out), "argsort() received an invalid combination of arguments - got (Tensor, out=Tensor)"),
        (lambda out: torch.median(torch.ones(3), out=out), 'median() missing 1 required positional arguments: "dim"'),
    ],
)  # fmt: skip
def test_overloads_without_a_buffer_take_none(call, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        call(torch.empty(()))


def test_another_overload_takes_the_buffer():
    assert torch.arange(0, 3, out=torch.empty(0, dtype=torch.int32)).tolist() == [0, 1, 2]
    assert torch.norm(torch.ones(4), 2, out=torch.empty(())).item() == 2


@pytest.mark.parametrize(("name", "seen"), [("DisableTorchFunctionSubclass", 2), ("DisableTorchFunction", 0)])
def test_what_sees_functions_while_classes_do_not(name, seen):
    """Modes do, unless they are switched off too."""
    count = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            count.append("mode")
            return func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            count.append("class")
            return super().__torch_function__(func, types, args, kwargs or {})

    sub = torch.ones(2).as_subclass(Sub)
    count.clear()
    with Mode(), getattr(_overrides, name)():
        torch.ones(2)
        sub + 1
    assert count == ["mode"] * seen
