"""Tensors, views, changes in place, histories, versions and storages against a small model, in random programs. `STEPS=10000` makes so many steps.

The model (`_stateful_model.py`) holds elements in numpy and derivatives as whole matrices. Forks, signals, memory limits and pipelines come in between and change nothing.
`STATEFUL=torch` tries the model against PyTorch where that is installed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from _stateful_model import Made, Refused, in_place, out_of_place
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

torch: Any = importlib.import_module(os.environ.get("STATEFUL", "mindtorch_v2"))
STEPS = int(os.environ.get("STEPS", "600"))
PROGRAM = 40
"""Steps of one program."""
LARGE = 1e5
AT_ONCE = 12
"""Tensors that a program has, at most."""
taken: Counter[str] = Counter()
"""What was done."""

SHAPES = [(), (3,), (2, 3), (3, 1), (2, 2, 2), (0, 2), (1,)]


def pipelines(on: bool) -> Any:
    return torch.pipeline() if on and hasattr(torch, "pipeline") else contextlib.nullcontext()


@contextlib.contextmanager
def signals(on: bool) -> Iterator[None]:
    """A signal that comes somewhere in the midst, whose handler computes with tensors."""
    if not on:
        yield
        return

    def handler(number: int, frame: object) -> None:
        taken["signals"] += 1
        with torch.enable_grad():
            x = torch.ones(3, requires_grad=True)
            (x * 2).tanh().sum().backward()
            x.detach().mul_(2)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 5e-5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Tensors(RuleBasedStateMachine):
    """Real tensors beside the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[Any, Made]] = []

    def add(self, real: Any, model: Made) -> None:
        self.pairs.append((real, model))
        if len(self.pairs) > AT_ONCE:
            del self.pairs[len(self.pairs) // 2]

    def pick(self, at: int) -> tuple[Any, Made]:
        return self.pairs[-1 if at < 40 else at % len(self.pairs)]  # often the newest

    # ------------------------------------------------------------------------------------------------------------ making

    @initialize(grad=st.booleans())
    def begin(self, grad: bool) -> None:
        self.create(2, 1, grad)

    @rule(shape=st.integers(0, len(SHAPES) - 1), seed=st.integers(0, 9), grad=st.sampled_from([True, True, False]))
    def create(self, shape: int, seed: int, grad: bool) -> None:
        """A new leaf."""
        values = np.random.default_rng(seed).uniform(-1, 1, SHAPES[shape])
        real = torch.tensor(values.tolist(), dtype=torch.float64).reshape(SHAPES[shape]).clone().requires_grad_(grad)
        self.add(real, Made.leaf(values, grad))

    # ------------------------------------------------------------------------------------------------------------- views

    @rule(at=st.integers(0, 99), kind=st.integers(0, 7), a=st.integers(0, 3), b=st.integers(0, 3), piped=st.booleans())
    def view(self, at: int, kind: int, a: int, b: int, piped: bool) -> None:
        """A view of one that is there."""
        real, model = self.pick(at)
        dims = len(model.shape)
        with pipelines(piped):
            if kind == 0 and dims:
                dim = a % dims
                start, length = b % (model.shape[dim] + 1), None
                length = (model.shape[dim] - start + 1) // 2
                pair = real.narrow(dim, start, length), model.narrow(dim, start, length)
            elif kind == 1 and dims and model.shape[a % dims]:
                index = b % model.shape[a % dims]
                pair = real.select(a % dims, index), model.select(a % dims, index)
            elif kind == 2 and dims > 1:
                pair = real.transpose(a % dims, b % dims), model.transpose(a % dims, b % dims)
            elif kind == 3 and dims < 4:
                pair = real.unsqueeze(a % (dims + 1)), model.unsqueeze(a % (dims + 1))
            elif kind == 4 and dims and 1 in model.shape:
                shape = tuple(3 if size == 1 else size for size in model.shape)
                pair = real.expand(shape), model.expand(shape)
            elif kind == 5 and dims and model.contiguous:
                pair = real.view(-1), model.flat()
            elif kind == 6:
                pair = real.detach(), model.detach()
            elif kind == 7 and dims and model.shape[a % dims] > 1:
                index = (slice(None),) * (a % dims) + (slice(None, None, 2),)
                pair = real[index], model.every_second(a % dims)
            else:
                return
        self.add(*pair)

    # --------------------------------------------------------------------------------------------------------- operators

    @rule(
        at=st.integers(0, 99), other=st.integers(0, 99), kind=st.sampled_from(["add", "mul", "tanh", "scale", "clone", "sum"]),
        grad=st.sampled_from([True, True, True, False]),
        piped=st.booleans(), signalled=st.booleans(),
    )  # fmt: skip
    def operator(self, at: int, other: int, kind: str, grad: bool, piped: bool, signalled: bool) -> None:
        """A result of its own."""
        real, model = self.pick(at)
        real2, model2 = self.pick(other)
        if model2.shape != model.shape:
            real2, model2 = real, model
        if model.large(LARGE) or model2.large(LARGE):
            return
        functions: dict[str, Callable[[], Any]] = {
            "add": lambda: real + real2,
            "mul": lambda: real * real2,
            "tanh": lambda: real.tanh(),
            "scale": lambda: real * 0.5,
            "clone": lambda: real.clone(),
            "sum": lambda: real.sum(),
        }
        with torch.set_grad_enabled(grad), pipelines(piped), signals(signalled):
            result = functions[kind]()
        self.add(result, out_of_place(kind, model, model2, grad, result.stride()))

    @rule(
        at=st.integers(0, 99), other=st.integers(0, 99), kind=st.sampled_from(["add_", "mul_", "copy_", "tanh_", "scale_", "zero_"]),
        grad=st.sampled_from([True, True, False]), piped=st.booleans(), signalled=st.booleans(),
    )  # fmt: skip
    def change(self, at: int, other: int, kind: str, grad: bool, piped: bool, signalled: bool) -> None:
        """A change in place, of all that share the memory."""
        real, model = self.pick(at)
        real2, model2 = self.pick(other)
        if model2.shape != model.shape or model2.memory is model.memory:
            real2, model2 = (
                torch.full(model.shape, 0.5, dtype=torch.float64),
                Made.leaf(np.full(model.shape, 0.5), False),
            )
        if model.large(LARGE) or model2.large(LARGE):
            return
        functions: dict[str, Callable[[], Any]] = {
            "add_": lambda: real.add_(real2),
            "mul_": lambda: real.mul_(real2),
            "copy_": lambda: real.copy_(real2),
            "tanh_": lambda: real.tanh_(),
            "scale_": lambda: real.mul_(-1.5),
            "zero_": lambda: real.zero_(),
        }
        grad = grad and not model.family.replaced
        try:
            in_place(kind, model, model2, grad)
        except Refused as refused:
            taken["changes refused"] += 1
            with pytest.raises(RuntimeError, match=str(refused)), torch.set_grad_enabled(grad), pipelines(piped):
                functions[kind]()
                real.tolist()
            return
        with torch.set_grad_enabled(grad), pipelines(piped), signals(signalled):
            functions[kind]()

    @rule(at=st.integers(0, 99))
    def replace(self, at: int) -> None:
        """Other memory for a tensor that has no history."""
        real, model = self.pick(at)
        if model.family.node is not None or not model.is_base:
            return
        values = np.linspace(0, 1, int(np.prod(model.shape))).reshape(model.shape)
        real.data = torch.tensor(values.tolist(), dtype=torch.float64).reshape(model.shape).clone()
        model.replace(values)

    # ---------------------------------------------------------------------------------------------------------- histories

    @rule(at=st.integers(0, 99), piped=st.booleans(), signalled=st.booleans())
    def backward(self, at: int, piped: bool, signalled: bool) -> None:
        """Gradients of all leaves, or the error where what was kept has changed since."""
        with pipelines(piped), signals(signalled):
            have = [(real, model) for real, model in self.pairs if model.family.node is not None and not model.is_leaf]
            self.differentiate(*(have[at % len(have)] if have else self.pick(at)))

    def differentiate(self, real: Any, model: Made) -> None:
        if model.family.node is None or model.family.replaced:
            return
        for leaf, its in self.pairs:
            if its.is_leaf:
                leaf.grad = None
        taken["backward passes"] += 1
        if model.family.node.stale():
            taken["of what has changed"] += 1
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                real.sum().backward(retain_graph=True)
            return
        real.sum().backward(retain_graph=True)
        for leaf, its in self.pairs:
            if its.is_leaf:
                expected = model.gradient(its)
                given = np.zeros(its.shape) if leaf.grad is None else np.array(leaf.grad.tolist()).reshape(its.shape)
                np.testing.assert_allclose(given, 0 * given if expected is None else expected, rtol=1e-7, atol=1e-9)

    # -------------------------------------------------------------------------------------------------------- disturbances

    @precondition(lambda self: hasattr(os, "fork") and len(self.pairs) > 3)
    @rule(at=st.integers(0, 99), often=st.integers(0, 3))
    def fork(self, at: int, often: int) -> None:
        """A child in which all is as it was, and goes on, and of which the parent sees nothing."""
        if often:
            return
        taken["forks"] += 1
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            code = 1
            try:
                self.all_is_as_the_model_says()
                real, _ = self.pick(at)
                with torch.no_grad(), pipelines(True):
                    real.detach().clone().mul_(2).tolist()
                self.differentiate(real, self.pick(at)[1])
                with torch.no_grad():
                    for each, model in self.pairs:
                        if not model.overlaps:
                            each.zero_()
                code = 0
            except BaseException:  # noqa: BLE001 (the parent is told by the status)
                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0

    @rule(at=st.integers(0, 99), often=st.integers(0, 3), piped=st.booleans())
    def limit(self, at: int, often: int, piped: bool) -> None:
        """Memory that there is not: an error, after which all is as it was."""
        if often:
            return
        real, _ = self.pick(at)
        before = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), before[1]))
        taken["memory limits"] += 1
        try:
            with pytest.raises((RuntimeError, MemoryError)), pipelines(piped):
                (real.sum().expand(1 << 26) * 2 + 1).sum().item()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    # ------------------------------------------------------------------------------------------------------------- checks

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        """Geometry, versions, elements, histories, and who shares memory with whom."""
        taken["steps"] += 1
        for real, model in self.pairs:
            assert tuple(real.shape) == model.shape
            assert real.stride() == model.stride
            if real.numel():
                assert real.storage_offset() == model.offset
            assert real._version == model.family.version[0], (real._version, model.family.version)
            assert (real.grad_fn is None) == (model.family.node is None or model.is_leaf)
            assert real.is_leaf == (model.family.node is None or model.is_leaf)
            np.testing.assert_allclose(
                np.array(real.detach().tolist()).reshape(model.shape), model.values, rtol=1e-9, atol=1e-12
            )
        for real, model in self.pairs:
            for real2, model2 in self.pairs:
                if model.memory.size and model2.memory.size:
                    same = real.untyped_storage().data_ptr() == real2.untyped_storage().data_ptr()
                    assert same == (model.memory is model2.memory)


def test_random_programs() -> None:
    taken.clear()
    run_state_machine_as_test(
        Tensors,
        settings=settings(
            max_examples=STEPS // 20 + 5, stateful_step_count=PROGRAM, deadline=None, database=None, derandomize=STEPS < 1000,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], phases=[Phase.generate, Phase.shrink],
        ),
    )  # fmt: skip
    print(dict(taken))
    assert taken["steps"] >= STEPS
