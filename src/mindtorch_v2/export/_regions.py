"""Parts of a program under another grad mode than the whole.

Note [Regions]
Steps within `torch.no_grad()` are a graph of their own, which `wrap_with_set_grad_enabled` runs in that mode, as in PyTorch's graphs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from .._state import TLS
from ..utils import _pytree as pytree
from ._recording import Run, Step, Value
from ._sizes import Size


def wrap_with_set_grad_enabled(enable_grad: bool, wrapped_func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`wrapped_func(*args, **kwargs)` in a grad mode."""
    before, TLS.grad_enabled = TLS.grad_enabled, enable_grad
    try:
        return wrapped_func(*args, **kwargs)
    finally:
        TLS.grad_enabled = before


@dataclasses.dataclass
class Region:
    """Steps of one grad mode that follow each other, what they take of others, and what others take of them."""

    grad: bool
    steps: list[tuple[int, Step]]
    inputs: list[Value]
    outputs: list[Value]
    sizes: set[str]
    operator: Any = wrap_with_set_grad_enabled


def regions(run: Run) -> Iterator[tuple[int, Step] | Region]:
    """The steps of a run with their numbers, those of another grad mode put together."""
    pending: list[tuple[int, Step]] = []
    for number, step in enumerate(run.steps):
        if step.grad != run.grad:
            pending.append((number, step))
            continue
        if pending:
            yield _region(run, pending)
            pending = []
        yield number, step
    if pending:
        yield _region(run, pending)


def _region(run: Run, steps: list[tuple[int, Step]]) -> Region:
    numbers = {number for number, _ in steps}
    taken: dict[Value, None] = {}
    sizes: set[str] = set()
    for _, step in steps:
        for one in _leaves((step.args, step.kwargs)):
            if isinstance(one, Size):
                sizes.add(str(one))
                sizes.update(name for _, names in one.terms for name in names)
            elif isinstance(one, Value) and not (one.kind == "step" and one.key in numbers):
                taken.setdefault(one)
    others = [(step.args, step.kwargs) for number, step in enumerate(run.steps) if number not in numbers]
    wanted = {one for one in _leaves((others, run.outputs)) if isinstance(one, Value)}
    made = [value for number, step in steps for value in _results(number, step) if value in wanted]
    return Region(steps[0][1].grad, steps, list(taken), made, sizes)


def _results(number: int, step: Step) -> list[Value]:
    if step.count is None:
        return [Value("step", number)]
    return [Value("step", number, place) for place in range(step.count)]


def _leaves(tree: Any) -> list[Any]:
    return pytree.tree_leaves(tree, is_leaf=lambda one: isinstance(one, (Value, Size)))
