"""TorchScript: files of PyTorch's (recorded by `record_scripts.py`), archives made here, hostile ones among them, and traces."""

from __future__ import annotations

import base64
import copy
import gzip
import io
import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._script.errors import Error, ScriptError
from mindtorch_v2._script.module import RecursiveScriptModule, freeze
from mindtorch_v2._script.objects import Named
from mindtorch_v2._script.reader import load
from mindtorch_v2._script.tracing import TracerWarning, trace
from mindtorch_v2._script.writer import save

RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "data" / "scripts.json.gz").read_bytes()))


def archive(records: dict[str, Any]) -> io.BytesIO:
    """An archive of records, of text or bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in records.items():
            file.writestr(f"a/{name}", base64.b64decode(content["base64"]) if isinstance(content, dict) else content)
    buffer.seek(0)
    return buffer


def made(code: str, state: bytes = b"", **more: Any) -> Any:
    """The module of a class M of this code; state: instructions of a pickle for further attributes."""
    data = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x88" + state + b"ub."
    records = {"code/__torch__.py": code, "data.pkl": data, "constants.pkl": b"\x80\x02).", "version": "10\n"}
    return load(archive(records | more))


def method(body: str, header: str = "", **more: Any) -> Any:
    """A module whose `forward(self, x: Any)` has this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return made(f"{header}class M(Module):\n  training : bool\n  def forward(self, x: Any) -> Any:\n{lines}", **more)


def value(shown: Any) -> Any:
    """What `record_scripts.shown` wrote."""
    if isinstance(shown, list):
        return [value(one) for one in shown]
    if not isinstance(shown, dict):
        return shown
    ((kind, of),) = [(k, v) for k, v in shown.items() if k != "of"]
    if kind == "tensor":
        return torch.tensor(shown["of"], dtype=getattr(torch, of))
    if kind == "tuple":
        return tuple(value(one) for one in of)
    if kind == "complex":
        return complex(*of)
    return {value(k): value(v) for k, v in of}


