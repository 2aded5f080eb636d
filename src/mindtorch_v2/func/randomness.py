"""Random operators inside `vmap`: whether examples draw the same numbers, different ones, or none at all."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _state
from .._dispatch import ops
from .._dispatch.operator import Operator
from .._random.generator import default_generator
from .._state import TLS
from .batched import MODES, at, batched, check_target, is_inplace, line_up, mapped, run_rows, stack, tensors_in
from .rules import at_once, operators_by_name


@functools.cache
def _drawing() -> dict[str, tuple[Operator, ...]]:
    """Operators that draw, by the names of their functions, those in place too."""
    found: dict[str, tuple[Operator, ...]] = {}
    for name, overloads in operators_by_name().items():
        own = tuple(op for op in overloads if "random" in op.tags or "draws" in op.tags)
        if own:
            found[name] = own
            if any("inplace" in op.variants for op in own):
                found[f"{name}_"] = own
    return found


def _tagged(name: str, tag: str) -> bool:
    return any(tag in op.tags for op in _drawing()[name])


class RandomMode:
    """A function mode that a level of `vmap` enters: it answers for random operators."""

    def __init__(self, level: int, size: int, randomness: str):
        self.level = level
        self.size = size
        self.randomness = randomness

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.draws(name, args):
            return self.drawn(func, name, args, kwargs)
        _state.leave_special()  # this mode is switched off while it answers
        try:
            return func(*args, **kwargs)
        finally:
            _state.enter_special()

    def draws(self, name: str, args: tuple) -> bool:
        """Whether a function of this name draws numbers."""
        return name in _drawing() and (_tagged(name, "draws_refused") or not _draws_nothing(name, args))

    def drawn(self, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        """The result of a function that draws."""
        if _tagged(name, "draws_refused"):
            raise RuntimeError(f"vmap: we do not yet support aten::{name}. Please file an issue")
        if kwargs.get("out") is not None:
            raise RuntimeError(
                "vmap: We do not support calling out variants of random operations. Please use non-out variants as a workaround"
            )
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags "
                "on vmap or perform the randomness operation out of vmap"
            )
        return (self._same if self.randomness == "same" else self._different)(func, name, args, kwargs)

    def _same(self, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        is_mine = at(self.level)
        if not any(is_mine(t) for t in tensors_in((args, kwargs))):
            return func(*args, **kwargs)
        if _tagged(name, "draws_apart") or (is_inplace(name) and any(is_mine(a) for a in args[1:])):
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
            )
        first = args[0]
        if is_inplace(name) and is_mine(first) and _tagged(name, "random"):
            example = ops.empty(tuple(first._value.shape[1:]), dtype=first.dtype, device=first._value.device)
            ops.copy_(first._value, ops.expand(func(example, *args[1:], **kwargs), tuple(first._value.shape)))
            return first
        if _tagged(name, "creation") and is_mine(first):
            return func(first._value[0], *args[1:], **kwargs)
        generator = kwargs.get("generator") or default_generator
        state = generator.get_state()

        def again(*given: Any, **named: Any) -> Any:
            generator.set_state(state)
            return func(*given, **named)

        rows = run_rows(again, args, kwargs, self.level)
        return first if is_inplace(name) else stack(rows, self.level)

    def _different(self, func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        level = self.level
        is_mine = at(level)
        given = tensors_in((args, kwargs))
        if is_inplace(name):
            if not is_mine(args[0]):
                check_target(name, args[0], given, is_mine)
                raise RuntimeError(
                    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this "
                    "is necessary for your usage, please file an issue with functorch."
                )
            func(args[0]._value, *(line_up(a, is_mine, args[0].dim()) for a in args[1:]), **kwargs)
            return args[0]
        sized = next((i for i in range(len(args) - 1, -1, -1) if isinstance(args[i], (list, tuple))), None)
        if not given and sized is not None and not _tagged(name, "draws_by_rows"):  # a shape
            return batched(func(*args[:sized], [self.size, *args[sized]], *args[sized + 1 :], **kwargs), level)
        if given and not _tagged(name, "draws_by_rows"):
            if not any(is_mine(t) for t in given):
                args = mapped(args, lambda t: batched(ops.expand(t, (self.size, *t.shape)), level))
            found = at_once(func, name, args, kwargs, is_mine)
            if found is not None:
                return found
        if _tagged(name, "draws_by_rows") or not given:
            if any(is_mine(t) for t in given):
                return stack(run_rows(func, args, kwargs, level), level)
            return stack([func(*args, **kwargs) for _ in range(self.size)], level)
        width = max(t.dim() for t in given)
        lined_up = mapped(args, lambda t: line_up(t, is_mine, width))
        if not any(is_mine(t) for t in given):
            lined_up = mapped(args, lambda t: ops.expand(t, (self.size, *t.shape)))
        return mapped(func(*lined_up, **kwargs), lambda t: batched(t, level))


def _draws_nothing(name: str, args: tuple) -> bool:
    """Whether a dropout or its like is switched off."""
    op = _drawing()[name][0]
    at = next((i for i, p in enumerate(op.params) if p.name in ("train", "training")), None)
    if at is None:
        return False
    given = args[at] if at < len(args) else op.params[at].default
    return given is not None and not given


class Outside:
    """Inside, the modes of `vmap` are switched off: what runs there is about whole batches, and takes the ordinary road."""

    def __enter__(self) -> None:
        self.before = TLS.function_modes
        kept = tuple(mode for mode in self.before if mode.__class__ is not RandomMode)
        TLS.function_modes = kept
        self.left = len(self.before) - len(kept)
        for _ in range(self.left):
            _state.leave_special()

    def __exit__(self, *exc: object) -> None:
        for _ in range(self.left):
            _state.enter_special()
        TLS.function_modes = self.before


class Refusing:
    """Inside, random operators are refused, as in a `vmap` whose randomness is "error"."""

    def __enter__(self) -> None:
        self.before = TLS.function_modes
        TLS.function_modes = (*self.before, RandomMode(len(MODES) + 1, 0, "error"))
        _state.enter_special()

    def __exit__(self, *exc: object) -> None:
        _state.leave_special()
        TLS.function_modes = self.before
