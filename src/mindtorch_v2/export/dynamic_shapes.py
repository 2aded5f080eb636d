"""What may be said of the dimensions of a program's arguments."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from .._compiling.refusals import UserError, UserErrorType
from .._tensor import Tensor
from ..utils import _pytree as pytree

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


@dataclasses.dataclass
class _DimHint:
    """What an export should do with a dimension without a name."""

    type: _DimHintType
    min: int | None = None
    max: int | None = None
    _factory: bool = True

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if not self._factory:
            raise TypeError(f"'{type(self)}' object is not callable")
        if min is not None and min < 0:
            raise AssertionError("min must be non-negative")
        if max is not None and max < 0:
            raise AssertionError("max must be non-negative")
        if min is not None and max is not None and min > max:
            raise AssertionError("min must be <= max")
        return _DimHint(self.type, min, max, False)

    def __repr__(self) -> str:
        parts = [self.type.name]
        parts += [f"{word}={value}" for word, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"DimHint({', '.join(parts)})"


class Dim:
    """A dimension of any size from `min` to `max`; where it stands for several dimensions these are equal.

    `2 * Dim("half")` and the like say that a size follows from another one. Raises AssertionError for an empty range and names that are no identifiers.
    """

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        least, most = 0 if min is None else min, sys.maxsize if max is None else max
        if most <= least:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min, self.max = least, most

    def __add__(self, other: int) -> Dim:
        return _DerivedDim._of(self, "+", other, 1, _whole(other, "add"))

    def __radd__(self, other: int) -> Dim:
        return self + other

    def __sub__(self, other: int) -> Dim:
        return _DerivedDim._of(self, "-", other, 1, -_whole(other, "subtract"))

    def __rsub__(self, other: int) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. Only increasing linear operations with integer coefficients are supported."
        )

    def __mul__(self, other: int) -> Dim:
        if _whole(other, "multiply") <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. "
                "(Only increasing linear operations with integer coefficients are supported.)"
            )
        return _DerivedDim._of(self, "*", other, other, 0)

    def __rmul__(self, other: int) -> Dim:
        return self * other

    def __repr__(self) -> str:
        parts = [f"'{self.__name__}'"]
        if self.min and self.min != 2:
            parts.append(f"min={self.min}")
        if self.max != sys.maxsize:
            parts.append(f"max={self.max}")
        return f"Dim({', '.join(parts)})"


def _whole(number: Any, what: str) -> int:
    if type(number) is not int:
        raise NotImplementedError(
            f"Attempted to {what} {number}, where an integer was expected. (Only increasing linear operations with integer coefficients are supported.)"
        )
    return number


class _DerivedDim(Dim):
    """`scale * root + plus`."""

    root: Dim
    scale: int
    plus: int

    @classmethod
    def _of(cls, dim: Dim, sign: str, number: int, scale: int, plus: int) -> _DerivedDim:
        made = cls.__new__(cls)
        inner = (dim.root, dim.scale, dim.plus) if isinstance(dim, _DerivedDim) else (dim, 1, 0)
        made.root, made.scale, made.plus = inner[0], inner[1] * scale, inner[2] * scale + plus
        made.__name__ = f"{number}*{dim.__name__}" if sign == "*" else f"{dim.__name__} {sign} {number}"
        made.min = made.scale * made.root.min + made.plus
        most = made.root.max
        made.max = most if most == sys.maxsize else made.scale * most + made.plus
        return made

    def __repr__(self) -> str:
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """A `Dim` for each name."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """What is said of the dimensions of arguments, by the argument itself: `shapes[x] = {0: batch}`."""

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._kept: list[Any] = []

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        found = self._shapes.get(id(t))
        if found is not None and found != shape:
            raise AssertionError(f"Shapes assigned to input is a different shape: {found} != {shape}")
        self._shapes[id(t)] = shape
        self._kept.append(t)

    def __getitem__(self, t: Any) -> Any:
        self._kept.append(t)
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """What `export` takes for these arguments. ValueError for tensors that are not among them."""
        found: set[int] = set()

        def shape(one: Any) -> Any:
            found.add(id(one))
            return self._shapes.get(id(one))

        arguments = combined(m, args, kwargs or {})
        result = pytree.tree_map(shape, arguments)
        if not set(self._shapes) <= found:
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them as args?"
            )
        return result


class AdditionalInputs:
    """Further arguments of a program; dimensions that differ among them are dynamic."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Add arguments."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """What `export` takes for these arguments and those that were added."""
        first = combined(m, args, kwargs or {})
        others = [combined(m, *one) for one in self._examples]

        def shape(one: Any, *rest: Any) -> Any:
            if not isinstance(one, Tensor):
                if any(other != one for other in rest):
                    raise ValueError("torch.export.AdditionalInputs: only the sizes of tensors may differ")
                return None
            return tuple(
                Dim.DYNAMIC if any(other.shape[i] != size for other in rest) else None
                for i, size in enumerate(one.shape)
            )

        return pytree.tree_map(shape, first, *others)

    def verify(self, ep: Any) -> None:
        """Run a program on all arguments that were added."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def combined(m: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names that `forward` has for them."""
    import inspect

    return dict(inspect.signature(m.forward).bind(*args, **kwargs).arguments)