def check(found: Any, expected: Any) -> None:
    """Equal in kinds and, up to rounding, in numbers."""
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(found, tuple if isinstance(expected, tuple) else list) and len(found) == len(expected)
        for one, other in zip(found, expected):
            check(one, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            check(found[key], expected[key])
    else:
        inexact = isinstance(expected, (float, complex))
        assert type(found) is type(expected)
        assert found == (pytest.approx(expected, rel=1e-6, nan_ok=True) if inexact else expected)


def compare(module: Any, calls: list) -> None:
    """The recorded calls, in their order."""
    for arguments, expected in calls:
        if isinstance(expected, dict) and "error" in expected:
            with pytest.raises((RuntimeError, Error)) as caught:
                module(*value(arguments))
            assert str(caught.value).strip().splitlines()[-1] == expected["error"]
        else:
            check(module(*value(arguments)), value(expected))


@pytest.mark.parametrize("name", RECORDED)
def test_files_of_pytorch(name):
    case = RECORDED[name]
    module = load(archive(case["records"]))
    again = module.save_to_buffer()  # as it is before it is called
    compare(module, case["calls"])
    compare(load(io.BytesIO(again)), case["calls"])


class TestModule:
    def test_members(self):
        module = load(archive(RECORDED["modules"]["records"]))
        assert isinstance(module, RecursiveScriptModule) and isinstance(module, nn.Module)
        assert module.original_name == "Modules" and repr(module.impl) == "RecursiveScriptModule(original_name=Scale)"
        assert set(module.state_dict()) == {
            f"{m}.{t}" for m in ("impl", "layers.0", "layers.1", "named.a") for t in ("w", "b")
        }
        assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in module.parameters())
        assert (
            module.names == ["p", "q"] and module.d == {"x": 1} and module.t == (1, 2.5, "s") and module.c.name == "RED"
        )
        assert module.bump() == 2 and module.bump(k=3) == 5 and module.count == 5 and module.twice == 10
        assert "def forward(" in module.code and "def bump(" in module.bump.code
        assert not module.eval().training and not module.impl.training
        module.count = 7
        assert module.bump(1) == 8
        with pytest.raises(RuntimeError, match="the attribute count has the type int, but got str"):
            module.count = "no"
        with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
            _ = module.nothing

    def test_state_is_shared_with_the_code(self):
        module = load(archive(RECORDED["convolutions"]["records"]))
        x = torch.ones(1, 2, 4, 4)
        before = module(x)
        before.sum().backward()
        assert module.head.weight.grad is not None
        module.load_state_dict({name: torch.zeros_like(t) for name, t in module.state_dict().items()})
        check(module(x), torch.full((1, 2), -0.6931472))
        assert module.to(torch.float64)(x.double()).dtype == torch.float64
        other = copy.deepcopy(module)
        other.head.bias.data.fill_(1.0)
        assert module.head.bias[0] == 0 and other._script_class is module._script_class
        frozen = freeze(module)
        assert not any(p.requires_grad for p in frozen.parameters()) and module.head.weight.requires_grad
        with pytest.raises(RuntimeError, match="in eval mode"):
            freeze(module.train())

    def test_to_meta(self):
        module = load(archive(RECORDED["recurrent"]["records"]), map_location="meta")
        assert {p.device.type for p in module.parameters()} == {"meta"}

    def test_extra_files(self, tmp_path):
        module = load(archive(RECORDED["branches"]["records"]))
        module.save(tmp_path / "m.pt", _extra_files={"a.txt": "text"})
        found = {"a.txt": "", "b.txt": "stays"}
        load(str(tmp_path / "m.pt"), _extra_files=found)
        assert found == {"a.txt": b"text", "b.txt": "stays"}
        with pytest.raises(ValueError, match="does not exist"):
            load(str(tmp_path / "none.pt"))
        with pytest.warns(UserWarning, match="looks like a TorchScript archive"):
            assert isinstance(torch.load(tmp_path / "m.pt", weights_only=False), RecursiveScriptModule)
        with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="Cannot use ``weights_only=True``"):
            torch.load(tmp_path / "m.pt")

    @pytest.mark.parametrize(
        ("arguments", "named", "text"),
        [
            (
                (3,),
                {},
                "forward() Expected a value of type 'Dict[str, int]' for argument 'd' but instead found type 'int'.",
            ),
            ((), {}, "forward() is missing value for argument 'd'"),
            (({}, 1), {}, "forward() expected at most 2 argument(s) but received 3 argument(s)"),
            (({},), {"k": 1}, "Unknown keyword argument 'k' for operator 'forward'"),
        ],
    )
    def test_arguments_that_do_not_fit(self, arguments, named, text):
        with pytest.raises(RuntimeError) as caught:
            load(archive(RECORDED["dicts"]["records"]))(*arguments, **named)
        assert text in str(caught.value)

    def test_results_with_names(self):
        pair = load(archive(RECORDED["classes"]["records"])).make(torch.ones(2), 3)
        assert isinstance(pair, Named) and pair.n == 3 and pair._fields == ("a", "n") and pair[1] == 3


def test_errors_say_where():
    with pytest.raises(Error) as caught:
        load(archive(RECORDED["raises"]["records"]))(-1)
    text = str(caught.value)
    assert (
        'File "code/__torch__/script_cases.py", line ' in text
        and "in forward" in text
        and text.endswith("ValueError: negative -1")
    )
    with pytest.raises(ScriptError, match=r"code/__torch__.py:4: there is no function open"):
        method("return open(x)")(1)
    with pytest.raises(
        RuntimeError, match=r"(?s)line 4, in forward\n    return torch.relu\(x, x\)  <--- HERE\n.*aten::relu of"
    ):
        method("return torch.relu(x, x)")(torch.ones(2))
    with pytest.raises(RuntimeError, match="the operator quantized::linear_dynamic is not there"):
        method("return ops.quantized.linear_dynamic(x, x)")(torch.ones(2))


