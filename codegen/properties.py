"""Property tests that follow from the schema of a package of operators (Note [Packages of operators] in `outside.py`).

    from mindtorch_v2.codegen.properties import cases

    @pytest.mark.parametrize("case", cases("my_ops.generated"), ids=str)
    def test_operator(case):
        case.check()

Every operator is called with arguments that are drawn by their types and by the entry's `sample:` hints: shapes with and without elements, that broadcast and that do not, several
dtypes and layouts. For each call: the CPU and meta give the same dtype, shape and strides, or the same error; in-place and `out=` forms and `vmap` give the same values; and what
has a derivative passes gradcheck.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_DTYPES = ("float32", "float64", "float32", "float16", "int64", "bool")
_NUMBERS: dict[str, tuple] = {
    "Scalar": (1, 2, -1, 0.5, 0),
    "float": (1e-3, 0.5, 1.0, 2.0),
    "int": (0, 1, -1, 2),
    "SymInt": (0, 1, -1, 2),
    "bool": (False, True),
}


@dataclass(frozen=True)
class Case:
    """One call of an operator: draw number `number` of the row."""

    package: Any
    row: dict[str, Any]
    number: int
    sample: Callable[[random.Random], tuple] | None = None

    def __str__(self) -> str:
        return f"{self.row['public']}-{self.number}"

    def arguments(self, torch: Any) -> tuple[list[Any], dict[str, Any]]:
        """Fresh arguments, positional and by name; the same each time."""
        draw = random.Random(f"{self.row['name']} {self.number}")
        if self.sample is not None:
            return list(self.sample(draw)), {}
        shape = tuple(
            draw.choice((1, 2, 3, 0)) if draw.random() < 0.3 else draw.randint(1, 4) for _ in range(draw.randint(0, 3))
        )
        dtype = draw.choice(_DTYPES)
        positional, named = [], {}
        for name, kind, has_default, keyword in self.row["parameters"]:
            if has_default and draw.random() < 0.5:
                if not keyword:
                    break
                continue
            value = _drawn(torch, draw, kind, self.row["hints"].get(name), shape, dtype)
            if keyword:
                named[name] = value
            else:
                positional.append(value)
        return positional, named

    def check(self) -> None:
        """AssertionError for what does not hold, with the arguments."""
        torch = importlib.import_module("mindtorch_v2")
        torch.ops.import_module(self.package.__name__)
        packet = getattr(getattr(torch.ops, self.package.NAMESPACE), self.row["public"])
        positional, named = self.arguments(torch)
        expected = _outcome(packet, positional, named)
        for what, problem in self._problems(torch, packet, expected):
            if problem:
                raise AssertionError(f"{self.row['public']}({_shown(positional, named)}): {what}: {problem}")

    def _problems(self, torch: Any, packet: Any, expected: Any) -> Iterator[tuple[str, str | None]]:
        forms = self.row["forms"]
        positional, named = self.arguments(torch)
        yield "meta", _geometry_differs(expected, _outcome(packet, _on_meta(torch, positional), _on_meta(torch, named)))
        if isinstance(expected, Exception):
            return
        results: tuple[Any, ...] = expected if isinstance(expected, tuple) else (expected,)
        if not all(isinstance(one, torch.Tensor) for one in results):
            return
        if "out" in forms:
            buffers: Any = tuple(torch.empty(0, dtype=one.dtype) for one in results)
            found = _outcome(packet, positional, {**named, "out": buffers if len(buffers) > 1 else buffers[0]})
            yield "out=", _values_differ(torch, expected, found)
        if "inplace" in forms and isinstance(positional[0], torch.Tensor):
            target = positional[0]
            if results[0].shape == target.shape and results[0].dtype is target.dtype:
                inplace = getattr(getattr(torch.ops, self.package.NAMESPACE), self.row["public"] + "_")
                found = _outcome(inplace, positional, named)
                yield (
                    "in place",
                    _values_differ(torch, expected, found) or (None if found is target else "another tensor came back"),
                )
        yield "vmap", self._vmap_differs(torch, packet)
        yield "gradcheck", self._gradient_differs(torch, packet)

    def _vmap_differs(self, torch: Any, packet: Any) -> str | None:
        positional, named = self.arguments(torch)
        if not isinstance(positional[0], torch.Tensor) or any(isinstance(v, torch.Tensor) for v in named.values()):
            return None
        first, rest = positional[0], positional[1:]
        batch = torch.stack([first, first.flip(tuple(range(first.dim()))) if first.dim() else first])
        found = torch.func.vmap(lambda one: packet(one, *rest, **named))(batch)
        rows = [packet(one, *rest, **named) for one in batch]
        many = isinstance(rows[0], tuple)
        expected = tuple(map(torch.stack, zip(*rows))) if many else torch.stack(rows)
        return _values_differ(torch, expected, tuple(found) if many else found)

    def _gradient_differs(self, torch: Any, packet: Any) -> str | None:
        positional, named = self.arguments(torch)
        names = [name for name, *_ in self.row["parameters"]]
        wanted = [
            place
            for place, value in enumerate(positional)
            if names[place] in self.row["differentiable"]
            and isinstance(value, torch.Tensor)
            and value.is_floating_point()
        ]
        if not wanted:
            return None
        given = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in positional]
        leaves = [given[place].detach().clone().requires_grad_() for place in wanted]

        def function(*leaves: Any) -> Any:
            values = list(given)
            for place, leaf in zip(wanted, leaves):
                values[place] = leaf
            return packet(*values, **named)

        try:
            torch.autograd.gradcheck(function, tuple(leaves), atol=1e-4, rtol=1e-3)
        except RuntimeError as error:
            return str(error)
        return None


def cases(
    package: str, number: int = 25, samples: dict[str, Callable[[random.Random], tuple]] | None = None
) -> list[Case]:
    """Cases of all operators of a package's generated modules (`my_ops.generated`).

    number: of calls of each operator. samples: by public name, a function of a `random.Random` to the arguments, for an operator whose arguments the types do not tell.
    """
    generated = importlib.import_module(package)
    rows = importlib.import_module(f"{package}.test_table").ROWS
    chosen = samples or {}
    return [Case(generated, row, n, chosen.get(row["public"])) for row in rows for n in range(number)]


def _drawn(torch: Any, draw: random.Random, kind: str, hint: Any, shape: tuple, dtype: str) -> Any:
    if hint is not None and not isinstance(hint, str):
        return hint
    if kind.endswith("?") and draw.random() < 0.3:
        return None
    base = kind.rstrip("?")
    if base == "Tensor":
        return _tensor(torch, draw, hint, shape, dtype)
    if base == "Tensor[]":
        return [_tensor(torch, draw, hint, shape, dtype) for _ in range(draw.randint(1, 3))]
    if base == "str":
        return hint
    element, bracket, _ = base.partition("[")
    if element not in _NUMBERS:
        raise NotImplementedError(f"no arguments are drawn of the type {kind}; give cases(samples=...)")
    return [draw.choice(_NUMBERS[element]) for _ in range(len(shape))] if bracket else draw.choice(_NUMBERS[element])


def _tensor(torch: Any, draw: random.Random, hint: Any, shape: tuple, dtype: str) -> Any:
    if draw.random() < 0.25:  # one that broadcasts
        shape = tuple(1 if draw.random() < 0.5 else size for size in shape[draw.randint(0, len(shape)) :])
    elif draw.random() < 0.1:
        shape = (*shape, draw.randint(2, 5))
    values = np.random.default_rng(draw.getrandbits(32)).normal(size=shape)
    if hint is not None:
        values = np.abs(values) + 0.5
    made = torch.tensor(values).to(getattr(torch, dtype))
    if len(shape) > 1 and draw.random() < 0.3:
        return made.transpose(0, 1).contiguous().transpose(0, 1)
    return made


def _outcome(function: Callable, positional: list, named: dict) -> Any:
    """The result, or the error."""
    try:
        return function(*positional, **named)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
        return error


def _on_meta(torch: Any, given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _on_meta(torch, value) for name, value in given.items()}
    if isinstance(given, (list, tuple)):
        return [_on_meta(torch, value) for value in given]
    return given.to("meta") if isinstance(given, torch.Tensor) else given


def _geometry_differs(expected: Any, found: Any) -> str | None:
    if isinstance(expected, Exception) or isinstance(found, Exception):
        same = type(expected) is type(found) and str(expected) == str(found)
        return None if same else f"the CPU gives {expected!r:.200}, meta {found!r:.200}"
    pairs = zip(*((one if isinstance(one, tuple) else (one,)) for one in (expected, found)))
    for one, other in pairs:
        if hasattr(one, "stride"):
            of = [(str(t.dtype), tuple(t.shape), t.stride()) for t in (one, other)]
            if of[0] != of[1]:
                return f"the CPU gives {of[0]}, meta {of[1]}"
    return None


def _values_differ(torch: Any, expected: Any, found: Any) -> str | None:
    if isinstance(found, Exception):
        return f"{found!r}"
    try:
        torch.testing.assert_close(found, expected, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return None


def _shown(positional: list, named: dict) -> str:
    return ", ".join([*map(repr, positional), *(f"{name}={value!r}" for name, value in named.items())])