def of_leaves(dynamic_shapes: Any, arguments: dict[str, Any]) -> dict[int, dict[int, Any]]:
    """For each tensor, by its id, what is said of its dimensions. UserError where the structure does not fit."""
    found: dict[int, dict[int, Any]] = {}
    names = list(arguments)
    if isinstance(dynamic_shapes, dict):
        if sorted(dynamic_shapes) != sorted(names):
            raise _invalid(
                f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {names} of `inputs`, but here they are {list(dynamic_shapes)}. "
                "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`."
            )
        pairs: Iterable = ((arguments[name], dynamic_shapes[name], f"['{name}']") for name in names)
    elif isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(names):
            raise _mismatch("", f"has {len(names)} elements", f"has {len(dynamic_shapes)} elements")
        pairs = ((arguments[name], said, f"[{i}]") for i, (name, said) in enumerate(zip(names, dynamic_shapes)))
    else:
        raise _invalid(f"Unexpected dynamic_shapes type {type(dynamic_shapes)}")
    for value, said, place in pairs:
        _walk(value, said, place, found)
    return found


def _invalid(message: str) -> UserError:
    return UserError(UserErrorType.INVALID_INPUT, message)


def _mismatch(place: str, given: str, said: str) -> UserError:
    """What the argument at a place is or has, and what was said of it."""
    return _invalid(
        f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{place}` {given}, but `dynamic_shapes{place}` {said}"
    )


def _walk(value: Any, said: Any, place: str, found: dict[int, dict[int, Any]]) -> None:
    if said is None:
        return
    if isinstance(value, Tensor):
        found[id(value)] = _dimensions(value, said, place)
    elif isinstance(value, dict) and isinstance(said, dict):
        if sorted(value) != sorted(said):
            raise _mismatch(place, f"has keys {list(value)}", f"has keys {list(said)}")
        for key, one in value.items():
            _walk(one, said[key], f"{place}['{key}']", found)
    elif isinstance(value, (tuple, list)) and isinstance(said, (tuple, list)):
        if len(value) != len(said):
            raise _mismatch(place, f"has {len(value)} elements", f"has {len(said)} elements")
        for i, (one, what) in enumerate(zip(value, said)):
            _walk(one, what, f"{place}[{i}]", found)
    else:
        raise _mismatch(place, f"is a {type(value)}", f"is a {type(said)}")


def _dimensions(tensor: Tensor, said: Any, place: str) -> dict[int, Any]:
    if isinstance(said, dict):
        pairs = list(said.items())
    elif isinstance(said, (tuple, list)):
        if len(said) != tensor.dim():
            raise _invalid(
                f"Expected dynamic shape spec {said} specified at `dynamic_shapes{place}` to have the same length as the actual tensor shape {tensor.shape} "
                f"(expected {tensor.dim()}, but got {len(said)} instead)"
            )
        pairs = list(enumerate(said))
    else:
        raise _invalid(
            f"Unexpected input tensor shape {said} specified at `dynamic_shapes{place}` (expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, "
            f"where each dimension is None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
        )
    found = {}
    for dim, one in pairs:
        if not (one is None or type(one) is int or isinstance(one, (Dim, _DimHint))):
            raise _invalid(
                f"Unexpected dimension mapped to index {dim} in input tensor shape {said} specified at `dynamic_shapes{place}` (expected None, an int, a Dim, Dim.AUTO, "
                f"Dim.STATIC, or Dim.DYNAMIC,  but got {one!r} instead)"
            )
        if not -tensor.dim() <= dim < tensor.dim():
            raise IndexError("list assignment index out of range")
        if type(one) is int and one != tensor.shape[dim]:
            raise UserError(
                UserErrorType.CONSTRAINT_VIOLATION,
                f"Static shape constraint of {one} does not match input size of {tensor.shape[dim]}, for `dynamic_shapes{place}[{dim}]`",
            )
        found[dim % tensor.dim()] = one
    return found