def test_straight_code_sees_what_changes():
    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.register_buffer("shift", torch.ones(2))

        def forward(self, x):
            return torch.cat([self.inner(x), x + self.shift], 1).relu()

    body = Body()
    x, later = torch.tensor([[1.0, -2.0]]), torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    traced = trace(body, x)
    for _ in range(3):
        check(traced(x), body(x))
    weight, shift = nn.Parameter(torch.full((2, 2), 2.0)), torch.full((2,), 5.0)
    traced.inner.weight, traced.shift = weight, shift
    body.inner.weight, body.shift = weight, shift
    check(traced(later), body(later))
    traced.inner.bias, traced.inner.weight = None, nn.Parameter(torch.eye(2).double())
    with pytest.raises(RuntimeError, match=r"(?s)torch.linear\(.*<--- HERE.*same dtype"):
        traced(x)
    found = traced(x.double())
    check(found, torch.cat([x.double(), x.double() + 5], 1).relu())


def test_straight_code_of_numbers():
    module = made(
        """class M(Module):
  training : bool
  count : Optional[int]
  def bump(self, x: Tensor) -> Tensor:
    self.count = 3
    return x
  def forward(self, x: Any, y: Any) -> Any:
    a = torch.mul(x, y)
    before = self.count
    b = (self).bump(a, )
    after = self.count
    x0 = torch.add(b, 1)
    return [x0, before, after]
""",
        b"X\x05\x00\x00\x00countN",
    )
    x = torch.tensor([1, 2])
    assert [str(one) for one in module(x, 2)] == ["tensor([3, 5])", "None", "3"]
    assert module(x, 2.5)[0].tolist() == [3.5, 6.0] and module(x, x)[0].tolist() == [2, 5]
    assert module(2, 3)[0] == 7 and module(2.5, 2)[0] == 6.0


def test_operators_of_old_files():
    def ints(version: str) -> Any:
        return method("return torch.div(x, 2)", version=version)(torch.tensor([3, -3]))

    check(ints("3\n"), torch.tensor([1, -1]))
    check(ints("4\n"), torch.tensor([1.5, -1.5]))
    check(method("return torch.full(x, 2)", version="4\n")([2]), torch.tensor([2.0, 2.0]))


@pytest.mark.parametrize("rest", ("", ", None"))
def test_initial_values_are_drawn_without_history(rest):
    """As scripted functions of `nn.init` write it, which name the generator."""
    module = method(
        f"y = torch._no_grad_normal_(x, 1., 2.{rest})\nreturn (y, torch._no_grad_uniform_(torch.clone(x), -1., 1.{rest}))"
    )
    weight = nn.Parameter(torch.zeros(5))
    torch.manual_seed(3)
    normal, uniform = module(weight)
    torch.manual_seed(3)
    assert normal is weight and weight.is_leaf and torch.equal(weight, torch.zeros(5).normal_(1.0, 2.0))
    assert torch.equal(uniform, torch.zeros(5).uniform_(-1.0, 1.0))


def test_operators_that_traces_name():
    x = torch.ones(1, 1, 3)
    check(
        method('return torch._convolution_mode(x, x, None, [1], "same", [1], 1)')(x), torch.tensor([[[2.0, 3.0, 2.0]]])
    )
    padded = method("return torch.pad_sequence([x, torch.slice(x, 0, 0, 1)], True, 0.5)")(torch.ones(2))
    check(padded, torch.tensor([[1.0, 1.0], [1.0, 0.5]]))
    check(method("return torch.lift_fresh_copy(x)")(x), x)
    check(method("return torch.add(ops.prim.NumToTensor(torch.size(x, 2)), 1)")(x), torch.tensor(4))


def test_named_examples_come_in_any_order():
    class Quotient(nn.Module):
        def forward(self, above, less=None, below=None):
            return (above if less is None else above - less) / below

    above, less, below = torch.tensor([9.0, 5.0]), torch.tensor([1.0, 3.0]), torch.tensor([4.0, 8.0])
    traced = trace(Quotient(), example_kwarg_inputs={"below": below, "above": above, "less": less})
    check(traced(less=less, below=below, above=above), torch.tensor([2.0, 0.25]))
    check(traced(above, less, below), torch.tensor([2.0, 0.25]))
    check(trace(Quotient(), example_kwarg_inputs={"below": below, "above": above})(above, below), above / below)
    words = r"^'under' is not in forward\(\) method's arguments,\n {25}valid arguments name are \[above,less,below\]$"
    with pytest.raises(NameError, match=words):
        trace(Quotient(), example_kwarg_inputs={"above": above, "under": below})


