"""What a call of an operator does with the dimensions of its tensors, as sharding has to know.

Note [Axes]
An axis is something that the ranks of a mesh's dimension may divide among them: of each tensor that a call gets, the dimension that is divided, or that every rank needs all of it; and of
each result, the dimension in which the ranks get parts, or how their results are terms of it. `mm` has three: rows, columns, and the dimension that is summed over, whose results are terms of
a sum. Terms go through what is linear in them as they are. The functions of `rules.py` and `kinds.py` give the axes of a call; where there are none of a kind, every rank computes with the
whole tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._dispatch.operator import Operator
from ..placements import Partial, Placement

SUM = Partial()
AVG = Partial("avg")


class Mark:
    """What an axis says of a tensor beside a dimension or a placement."""

    def __init__(self, meaning: str) -> None:
        self.meaning = meaning

    def __repr__(self) -> str:
        return self.meaning


LINEAR = Mark("terms of a sum or mean, as they are now")
TERMS = Mark("terms of any kind, as they are now")
UNREAD = Mark("as it is, since its elements are not read")
SAME = Mark("terms of the kind that was given")


class Operand:
    """A tensor of a call: its number among all of them, the shape and dtype of the whole, and how it lies."""

    __slots__ = ("number", "shape", "dtype", "placements")

    def __init__(self, number: int, shape: Sequence[int], dtype: Any, placements: Sequence[Placement]) -> None:
        self.number = number
        self.shape = tuple(shape)
        self.dtype = dtype
        self.placements = placements

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def size(self, dim: int) -> int:
        """The size of a dimension."""
        return self.shape[dim]


class Axis(NamedTuple):
    """See Note [Axes].

    inputs: by tensor, the dimension that is divided, a placement, or a mark; of those that are not named every rank needs all.
    outputs: by result, the dimension, None where every rank has all, a placement, or SAME.
    even: only for parts of equal length. filled: only where no part is empty.
    local: what runs in place of the operator, of a `_strategy.Here` and its arguments.
    """

    inputs: dict[Operand, Any]
    outputs: tuple[Any, ...]
    even: bool = False
    filled: bool = False
    local: Callable[..., Any] | None = None


WHOLE = Axis({}, ())
"""Every rank computes everything."""


class Call:
    """A call of an operator: its arguments in schema order with an Operand for each tensor, what the rule says of its results, and their shapes (None: the data decide)."""

    def __init__(self, op: Operator, given: tuple, operands: list[Operand], specs: Sequence[Any]) -> None:
        self.op = op
        self.given = given
        self.operands = operands
        self.specs = specs
        self.shapes: list[Any] = [None if s is None or s.shape is None else tuple(s.shape) for s in specs]

    def __getitem__(self, name: str) -> Any:
        for param, value in zip(self.op.params, self.given):
            if param.name == name:
                return value
        return None

    @property
    def count(self) -> int:
        """How many results there are."""
        return len(self.shapes)

    def outputs(self, of: Any) -> tuple:
        """The same of all results."""
        return (of,) * self.count


def dim_of(dim: int, ndim: int) -> int:
    """A dimension counted from the front."""
    return dim + ndim if dim < 0 else dim
