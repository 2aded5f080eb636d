"""Arguments from nothing but parameter types, names and the hints of the entry: for what has no strategy of its own, and for the rest of what has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .operands import (
    ALL,
    VALUE_HINTS,
    Operand,
    Place,
    Symbol,
    broadcast,
    draw_dtype,
    draw_index,
    draw_operand,
    draw_shape,
)
from .picking import Picker
from .table import Parameter, Row

DIM_NAMES = frozenset(
    "dim dim0 dim1 dim2 axis axis0 axis1 start_dim end_dim dimension source destination dims_self dims_other".split()
)
SIZE_NAMES = frozenset("size sizes shape input_sizes normalized_shape output_size".split())
WORDS = {
    "rounding_mode": (None, "floor", "trunc"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
    "approximate": ("none", "tanh"),
    "indexing": ("ij", "xy"),
    "side": (None, "left", "right"),
    "mode": ("constant", "reflect", "replicate", "circular"),
    "padding_mode": ("zeros", "border"),
    "assert_msg": ("it must hold",),
}
REDUCE = {
    "scatter.reduce": ("add", "multiply"),
    "scatter.value_reduce": ("add", "multiply"),
    "scatter_reduce.two": ("sum", "prod", "mean", "amax", "amin"),
    "index_reduce": ("prod", "mean", "amax", "amin"),
}
"""The reductions go by other words in older operators."""
SHAPE_HINTS = {"scalar": 0, "vector": 1, "matrix": 2, "square": 2, "symmetric": 2, "positive_definite": 2, "batch": 3}


def complete(pick: Picker, row: Row, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """`given` and, for all other parameters, arguments by hint, name and type; optional ones are often left out."""
    arguments = dict(given or {})
    state = _State(pick, row, arguments)
    for parameter in row.parameters:
        if parameter.name in arguments:
            continue
        hint = row.hints.get(parameter.name)
        placed = parameter.base == "Device" and not any(p.is_tensor for p in row.parameters)
        if parameter.has_default and hint is None and not placed and pick.chance(2):
            continue
        found, value = state.draw(parameter, hint)
        if found:
            arguments[parameter.name] = value
    return arguments


class _State:
    """What the arguments of one case share: a shape, a dtype, the first tensor."""

    def __init__(self, pick: Picker, row: Row, given: dict[str, Any]):
        self.pick = pick
        self.row = row
        self.given = given
        first = next((v for v in given.values() if isinstance(v, Operand)), None)
        self.shape: tuple[int, ...] | None = None if first is None else first.shape
        self.dtype: str | None = None if first is None else first.dtype

    def draw(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        """Whether there is an argument, and the argument."""
        if p.is_tensor:
            return self._tensor(p, hint)
        if p.is_tensors:
            return True, self._tensors(p)
        if hint is not None and not isinstance(hint, str):
            return True, hint
        draw = getattr(self, f"_{p.base.lower()}", None)
        if draw is None:
            if not p.has_default and not p.optional:
                raise ValueError(f"{self.row.name}: no strategy for a {p.type} ({p.name})")
            return (not p.has_default), None
        return draw(p, hint)

    def _tensor(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        pick = self.pick
        if p.optional and (self.shape is not None) and pick.chance(2):
            return not p.has_default, None
        if (
            self.shape is not None
            and self.row.takes_numbers
            and p.type == "Tensor"
            and pick.chance(6)
            and not pick.gradient
        ):
            number = draw_number(pick)
            half = self.dtype in ("float16", "bfloat16")  # whose complex partner is no dtype of the CPU
            return True, 2 if number == 0 and hint == "nonzero" or half and isinstance(number, complex) else number
        hint = hint if isinstance(hint, str) else "any"
        shape = self._shape(hint)
        if hint == "mask":
            return True, draw_operand(pick, shape, draw_dtype(pick, "boolean"))
        if hint == "index":
            bound = self.shape[0] if self.shape else 3
            return True, draw_index(pick, draw_shape(pick, 1, 1), bound)
        dtype = self._dtype(hint)
        made = draw_operand(pick, shape, dtype, hint if hint in VALUE_HINTS else "any")
        if hint in ("symmetric", "positive_definite"):
            made = _symmetric(made, hint == "positive_definite")
        return True, made

    def _shape(self, hint: str) -> tuple[int, ...]:
        pick = self.pick
        if hint in SHAPE_HINTS and not pick.wrong(10):
            ndim = SHAPE_HINTS[hint]
            shape = draw_shape(pick, ndim, ndim)
            if hint in ("square", "symmetric", "positive_definite"):
                shape = (shape[0],) * 2
            self.shape = self.shape or shape
            if self.shape is not shape and len(self.shape) == ndim and pick.integer(0, 3):
                return self.shape
            return shape
        if self.shape is None:
            self.shape = draw_shape(pick, 1 if hint == "nonempty" else 0)
            return self.shape
        return broadcast(pick, self.shape)

    def _dtype(self, hint: str) -> str:
        pick = self.pick
        if hint in ("boolean", "integer", "index"):
            return draw_dtype(pick, hint)
        if self.dtype is None:
            self.dtype = draw_dtype(pick, hint)
        elif pick.chance(3) and not pick.gradient:
            return draw_dtype(pick, hint)
        return self.dtype

    def _tensors(self, p: Parameter) -> list:
        pick = self.pick
        shape = draw_shape(pick) if self.shape is None else self.shape
        self.shape = shape
        count = pick.integer(1, 3) if not pick.wrong(20) else 0
        return [
            draw_operand(pick, shape if pick.integer(0, 3) else broadcast(pick, shape), self._dtype("any"))
            for _ in range(count)
        ]

    @property
    def ndim(self) -> int:
        return len(self.shape or ())

    def _int(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        pick = self.pick
        if p.is_list:
            return self._ints(p, hint)
        if hint == "dim" or hint is None and p.name in DIM_NAMES:
            if p.optional and pick.chance(3):
                return True, None
            return True, draw_dim(pick, self.ndim)
        if hint == "index":
            return True, pick.choice((0, 1, -1))
        if p.optional and pick.chance(2):
            return not p.has_default, None
        return True, pick.choice((1, 2, 0, 3, -1)) if not self.pick.valid else pick.choice((1, 2))

    def _ints(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        pick = self.pick
        if hint in ("dim", "dims") or hint is None and p.name in DIM_NAMES:
            if p.optional and pick.chance(3):
                return True, None
            return True, draw_dims(pick, self.ndim)
        if p.name in SIZE_NAMES or hint == "size":
            return True, list(draw_shape(pick))
        size = p.type.split("[")[1].rstrip("]?")
        count = int(size) if size else pick.integer(0, 3)
        return True, [pick.choice((1, 0, 2)) for _ in range(count)]

    def _float(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        if p.optional and self.pick.chance(2):
            return not p.has_default, None
        if p.name == "eps":
            return True, self.pick.choice((1e-6, 0.125))
        if hint == "probability":
            return True, self.pick.choice((0.5, 0.25, 0.0, 1.0) if self.pick.valid else (0.5, 0.25, 0.0, 1.0, 1.5))
        return True, self.pick.choice((1.0, 0.5, 2.0) if hint == "positive" else (1.0, 0.5, 2.0, 0.0))

    def _scalar(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        if p.optional and self.pick.chance(2):
            return not p.has_default, None
        if p.is_list:
            return True, [2, 1.5][: self.pick.integer(1, 2)]
        if isinstance(hint, str) and hint in ("positive", "above_one", "nonzero"):
            return True, self.pick.choice((2, 1.5))
        number = draw_number(self.pick)
        real = not (self.dtype or "").startswith("complex")
        return True, 2 if real and isinstance(number, complex) else number

    def _bool(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        if p.name == "half_to_float" and self.pick.valid:  # which the CPU has not
            return True, False
        if p.name == "pin_memory" or p.type == "bool?" and self.pick.chance(2):
            return not p.has_default, None
        return True, self.pick.boolean()

    def _str(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        if isinstance(hint, str):
            return True, hint
        words = REDUCE.get(self.row.name) if p.name == "reduce" else WORDS.get(p.name)
        if words is None:
            raise ValueError(f"{self.row.name}: no words for {p.name!r}")
        return True, "nonsense" if self.pick.wrong(16) else self.pick.choice(words)

    def _scalartype(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        if p.type.endswith("?") and self.pick.integer(0, 2):
            return not p.has_default, None
        options = ("float64",) if self.pick.gradient else ALL
        return True, Symbol(self.pick.choice(options))

    def _memoryformat(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        channels_last = ("channels_last",) if self.ndim == 4 or not self.pick.valid else ()
        return True, Symbol(self.pick.choice(("preserve_format", "contiguous_format", *channels_last)))

    def _device(self, p: Parameter, hint: Any) -> tuple[bool, Any]:
        if any(q.is_tensor for q in self.row.parameters) and p.has_default:
            return False, None
        return True, Place()


def draw_number(pick: Picker) -> Any:
    """A Python number."""
    if pick.gradient:
        return pick.choice((1.93, 1.47, 0.71))
    return pick.choice((2, 1, 0.5, 3, -1, 1.5, 0, True, 1 + 2j) if not pick.valid else (2, 1, 0.5))


def draw_dim(pick: Picker, ndim: int) -> int:
    """A dimension, negative ones included; rarely out of range."""
    bound = max(ndim, 1)
    if pick.wrong(12):
        return pick.choice((bound, -bound - 1))
    dim = pick.integer(0, bound - 1)
    return dim - bound if pick.chance(3) else dim


def draw_dims(pick: Picker, ndim: int) -> list[int]:
    """Some dimensions in any order; rarely one twice or out of range."""
    dims = pick.shuffled(pick.subset(range(max(ndim, 1)) if not pick.valid else range(ndim)))
    dims = [dim - max(ndim, 1) if pick.chance(3) else dim for dim in dims]
    if pick.wrong(16):
        dims.append(dims[0] if dims else ndim + 1)
    return dims


def _symmetric(operand: Operand, definite: bool) -> Operand:
    if operand.ndim != 2 or operand.dtype == "bool":
        return operand
    n = operand.shape[0]
    plain = [[operand.values[(i * n + j) % len(operand.values)] for j in range(n)] for i in range(n)] if n else []
    both = [
        [(plain[i][j] + plain[j][i]) / 2 + (4 * n if definite and i == j else 0) for j in range(n)] for i in range(n)
    ]
    return replace(operand, values=tuple(v for line in both for v in line), stride=(n, 1), offset=0)
