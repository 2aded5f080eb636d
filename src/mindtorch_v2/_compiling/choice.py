"""Running a function so that its operators wait for each other, where that takes less time than running them one by one.

Note [Choosing]
A compiled function is called as it is, every time: Python's side effects, branches and errors are its own. What differs is when its operators run. Inside of a `Careful`
pipeline those that cannot fail wait, and run in chains part by part; results are the same bit for bit, and recording costs some microseconds an operator. Which
way is faster depends on the function and on the sizes: of each geometry of the arguments the first calls are measured, in both ways by turns, and the others go the faster way.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from .._dispatch.pipeline.context import Careful
from .._pending import PendingPayload, current
from .._state import PLAIN, RECORDED, TLS, is_plain_class
from .._tensor import Tensor

TINY = 200_000
"""Nanoseconds that a call has to take at least for recording to be worth a try."""
ROUNDS = 3
"""Measured calls of each way."""
_LEAST_GAIN = 0.97
_MOST_GEOMETRIES = 256

_made: weakref.WeakSet[Compiled] = weakref.WeakSet()
stance = "default"
"""Of `torch.compiler.set_stance`: with `force_eager` every call is as it is."""


class Choice:
    """What was seen of one geometry: how many calls, the shortest of each way in nanoseconds, and what was chosen (None: nothing yet)."""

    __slots__ = ("calls", "eager", "waiting", "waits")

    def __init__(self) -> None:
        self.calls = 0
        self.eager = self.waiting = 1 << 62
        self.waits: bool | None = None


class Compiled:
    """A function that chooses by the geometry of its arguments whether its operators wait. See Note [Choosing]."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.choices: dict[Any, Choice] = {}
        _made.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Whatever else is active (a pipeline, modes, transforms, a profiler) sees the calls as they are.
        if not (PLAIN or RECORDED) or TLS.pipeline is not None or stance == "force_eager":
            return self.function(*args, **kwargs)
        key = (TLS.grad_enabled, *map(geometry, args), *[(k, geometry(v)) for k, v in kwargs.items()])
        choice = self.choices.get(key)
        if choice is None:
            if len(self.choices) >= _MOST_GEOMETRIES:
                self.choices.clear()
            choice = self.choices[key] = Choice()
        if choice.waits is None:
            return self._try(choice, args, kwargs)
        return run_waiting(self.function, args, kwargs) if choice.waits else self.function(*args, **kwargs)

    def _try(self, choice: Choice, args: tuple, kwargs: dict) -> Any:
        """A call that is measured. The first of each way is not counted: it makes plans."""
        number = choice.calls = choice.calls + 1
        waits = number % 2 == 0
        start = time.perf_counter_ns()
        if waits:
            pipe = Careful()
            result = run_waiting(self.function, args, kwargs, pipe)
            if pipe.saved == 0:  # nothing that could be gained
                choice.waits = False
                return result
        else:
            result = self.function(*args, **kwargs)
        spent = time.perf_counter_ns() - start
        if number <= 2:
            if spent < TINY and not waits:
                choice.waits = False
        elif waits:
            choice.waiting = min(choice.waiting, spent)
        else:
            choice.eager = min(choice.eager, spent)
            if spent < TINY:
                choice.waits = False
        if number >= 2 * ROUNDS + 2:
            choice.waits = choice.waiting < _LEAST_GAIN * choice.eager
        return result

    def __deepcopy__(self, memo: dict) -> Compiled:
        import copy

        return Compiled(copy.deepcopy(self.function, memo))


def run_waiting(function: Callable[..., Any], args: tuple, kwargs: dict, pipe: Careful | None = None) -> Any:
    """Call a function in a careful pipeline; its results are there when it returns."""
    with pipe or Careful():
        result = function(*args, **kwargs)
    _settle(result)
    return result


def _settle(result: Any) -> None:
    if isinstance(result, Tensor):
        if result._payload.__class__ is PendingPayload:
            current(result)
    elif isinstance(result, tuple | list):
        for item in result:
            _settle(item)
    elif isinstance(result, dict):
        for item in result.values():
            _settle(item)


def geometry(value: Any) -> Any:
    """What a choice goes by: shapes and dtypes of tensors, small values that programs branch on, classes of all else."""
    kind = value.__class__
    if kind is int or kind is bool or kind is str or value is None:
        return value
    if is_plain_class(kind):
        return (value._payload.shape, value._dtype)
    if kind is tuple or kind is list:
        return (kind, *map(geometry, value))
    if kind is dict:
        return (kind, *[(key, geometry(item)) for key, item in value.items()])
    return kind


def reset() -> None:
    """Forget all choices."""
    for one in list(_made):
        one.choices.clear()