def test_hooks_and_keywords():
    code = """class M(Module):
  __forward_pre_hooks__ = ["before", ]
  __forward_hooks__ = ["after", ]
  training : bool
  from : int
  def before(self, x: Tuple[int]) -> Any:
    return (torch.add((x)[0], self.from),)
  def after(self, x: Tuple[int], y: int) -> Any:
    return (x, y)
  def forward(self, x: int) -> int:
    return torch.mul(x, 2)
"""
    assert made(code, b"X\x04\x00\x00\x00fromK\x05")(3) == ((8,), 16)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("return x.__class__", "a Tensor has no attribute __class__"),
        ("return getattr(x, '__class__')", "a Tensor has no attribute __class__"),
        ("return torch.__class__(x)", "the operator aten::__class__ is not there"),
        ("return torch.__getattr__('os')", "the operator aten::__getattr__ is not there"),
        ("return ops.os.system('ls')", "the operator os::system is not there"),
        ("return ops.prim.__init__(x)", "the operator prim::__init__ is not supported"),
        ("return ('a').format(x)", "a str has no method format"),
        ("return self.__dict__", "has no attribute __dict__"),
        ("return self._library", "has no attribute _library"),
        ("x.data = 3", "a Tensor has no attribute data to set"),
        ("return __import__('os')", "there is no function __import__"),
        ("import os", "Import is no statement of TorchScript"),
        ("return (lambda: 1)()", "Lambda is no expression of TorchScript"),
        ("return [y for y in [x]]", "ListComp is no expression of TorchScript"),
        ("return f'{x}'", "JoinedStr is no expression of TorchScript"),
        ("return torch.load('x')", "the operator aten::load is not there"),
        ("return torch.mul([1], 99999999999)", "is too long"),
        ("return (self).forward(x, )", "RecursionError"),
        ("return y", "the variable y is not assigned"),
        ("return x[0:1]", "an index of this form"),
        ("return " + "(" * 500, "nested deeper than"),
        ("return " + "-" * 50000 + "1", "the code cannot be parsed"),
        ("return " + "x + " * 5000 + "x", "the code cannot be parsed"),
        ("return )", "this is not TorchScript"),
    ],
)
def test_hostile_code(body, text):
    with pytest.raises(RuntimeError) as caught:
        method(body)(torch.ones(2))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "os.system"),
        (b"\x80\x02c__torch__\nQ\n)\x81.", "the class __torch__.Q has no code in the archive"),
        (b"\x80\x02c__torch__.torch.classes.a\nB\n)\x81.", "is of C++"),
        (b"\x80\x02c__torch__\nM\n)\x81]b.", "the state of a __torch__.M is no dict"),
        (b"\x80\x02ctorch._utils\n_rebuild_qtensor\n.", "quantised tensors are not supported"),
        (b"\x80\x02c__torch__\nM\n)\x81q\x00}(X\x01\x00\x00\x00ah\x00ub.", "a module below itself"),
        (b"\x80\x02].", "holds no module, but a list"),
        (b"\x80\x02c__torch__\n", "ends early"),
    ],
)
def test_hostile_pickles(data, text):
    with pytest.raises(RuntimeError) as caught:
        method("return x", **{"data.pkl": data})
    assert text in str(caught.value)


def test_other_archives():
    buffer = io.BytesIO()
    torch.save(torch.ones(2), buffer)
    buffer.seek(0)
    with pytest.raises(RuntimeError, match="the file is no TorchScript"):
        load(buffer)
    for record, text in (
        ("model.json", "PyTorch 1.3 or older"),
        (".data/extern_modules", "an archive of torch.package"),
    ):
        with pytest.raises(RuntimeError, match=text):
            load(archive({record: ""}))
    with pytest.raises(RuntimeError, match="nothing is scripted|there is no TorchScript compiler"):
        save(nn.Linear(2, 2), io.BytesIO())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.seq = nn.Sequential(nn.Conv1d(1, 2, 2), nn.BatchNorm1d(2), nn.ReLU(inplace=True))
        self.register_buffer("k", torch.ones(3))
        self.same = self.lin
        self.eval()

    def forward(self, x: torch.Tensor, more: dict) -> Any:
        y = self.lin(x) * 2 + self.k + more["a"] + torch.tensor([1.0, 2.0, 3.0])
        y[0] = 1.0
        y[y > 2] = 0
        values, _ = self.same(y).max(1)
        return self.seq(y[:, None]), (values, list(y.chunk(2))), {"e": (y @ y.t()).softmax(-1)}


