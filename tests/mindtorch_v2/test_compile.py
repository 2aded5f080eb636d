"""`torch.compile`: compiled programs give what they give uncompiled, bit for bit, and do what Python says."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from _pipeline_drawing import draw_program
from _pipeline_programs import smallest_problem
from hypothesis import given, settings, strategies as st
from strategies import Picker

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._compiling import choice
from mindtorch_v2._compiling.choice import Compiled, run_waiting
from mindtorch_v2._dispatch import native
from mindtorch_v2._dispatch.pipeline import rows
from mindtorch_v2._dispatch.pipeline.context import Careful
from mindtorch_v2.nn import functional as F


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a few elements go by parts of a few."""
    monkeypatch.setattr(rows, "LEAST", 4)
    monkeypatch.setattr(rows, "PART", 64)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call is too short to be measured."""
    monkeypatch.setattr(choice, "TINY", 0)


def apart(function: Callable[[], Any]) -> Any:
    """What a function gives in a thread of its own, which has no pipeline."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result()


def same(first: Any, second: Any) -> bool:
    """Whether two tensors agree in every bit, and in geometry."""
    if first is None or second is None:
        return first is second
    return (
        first.shape == second.shape
        and first.stride() == second.stride()
        and first.dtype is second.dtype
        and first.requires_grad == second.requires_grad
        and first.detach().numpy().tobytes() == second.detach().numpy().tobytes()
    )


# ----------------------------------------------------------------------------------------------------------- programs


def rms_norm(x: Any, w: Any, c: Any, y: Any) -> Any:
    return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rope(x: Any, w: Any, c: Any, y: Any) -> Any:
    half = x.shape[-1] // 2
    return x * c + torch.cat((-x[..., half:], x[..., :half]), -1) * w


def swiglu(x: Any, w: Any, c: Any, y: Any) -> Any:
    return F.silu(x) * y


def gelu_by_hand(x: Any, w: Any, c: Any, y: Any) -> Any:
    h = x * y + w
    return 0.5 * h * (1 + torch.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))


def block(x: Any, w: Any, c: Any, y: Any) -> Any:
    return swiglu(rope(rms_norm(x, w, c, y), w, c, y), w, c, y) + x


def softmax_of_scores(x: Any, w: Any, c: Any, y: Any) -> Any:
    return torch.softmax((x * 0.3 + c).masked_fill(y > 0, -1e9), -1) * w


def norms(x: Any, w: Any, c: Any, y: Any) -> Any:
    h = F.layer_norm(x * 2 + y, (x.shape[-1],), w)
    return F.rms_norm(h + c, (x.shape[-1],), w).exp(), h.amax(-1, keepdim=True) - h


def products(x: Any, w: Any, c: Any, y: Any) -> Any:
    h = F.gelu(x @ (y.transpose(-1, -2) * 0.1)) * 0.5
    return torch.relu(h + 1).sum(), h


def masks(x: Any, w: Any, c: Any, y: Any) -> Any:
    return torch.where(x > y, x * c, -y).clamp(min=-1) ** 2, (x > 0) & (y > 0)


PROGRAMS = [rms_norm, rope, swiglu, gelu_by_hand, block, softmax_of_scores, norms, products, masks]
SHAPES = [(4, 6, 8), (3, 16), (2, 3, 5, 4), (7, 2)]


def inputs(shape: tuple[int, ...], dtype: Any, grad: bool, layout: str = "contiguous") -> list[Any]:
    torch.manual_seed(0)
    made = [torch.randn(shape), torch.randn(shape[-1]), torch.randn(shape[-2:]), torch.randn(shape)]
    if layout == "transposed":
        made = [m.mT.contiguous().mT if m.dim() > 1 else m for m in made]
    return [m.to(dtype).requires_grad_(grad) for m in made]


