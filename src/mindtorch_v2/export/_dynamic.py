"""Programs with dynamic dimensions: which symbols there are, and what the steps are in terms of them; see Note [Sizes] in `_sizes.py`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from .. import arange
from .._compiling.refusals import ConstraintViolationError, GuardOnDataDependentSymNode, UserError, UserErrorType
from .._device import device
from .._tensor import Tensor
from ._recording import Described, Run, Step, Value
from ._sizes import Size, ValueRanges, fitted
from .dynamic_shapes import Dim, _DerivedDim, _DimHint, _DimHintType

Place = tuple[int, int]  # of a leaf, and a dimension of it
_RUNS = 5  # beside that of the example
_LEAST = 3  # the number of the run with the smallest sizes


@dataclasses.dataclass
class Symbol:
    """A size that may differ: its value in the example, its range, and the places whose size is `scale * value + plus`."""

    name: str
    value: int
    lower: int
    upper: int | None
    places: dict[Place, tuple[int, int]]
    word: str = ""
    relaxed: bool = False  # of Dim.AUTO: may turn out to be static
    source: str = ""

    @property
    def is_hint(self) -> bool:
        """Whether the program, and not the user, says what its range is."""
        return self.word.startswith("L[")

    def allowed(self, value: int) -> bool:
        """Whether the range has a value."""
        return value >= max(self.lower, 2) and (self.upper is None or value <= self.upper)


def symbols_of(leaves: list[Any], said: dict[int, dict[int, Any]], names: list[str]) -> list[Symbol]:
    """The symbols that dynamic shapes mean. said: by the place of a leaf."""
    found: dict[str, Symbol] = {}
    derived: list[tuple[Place, _DerivedDim, int]] = []
    for place, dimensions in said.items():
        for dim, what in sorted(dimensions.items()):
            size = int(leaves[place].shape[dim])
            source = f"L['{names[place]}'].size()[{dim}]"
            if isinstance(what, _DerivedDim):
                derived.append(((place, dim), what, size))
            elif isinstance(what, Dim):
                _named(found, what, size, (place, dim), (1, 0), source)
            elif isinstance(what, _DimHint) and what.type is not _DimHintType.STATIC:
                if size < 2:
                    if what.type is _DimHintType.AUTO:
                        continue
                    raise _specialized(source, size)
                word = f"{place} {dim}"
                found[word] = Symbol(
                    "", size, what.min or 0, what.max, {(place, dim): (1, 0)}, source, what.type is _DimHintType.AUTO
                )
    for at, what, size in derived:
        if (size - what.plus) % what.scale:
            raise UserError(
                UserErrorType.CONSTRAINT_VIOLATION,
                f"Expected input size {size} to be of the form {what.__name__}, where {what.root.__name__} is an integer",
            )
        _named(
            found,
            what.root,
            (size - what.plus) // what.scale,
            at,
            (what.scale, what.plus),
            f"L['{names[at[0]]}'].size()[{at[1]}]",
        )
    made = list(found.values())
    for number, one in enumerate(made):
        one.name = f"s{number}"
    return made


def _named(found: dict[str, Symbol], dim: Dim, value: int, at: Place, form: tuple[int, int], source: str) -> None:
    upper = None if dim.max == sys.maxsize else dim.max
    if value < max(dim.min, 0) or (upper is not None and value > upper):
        raise ConstraintViolationError(
            f"{value} not in range [{max(dim.min, 2)}, {'int_oo' if upper is None else upper}]"
        )
    if form == (1, 0) and value < 2:
        raise _specialized(dim.__name__, value, dim.__name__)
    one = found.setdefault(dim.__name__, Symbol("", value, dim.min, upper, {}, dim.__name__, source=source))
    if one.value != value:
        raise UserError(
            UserErrorType.CONSTRAINT_VIOLATION, f"{source} = {value} is not equal to {one.source} = {one.value}"
        )
    one.places[at] = form


def _specialized(word: str, value: int, fix: str | None = None, why: str = "") -> UserError:
    text = (
        f'Constraints violated ({word})! For more information, run with TORCH_LOGS="+dynamic".\n  - You marked {word} as dynamic but your code specialized it to be a '
        f"constant ({value}). If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
    )
    text += f"\n  - {why}" if why else ""
    return UserError(
        UserErrorType.CONSTRAINT_VIOLATION, text + (f"\n\nSuggested fixes:\n  {fix} = {value}\n" if fix else "")
    )


class Differs(Exception):
    """Two runs whose difference is not one of sizes alone."""


def resized(leaves: list[Any], symbols: list[Symbol], values: list[int]) -> list[Any]:
    """The leaves with other sizes: elements of the example, repeated or left out."""
    made = list(leaves)
    for one, value in zip(symbols, values):
        for (place, dim), (scale, plus) in one.places.items():
            made[place] = _resize(made[place], dim, scale * value + plus)
    return made


def _resize(tensor: Tensor, dim: int, size: int) -> Tensor:
    wanted = tensor.requires_grad
    if tensor.device.type == "meta":
        shape = [*tensor.shape]
        shape[dim] = size
        made = tensor.detach().new_empty(shape)
        return made.requires_grad_() if wanted else made
    made = tensor.detach().index_select(dim, arange(size, device=tensor.device) % tensor.shape[dim])
    return made.requires_grad_() if wanted else made


def _values(symbols: list[Symbol], number: int) -> list[int]:
    """The values of the symbols in a further run: near the example, about twice as large, and at the ends of the ranges; different ones where that can be."""
    values: list[int] = []
    for index, one in enumerate(symbols):
        far = one.upper if one.upper is not None and one.upper <= 8 * one.value else 4 * one.value + 3 + index
        wish = (
            one.value + 3 + 2 * index,
            one.value + 4 + 3 * index,
            2 * one.value + 1 + index,
            max(one.lower, 2),
            far,
        )[number]
        wishes = [wish, *(wish + turn for turn in range(1, 12)), *(wish - turn for turn in range(1, 12))]
        free = [wish for wish in wishes if one.allowed(wish)] or [one.upper or one.value]
        values.append(next((wish for wish in free if wish not in values), free[0]))
    return values


def explored(leaves: list[Any], symbols: list[Symbol], trace: Callable[..., Run]) -> tuple[Run, list[Symbol]]:
    """The run of the example in terms of the symbols, and those that are left: such as may be static and must be, are not. UserError for others."""
    first = trace(leaves)
    relaxed = [one for one in symbols if one.is_hint]
    if relaxed:
        symbols = _settled(leaves, first, [one for one in symbols if one not in relaxed], relaxed, trace)
    symbols = [one for one in symbols if one.upper != max(one.lower, 2)]
    for number, one in enumerate(symbols):
        one.name = f"s{number}"
    if not symbols:
        return first, []
    failed = _failure(leaves, first, symbols, trace)
    if isinstance(failed, Run):
        return failed, symbols
    _refuse_equal(leaves, first, symbols, trace)
    for one in symbols:
        why = _failure(leaves, first, [one], trace)
        if not isinstance(why, Run):
            raise _specialized(one.word, one.value, one.word if one.word.isidentifier() else None, str(why))
    raise _specialized(", ".join(one.word for one in symbols), symbols[0].value, None, str(failed))


def _refuse_equal(leaves: list[Any], first: Run, symbols: list[Symbol], trace: Callable) -> None:
    """Say so where two symbols must be equal."""
    for index, one in enumerate(symbols):
        for other in symbols[index + 1 :]:
            if other.value == one.value and isinstance(_failure(leaves, first, [_tied([one, other])], trace), Run):
                raise UserError(
                    UserErrorType.CONSTRAINT_VIOLATION,
                    f'Constraints violated ({one.word}, {other.word})! For more information, run with TORCH_LOGS="+dynamic".\n  - The values of {other.word} = {other.source} and '
                    f"{one.word} = {one.source} must always be equal.\n\nSuggested fixes:\n  {other.word} = {one.word}\n",
                )


def _tied(symbols: list[Symbol]) -> Symbol:
    """One symbol for the places of several."""
    places = {at: form for one in symbols for at, form in one.places.items()}
    return dataclasses.replace(symbols[0], places=places, lower=max(one.lower for one in symbols))


def _settled(leaves: list[Any], first: Run, named: list[Symbol], hints: list[Symbol], trace: Callable) -> list[Symbol]:
    """Named symbols, and of those without a name the ones that can differ, alone or with others of their size."""
    kept, rest = [], []
    for one in hints:
        (kept if isinstance(_failure(leaves, first, [one], trace), Run) else rest).append(one)
    while rest:
        one = rest.pop(0)
        group = [other for other in rest if other.value == one.value]
        tied = _tied([one, *group])
        if group and isinstance(_failure(leaves, first, [tied], trace), Run):
            kept.append(tied)
            rest = [other for other in rest if other not in group]
        elif not one.relaxed:
            raise _specialized(one.word, one.value, None, str(_failure(leaves, first, [one], trace)))
    found = [*named, *kept]
    if kept and not isinstance(_failure(leaves, first, found, trace), Run) and all(one.relaxed for one in kept):
        return named
    return found


def _failure(leaves: list[Any], first: Run, symbols: list[Symbol], trace: Callable) -> Run | Exception:
    """The run in terms of symbols; what speaks against it otherwise."""
    for number, one in enumerate(symbols):
        one.name = f"s{number}"
    runs, sizes = [first], [{one.name: one.value for one in symbols}]
    for number in range(_RUNS):
        values = _values(symbols, number)
        at = {one.name: value for one, value in zip(symbols, values)}
        if at in sizes:
            continue
        try:
            runs.append(trace(resized(leaves, symbols, values)))
        except (UserError, GuardOnDataDependentSymNode):
            raise
        except Exception as error:  # noqa: BLE001 (whatever a program raises is why it does not run at that size)
            if number == _LEAST and all(one.is_hint for one in symbols):
                for one in symbols:
                    one.lower = one.value  # what is less is not known to run
                continue
            shown = ", ".join(f"{one.word} = {value}" for one, value in zip(symbols, values))
            return Differs(f"The program does not run where {shown}: {type(error).__name__}: {error}")
        sizes.append(at)
    try:
        run = _merged(runs, sizes)
    except Differs as error:
        return error
    return _seen_far(leaves, run, symbols, [max(one[name] for one in sizes) for name in sizes[0]], trace)


def _seen_far(leaves: list[Any], run: Run, symbols: list[Symbol], tried: list[int], trace: Callable) -> Run | Exception:
    """The run, unless the program does something else at sizes that no memory has room for: there it runs on meta tensors.

    Where it cannot (an error, elements that it asks for) nothing is known, and nothing is said. Hints become ranges of what was tried.
    """
    far = [
        max(one.value, one.upper if one.upper is not None and one.upper < 5000 else 1009 * one.value + 13)
        for one in symbols
    ]
    if all(one.upper is not None and one.upper <= most for one, most in zip(symbols, tried)):
        return run
    at = {one.name: value for one, value in zip(symbols, far)}
    try:
        other = trace(resized([_on_meta(leaf) for leaf in leaves], symbols, far), True)
    except Exception:  # noqa: BLE001 (a program may raise anything at sizes that it was not made for, and does when it is run)
        return run
    if _agrees(run, other, at):
        return run
    if all(one.is_hint for one in symbols):
        for one, most in zip(symbols, tried):
            one.upper = most
        return run
    shown = ", ".join(f"{one.word} = {value}" for one, value in zip(symbols, far))
    return Differs(f"The program calls other operators where {shown}.")


def _on_meta(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf
    made = leaf.detach().to("meta")
    return made.requires_grad_() if leaf.requires_grad else made


def _agrees(run: Run, other: Run, sizes: dict[str, int]) -> bool:
    """Whether a run without data has the steps of a run, with the integers that its expressions give."""

    def same(ours: Any, theirs: Any) -> bool:
        if isinstance(ours, Size):
            return ours.at(sizes) == theirs
        if isinstance(ours, list):
            return isinstance(theirs, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
        if isinstance(ours, dict):
            return list(ours) == list(theirs) and all(same(ours[name], theirs[name]) for name in ours)
        return isinstance(ours, device) or bool(ours == theirs)

    return len(run.steps) == len(other.steps) and all(
        (ours.target, ours.count) == (theirs.target, theirs.count)
        and same(ours.args, theirs.args)
        and same(ours.kwargs, theirs.kwargs)
        for ours, theirs in zip(run.steps, other.steps)
    )


def _merged(runs: list[Run], sizes: list[dict[str, int]]) -> Run:
    """The first run with expressions where the others have other integers. Differs where that is not all."""
    first = runs[0]
    if any(len(one.steps) != len(first.steps) for one in runs):
        raise Differs("The program calls other operators at other sizes.")
    steps = []
    for parts in zip(*(one.steps for one in runs)):
        step = parts[0]
        if any((one.target, one.count, one.grad) != (step.target, step.count, step.grad) for one in parts):
            raise Differs(
                f"The program calls other operators at other sizes: {' or '.join(sorted({str(one.target) for one in parts}))} where {step.trace}"
            )
        args = _one([one.args for one in parts], sizes, step)
        kwargs = _one([one.kwargs for one in parts], sizes, step)
        steps.append(dataclasses.replace(step, args=args, kwargs=kwargs))
    for name, tensor in first.constants.items():
        for other in runs[1:]:
            if name not in other.constants or not _same(tensor, other.constants[name]):
                raise Differs("The program makes tensors of numbers that depend on sizes.")
    outputs = _one([one.outputs for one in runs], sizes, None)
    described = {value: _shape(value, one, runs, sizes) for value, one in first.described.items()}
    return dataclasses.replace(first, steps=steps, outputs=outputs, described=described)


def _same(first: Tensor, second: Tensor) -> bool:
    return first is second or (
        first.shape == second.shape and first.dtype == second.dtype and bool((first == second).all())
    )


def _shape(value: Value, one: Described, runs: list[Run], sizes: list[dict[str, int]]) -> Described:
    shapes = [run.described[value].shape for run in runs]
    if any(len(shape) != len(one.shape) for shape in shapes):
        raise Differs("A tensor has another number of dimensions at other sizes.")
    shape = tuple(numbers[0] if len(set(numbers)) == 1 else fitted(numbers, sizes) or "u0" for numbers in zip(*shapes))
    return dataclasses.replace(one, sizes=shape)


def _one(parts: list[Any], sizes: list[dict[str, int]], step: Step | None) -> Any:
    """What several runs have in one place."""
    first = parts[0]
    if isinstance(first, Value):
        if any(one != first for one in parts):
            raise Differs("The program takes other tensors at other sizes.")
        return first
    if isinstance(first, (list, dict)):
        if any(type(one) is not type(first) or len(one) != len(first) for one in parts):
            raise Differs(f"A list has another length at other sizes{_at(step)}")
        if isinstance(first, dict):
            if any(list(one) != list(first) for one in parts):
                raise Differs(f"Arguments have other names at other sizes{_at(step)}")
            return {name: _one([one[name] for one in parts], sizes, step) for name in first}
        return [_one(list(ones), sizes, step) for ones in zip(*parts)]
    if all(type(one) is type(first) and one == first for one in parts):
        return first
    if all(type(one) is int for one in parts):
        found = fitted(parts, sizes)
        if found is not None:
            return found
    raise Differs(
        f"{first} becomes {', '.join(dict.fromkeys(str(one) for one in parts[1:] if one != first))} at other sizes, which follows from them in no way that a graph can say{_at(step)}"
    )


def _at(step: Step | None) -> str:
    return f": {step.target} where {step.trace}" if step is not None else ""


def ranges(symbols: list[Symbol]) -> dict[Size, ValueRanges]:
    """The ranges of the symbols."""
    return {Size(((1, (one.name,)),)): ValueRanges(max(one.lower, 2), one.upper) for one in symbols}


__all__ = ["explored", "ranges", "symbols_of"]