class TestTrace:
    def test_module(self):
        net, x, more = Net(), torch.arange(6.0).reshape(2, 3) / 5, {"a": torch.ones(3)}
        traced = trace(net, (x, more), strict=False)
        again = load(io.BytesIO(traced.save_to_buffer()))
        other = x.flip(0).repeat(2, 1)
        for module in (traced, again):
            check(module(x, more), net(x, more))
            check(module(other, more), net(other, more))  # operators that fit another size
            assert list(module.state_dict()) == list(net.state_dict())
        assert traced.lin is traced.same and traced.lin.weight is net.lin.weight and again.lin is again.same
        assert "torch.linear(" in traced.code
        traced(x, more)[0].sum().backward()
        assert net.seq[0].weight.grad is not None
        with pytest.raises(RuntimeError, match="Encountering a dict at the output of the tracer"):
            trace(net, (x, more))

    def test_function(self):
        x = torch.ones(2)
        traced = trace(lambda a, b: (a + b[0]).clamp(min=0) * a.numel(), (x, (x,)))
        check(traced(x, (-2 * x,)), torch.zeros(2))
        buffer = io.BytesIO()
        save(traced, buffer)
        check(load(io.BytesIO(buffer.getvalue()))(x, (x,)), 4 * x)

    def test_containers(self):
        net, x = (
            nn.Sequential(nn.Conv1d(1, 2, 3, padding="same"), nn.BatchNorm1d(2), nn.Softmax(-1)).eval(),
            torch.ones(1, 1, 5),
        )
        check(load(io.BytesIO(trace(net, x).save_to_buffer()))(x), net(x))

    def test_recurrent(self):
        lstm, x = nn.LSTM(3, 4, 2), torch.randn(5, 1, 3)
        check(load(io.BytesIO(trace(lstm, x).save_to_buffer()))(x), lstm(x))

    def test_what_is_not_the_same_again(self):
        counts: list[int] = []

        def program(x: torch.Tensor) -> torch.Tensor:
            counts.append(1)
            return x * len(counts)

        with pytest.warns(TracerWarning, match="does not match"):
            trace(program, torch.ones(2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trace(nn.Dropout(0.5), torch.ones(20))  # draws the same numbers
        with pytest.raises(RuntimeError, match="Only tensors, lists, tuples of tensors"):
            trace(lambda x: 3, torch.ones(2))
        with pytest.raises(RuntimeError, match="Type 'str' cannot be traced"):
            trace(lambda x: x, ("a",))


PROGRAM = """
import io
import sys
import torch

assert not torch.jit.is_scripting() and not isinstance(3, torch.jit.ScriptModule)
assert "mindtorch_v2._script.functions" not in sys.modules  # the interpreter comes with the first file

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()

net = Net()
traced = torch.jit.trace(net, torch.ones(1, 2))
buffer = io.BytesIO()
torch.jit.save(traced, buffer)
buffer.seek(0)
loaded = torch.jit.load(buffer, map_location="cpu")
assert torch.equal(loaded(torch.ones(3, 2)), net(torch.ones(3, 2)))
assert isinstance(loaded, torch.jit.ScriptModule) and torch.jit.script(loaded) is loaded
assert torch.jit.freeze(loaded.eval()).lin.weight.requires_grad is False
assert torch.jit.load.__module__ == "torch.jit._serialization" and torch.jit.Error is torch._C.JITException
"""


def test_as_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    subprocess.run([sys.executable, "-m", "mindtorch_v2", str(program)], check=True)