def outcome(call: Callable[..., Any], args: list[Any]) -> list[Any]:
    """Results, and gradients where some are wanted."""
    result = call(*args)
    results = list(result) if isinstance(result, tuple) else [result]
    wanted = [r for r in results if r.requires_grad]
    if wanted:
        torch.manual_seed(1)
        torch.autograd.backward(wanted, [torch.randn(r.shape).to(r.dtype) for r in wanted])
    return [*results, *[a.grad for a in args]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.usefixtures("small_parts")
def test_programs_give_the_same_bits(program: Callable[..., Any], grad: bool, dtype: Any) -> None:
    for shape in SHAPES:
        for layout in ("contiguous", "transposed"):
            plain = outcome(program, inputs(shape, dtype, grad, layout))
            waiting = outcome(lambda *args: run_waiting(program, args, {}), inputs(shape, dtype, grad, layout))
            as_float = [[None if t is None else t.detach().float().numpy() for t in both] for both in (plain, waiting)]
            for one, other, a, b in zip(plain, waiting, *as_float):
                assert one is other is None or (one.stride() == other.stride() and a.tobytes() == b.tobytes())


def test_large_programs_go_by_parts() -> None:
    def run() -> None:
        for program in (block, norms, softmax_of_scores):
            args = inputs((3, 200, 500), torch.float32, False)
            pipe = Careful()
            plain, waiting = program(*args), run_waiting(program, tuple(args), {}, pipe)
            for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (plain, waiting))):
                assert same(one, other)
            assert native.extension is None or pipe.saved > 0

    apart(run)


PROGRAMS_DRAWN = 60


@pytest.mark.parametrize("share", range(4))
@pytest.mark.usefixtures("small_parts")
def test_drawn_programs(share: int) -> None:
    """Programs of operators from the whole schema, with views, writes, errors, random numbers and gradients."""

    def run() -> None:
        for number in range(share, PROGRAMS_DRAWN, 4):
            program = draw_program(Picker(random.Random(f"compiled {number}").randint), 20)
            problem = smallest_problem(replace(program, careful=True, pipeline=""))
            assert problem is None, problem

    apart(run)


UNARY = [torch.neg, torch.exp, torch.tanh, torch.sigmoid, torch.relu, F.silu, F.gelu, torch.abs, torch.sqrt, torch.sin]
BINARY = [torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum]
BY_ROWS: list[Callable[[Any], Any]] = [
    lambda x: x.mean(-1, keepdim=True),
    lambda x: x.sum(-1, keepdim=True),
    lambda x: x.amax(-1, keepdim=True),
    lambda x: torch.softmax(x, -1),
    lambda x: torch.cat((x[..., 1:], x[..., :1]), -1),
    lambda x: x[..., ::2].repeat_interleave(2, -1)[..., : x.shape[-1]],
    lambda x: F.layer_norm(x, x.shape[-1:]),
    lambda x: x.logsumexp(-1, keepdim=True),
    lambda x: x.mT.contiguous().mT,
    lambda x: x.clone().mul_(0.5),
]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_random_chains(data: st.DataObject) -> None:
    rank = data.draw(st.integers(2, 4))
    shape = tuple(data.draw(st.integers(1, 6)) for _ in range(rank))
    lines = data.draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=14)
    )
    kept = data.draw(st.sets(st.integers(0, 14)))
    part = data.draw(st.sampled_from([2, 8, 32]))

    def program(x: Any, y: Any) -> list[Any]:
        values = [x, y]
        for kind, which, first, second in lines:
            a, b = values[first % len(values)], values[second % len(values)]
            if kind == 0:
                values.append(UNARY[which](a))
            elif kind == 1:
                values.append(BINARY[which % len(BINARY)](a, b))
            else:
                values.append(BY_ROWS[which](a))
        return [v for i, v in enumerate(values) if i in kept or i == len(values) - 1]

    def run() -> None:
        before = rows.LEAST, rows.PART
        rows.LEAST, rows.PART = 2, part
        try:
            torch.manual_seed(0)
            x, y = torch.randn(shape), torch.randn(shape)
            for one, other in zip(program(x, y), run_waiting(program, (x, y), {})):
                assert same(one, other)
        finally:
            rows.LEAST, rows.PART = before

    apart(run)


# ------------------------------------------------------------------------------------------------------ what Python says


def waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose operators wait in every call."""
    return lambda *args, **kwargs: run_waiting(function, args, kwargs)


def test_side_effects_branches_and_keywords() -> None:
    seen: list[float] = []

    def f(x: Any, *, scale: float = 1.0, more: dict | None = None) -> dict:
        h = x * scale
        seen.append(h.sum().item())
        if h.sum() > 0:
            h = h + 1
        return {"h": h, "list": [h * 2, (more or {}).get("y")], "n": len(seen)}

    x = torch.ones(3)
    made = waiting(f)(x, scale=2.0, more={"y": x})
    assert seen == [6.0] and made["n"] == 1 and made["list"][1] is x
    assert torch.equal(made["h"], torch.full((3,), 3.0)) and torch.equal(made["list"][0], torch.full((3,), 6.0))


def test_exceptions_come_where_they_are_caught() -> None:
    def f(x: Any, index: Any) -> Any:
        h = x * 2
        try:
            return (h + 1)[index]
        except IndexError:
            return h - 1
        finally:
            x.add_(1)

    x = torch.zeros(3)
    assert torch.equal(waiting(f)(x, torch.tensor([7])), torch.full((3,), -1.0))
    assert torch.equal(x, torch.ones(3))

    def g(x: Any) -> Any:
        kept.append(x * 3)
        raise KeyError("mine")

    kept: list[Any] = []
    with pytest.raises(KeyError, match="mine"):
        waiting(g)(x)
    assert kept[0].tolist() == [3.0, 3.0, 3.0]


def test_changes_in_place_of_inputs_and_of_views() -> None:
    def f(x: Any, y: Any) -> Any:
        before = x * 2
        x.mul_(3)
        x[0] += y[0]
        y.view(-1)[1:] = before.view(-1)[1:]
        return before + x

    outcomes = []
    for call in (f, waiting(f)):
        x, y = torch.arange(6.0).view(2, 3), torch.ones(2, 3)
        outcomes.append((call(x, y), x, y, x._version, y._version))
    for one, other in zip(*outcomes):
        assert same(one, other) if isinstance(one, torch.Tensor) else one == other


def test_random_numbers_and_dropout_keep_their_stream() -> None:
    def f(x: Any) -> Any:
        h = F.dropout(x * 2, 0.5) + torch.randn(4, 4)
        return torch.tanh(h) * torch.rand(4), torch.bernoulli(torch.sigmoid(h))

    results = []
    for call in (f, waiting(f)):
        torch.manual_seed(3)
        results.append([*call(torch.ones(4, 4)), torch.rand(2)])
    assert all(map(same, *results))


def test_grad_modes_and_hooks() -> None:
    seen: list[str] = []

    def f(x: Any) -> Any:
        h = torch.tanh(x * 2)
        h.register_hook(lambda g: seen.append("hook"))
        with torch.no_grad():
            factor = (h * 2).sigmoid()
        return (h * factor).sum(), h.detach() + 1

    grads = []
    for call in (f, waiting(f)):
        x = torch.arange(4.0).requires_grad_()
        loss, other = call(x)
        assert loss.grad_fn is not None and not other.requires_grad
        loss.backward()
        grads.append(x.grad)
    assert same(*grads) and seen == ["hook", "hook"]
    with torch.no_grad():
        assert not waiting(swiglu)(*inputs((2, 2), torch.float32, True)).requires_grad
    with torch.inference_mode():
        assert waiting(swiglu)(*inputs((2, 2), torch.float32, False)).is_inference()


def test_second_derivatives() -> None:
    def f(x: Any) -> Any:
        return (torch.sin(x * 2) * x).sum()

    found = []
    for call in (f, waiting(f)):
        x = torch.arange(3.0).requires_grad_()
        (first,) = torch.autograd.grad(call(x), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        found.append((first.detach(), second))
    assert same(found[0][0], found[1][0]) and same(found[0][1], found[1][1])


def test_arrays_see_what_is_written() -> None:
    def f(x: Any) -> Any:
        h = x * 2
        array = h.numpy()
        array[0] = 50
        return h + 1

    assert waiting(f)(torch.zeros(2)).tolist() == [51.0, 1.0]


def test_threads_in_and_around_compiled_functions() -> None:
    def f(x: Any) -> Any:
        h = torch.tanh(x) * 2
        found: list[float] = []
        thread = threading.Thread(target=lambda: found.append((h + 1).sum().item()))
        thread.start()
        thread.join()
        return h, found[0]

    x = torch.ones(5)
    h, total = waiting(f)(x)
    assert same(h, torch.tanh(x) * 2) and total == (h + 1).sum().item()
    compiled = torch.compile(block)
    args = inputs((2, 8, 16), torch.float32, False)
    want = block(*args)
    with ThreadPoolExecutor(4) as executor:
        assert all(same(r, want) for r in executor.map(lambda _: compiled(*args), range(40)))


# ------------------------------------------------------------------------------------------------------ what is made


def test_functions_keep_what_they_are() -> None:
    compiled = torch.compile(block, fullgraph=True, dynamic=False, mode="max-autotune")
    assert compiled is not block and compiled.__name__ == "block" and compiled.__wrapped__ is block
    assert compiled._torchdynamo_orig_callable is block and torch.compile(compiled) is compiled
    assert torch.compile(block, disable=True) is block and torch.compile(disable=True)(block) is block
    assert torch.compile(len)([1, 2]) == 2
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(block, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unrecognized mode=x, should be one of: default, lite"):
        torch.compile(block, mode="x")
    with pytest.raises(AssertionError, match="A callable function is expected"):
        torch.compile(3)

    class Callable_:
        @torch.compile
        def method(self, x: Any) -> Any:
            return (self, x * 2)

        @torch.compile(backend="eager")
        def other(self, x: Any) -> Any:
            return x + 1

    one = Callable_()
    assert one.method(torch.ones(1))[0] is one and one.other(torch.ones(1)).item() == 2

    @torch.compile
    class Called:
        def __call__(self, x: Any) -> Any:
            return x * 3

    assert isinstance(Called, type) and Called()(torch.ones(1)).item() == 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 12), nn.Linear(12, 6)
        self.norm = nn.LayerNorm(6)

    def forward(self, x: Any) -> Any:
        return x + self.down(F.gelu(self.up(self.norm(x))) * 0.5)


@pytest.mark.usefixtures("measured", "small_parts")
def test_modules() -> None:
    def run() -> None:
        torch.manual_seed(0)
        plain = Net()
        wrapped, inside = copy.deepcopy(plain), copy.deepcopy(plain)
        compiled = torch.compile(wrapped)
        assert inside.compile(mode="default") is None
        x = torch.randn(5, 6)
        for _ in range(10):
            for module in (plain, compiled, inside):
                module.zero_grad()
            outs = [module(x) for module in (plain, compiled, inside)]
            for out in outs:
                out.square().sum().backward()
            assert same(outs[0], outs[1]) and same(outs[0], outs[2])
            for one, two, three in zip(plain.parameters(), wrapped.parameters(), inside.parameters()):
                assert same(one.grad, two.grad) and same(one.grad, three.grad)
        hooked: list[Any] = []
        handle = inside.register_forward_hook(lambda *a: hooked.append(a))
        inside(x)
        handle.remove()
        assert len(hooked) == 1
        again = pickle.loads(pickle.dumps(inside))
        assert again._compiled_call_impl is None and same(again(x), plain(x))
        assert list(compiled.state_dict()) == ["_orig_mod." + name for name in plain.state_dict()]
        copied = copy.deepcopy(compiled)
        assert copied._orig_mod is not wrapped and same(copied(x), plain(x))

    apart(run)


@pytest.mark.usefixtures("measured", "small_parts")
def test_a_choice_is_made_for_each_geometry() -> None:
    def run() -> None:
        compiled = Compiled(block)
        for shape in ((4, 8, 16), (2, 2)):
            args = inputs(shape, torch.float32, False)
            want = block(*args)
            for _ in range(2 * choice.ROUNDS + 4):
                assert same(compiled(*args), want)
        assert len(compiled.choices) == 2 and all(c.waits is not None for c in compiled.choices.values())
        choice.reset()
        assert not compiled.choices

    apart(run)


def test_tiny_work_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> None:
        compiled = Compiled(swiglu)
        args = inputs((2, 2), torch.float32, False)
        for _ in range(3):
            compiled(*args)
        (found,) = compiled.choices.values()
        assert found.waits is False

    monkeypatch.setattr(choice, "TINY", 1 << 60)
    apart(run)


def test_within_a_pipeline_and_within_each_other() -> None:
    inner = torch.compile(swiglu)
    outer = torch.compile(lambda *args: inner(*args) * 2)
    args = inputs((3, 4), torch.float32, False)
    want = swiglu(*args) * 2
    assert same(outer(*args), want) and same(waiting(outer)(*args), want)
    with torch.pipeline():
        assert same(outer(*args), want)

    def with_a_pipeline(*args: Any) -> Any:
        h = swiglu(*args)
        with torch.pipeline():
            h = h * 2
        return h

    assert same(waiting(with_a_pipeline)(*args), want)


def test_meta_tensors_and_transforms() -> None:
    assert waiting(swiglu)(*[a.to("meta") for a in inputs((3, 4), torch.float32, False)]).shape == (3, 4)
    x = torch.arange(3.0)
    compiled = torch.compile(lambda x: torch.sin(x) * 2)
    assert same(torch.func.vmap(compiled)(x), torch.sin(x) * 2)
    assert same(torch.func.grad(lambda x: compiled(x).sum())(x), torch.cos(x) * 2)


def test_arrays_of_numpy_stay_shared() -> None:
    array = np.zeros(4, np.float32)
    x = torch.from_numpy(array)
    made = waiting(lambda x: x.add_(1) * 2)(x)
    assert array.tolist() == [1.0] * 4 and made.tolist() == [2.0] * 4
