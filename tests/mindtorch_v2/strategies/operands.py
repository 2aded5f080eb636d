"""Arguments as plain data: they can be built on any device by any torch-compatible module, printed as Python, and recorded."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .picking import Picker

FLOATING = ("float32", "float64", "bfloat16", "float16")
INTEGRAL = ("int64", "int32", "uint8", "int8", "int16")
COMPLEX = ("complex64", "complex128")
ALL = (
    "float32",
    "float32",
    "float64",
    "int64",
    "bool",
    "bfloat16",
    "int32",
    "float16",
    "uint8",
    "complex64",
    "float32",
    "int8",
)
SIZES = (2, 3, 1, 4, 2, 3, 1, 0)


@dataclass(frozen=True)
class Operand:
    """A tensor: all elements of its storage, and a strided view of them."""

    values: tuple
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def is_plain(self) -> bool:
        """Whether it is its whole storage, in order."""
        return self.offset == 0 and self.stride == contiguous(self.shape) and len(self.values) == self.numel

    def build(self, torch: Any, device: str = "cpu", requires_grad: bool = False) -> Any:
        """The tensor. On meta it has the same geometry and no values; elsewhere its storage holds all the values."""
        dtype = getattr(torch, self.dtype)
        if device.startswith("npu"):
            stored = torch.tensor(list(self.values), dtype=dtype).to(device)
            made = stored.as_strided(self.shape, self.stride, self.offset).detach()
        elif device != "cpu":
            if self.offset == 0:
                made = torch.empty_strided(self.shape, self.stride, dtype=dtype, device=device)
            else:
                made = torch.empty(len(self.values), dtype=dtype, device=device)
                made = made.as_strided(self.shape, self.stride, self.offset).detach()
        else:
            made = torch.tensor(list(self.values), dtype=dtype)
            if self.is_plain and len(self.shape) != 1:
                made = made.reshape(self.shape)
            elif not self.is_plain:
                made = made.as_strided(self.shape, self.stride, self.offset)
            made = made.detach()
        return made.requires_grad_() if requires_grad else made

    def show(self, device: str = "cpu") -> str:
        """The line of Python that makes the tensor, as `build` does."""
        dtype = f"dtype=torch.{self.dtype}"
        if device != "cpu":
            if self.offset == 0:
                return f"torch.empty_strided({self.shape}, {self.stride}, {dtype}, device={device!r})"
            flat = f"torch.empty({len(self.values)}, {dtype}, device={device!r})"
            return f"{flat}.as_strided({self.shape}, {self.stride}, {self.offset}).detach()"
        values = ", ".join(_shown(value) for value in self.values)
        text = f"torch.tensor([{values}], {dtype})"
        if self.is_plain:
            return text if len(self.shape) == 1 else f"{text}.reshape({self.shape})"
        return f"{text}.as_strided({self.shape}, {self.stride}{f', {self.offset}' if self.offset else ''})"

    def pack(self) -> list:
        """As JSON data."""
        return [
            "tensor",
            [pack_number(v) for v in self.values],
            self.dtype,
            list(self.shape),
            list(self.stride),
            self.offset,
        ]


@dataclass(frozen=True)
class OnDevice:
    """A tensor on a device of its own, wherever the case runs."""

    operand: Operand
    device: str

    def build(self, torch: Any, device: str = "cpu") -> Any:
        return self.operand.build(torch, self.device)

    def show(self, device: str = "cpu") -> str:
        return self.operand.show(self.device)


@dataclass(frozen=True)
class Symbol:
    """Something that a torch module has: a dtype, a layout, a memory format."""

    name: str

    def build(self, torch: Any, device: str = "cpu") -> Any:
        return getattr(torch, self.name)

    def show(self, device: str = "cpu") -> str:
        return f"torch.{self.name}"

    def pack(self) -> list:
        return ["symbol", self.name]


@dataclass(frozen=True)
class Place:
    """The device that a case runs on."""

    def build(self, torch: Any, device: str = "cpu") -> Any:
        return torch.device(device)

    def show(self, device: str = "cpu") -> str:
        return f"torch.device({device!r})"

    def pack(self) -> list:
        return ["place"]


def build(value: Any, torch: Any, device: str = "cpu") -> Any:
    """A value of a case as a Python value for `torch`."""
    if isinstance(value, (Operand, OnDevice, Symbol, Place)):
        return value.build(torch, device)
    if isinstance(value, (list, tuple)):
        return [build(item, torch, device) for item in value]
    return value


def show(value: Any, device: str = "cpu") -> str:
    """A value as Python source."""
    if isinstance(value, (Operand, OnDevice, Symbol, Place)):
        return value.show(device)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(show(item, device) for item in value)}]"
    return _shown(value)


def pack(value: Any) -> Any:
    """A value as JSON data."""
    if isinstance(value, (Operand, Symbol, Place)):
        return value.pack()
    if isinstance(value, (list, tuple)):
        return ["list", [pack(item) for item in value]]
    return pack_number(value) if isinstance(value, (int, float, complex)) else value


def unpack(data: Any) -> Any:
    """The value that `pack` made the data of."""
    if not isinstance(data, list):
        return data
    kind, *rest = data
    if kind == "tensor":
        values, dtype, shape, stride, offset = rest
        return Operand(tuple(unpack(v) for v in values), dtype, tuple(shape), tuple(stride), offset)
    if kind == "symbol":
        return Symbol(rest[0])
    if kind == "place":
        return Place()
    if kind == "list":
        return [unpack(item) for item in rest[0]]
    if kind == "float":
        return float(rest[0])
    if kind == "complex":
        return complex(float(rest[0]), float(rest[1]))
    raise ValueError(f"unknown kind of recorded value: {kind!r}")


def pack_number(value: Any) -> Any:
    """A number as JSON data: JSON has no infinities and no complex numbers."""
    if isinstance(value, complex):
        return ["complex", str(value.real), str(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return ["float", str(value)]
    return value


def _shown(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, complex):
        return f"complex({_shown(value.real)}, {_shown(value.imag)})"
    return repr(value)


# Geometry


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def draw_shape(pick: Picker, low: int = 0, high: int = 3) -> tuple[int, ...]:
    """A shape of `low` to `high` dimensions. Sizes are 0 to 4; for gradients 1 to 3."""
    sizes = (2, 3, 1) if pick.gradient else SIZES
    return tuple(pick.choice(sizes) for _ in range(pick.integer(low, high)))


def broadcast(pick: Picker, shape: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts with `shape`: leading dimensions gone, sizes made 1; rarely one that does not."""
    if not pick.chance(2):
        made = list(shape)
    else:
        made = list(shape)[pick.integer(0, len(shape)) :]
        made = [1 if pick.chance(3) else size for size in made]
    if made and pick.wrong(16):
        made[pick.integer(0, len(made) - 1)] += 2
    return tuple(made)


LAYOUTS = ("contiguous", "contiguous", "permuted", "strided", "offset", "expanded", "channels_last")


def _geometry(pick: Picker, shape: tuple[int, ...], kind: str) -> tuple[tuple[int, ...], int]:
    layout = "contiguous" if pick.gradient or pick.plain else pick.choice(LAYOUTS)
    if layout == "expanded" and kind == "distinct":
        layout = "contiguous"
    ndim = len(shape)
    if layout == "permuted" and ndim > 1:
        order = pick.shuffled(range(ndim))
        inner = contiguous([shape[d] for d in order])
        return tuple(inner[order.index(d)] for d in range(ndim)), 0
    if layout == "strided" and ndim:
        last = 2
        return tuple(step * last for step in contiguous(shape)), 0
    if layout == "offset":
        return contiguous(shape), pick.integer(1, 2)
    if layout == "expanded" and ndim:
        held = [d for d in range(ndim) if not pick.boolean()]
        inner = contiguous([shape[d] for d in held])
        return tuple(inner[held.index(d)] if d in held else 0 for d in range(ndim)), 0
    if layout == "channels_last" and ndim in (4, 5):
        order = (0, *range(2, ndim), 1)
        inner = contiguous([shape[d] for d in order])
        return tuple(inner[order.index(d)] for d in range(ndim)), 0
    return contiguous(shape), 0


def span(shape: Sequence[int], stride: Sequence[int], offset: int) -> int:
    """How many elements of storage a strided view needs."""
    if 0 in shape:
        return offset
    return offset + 1 + sum((size - 1) * step for size, step in zip(shape, stride))


# Values

VALUE_HINTS = (
    "any",
    "positive",
    "negative",
    "nonnegative",
    "nonzero",
    "unit",
    "probability",
    "above_one",
    "small",
    "distinct",
    "finite",
)
_SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0)


def values_of(kind: str, dtype: str, count: int, rng: random.Random, smooth: bool = False) -> tuple:
    """`count` values for a dtype. smooth: no two equal, none near an integer, for finite differences."""
    if dtype.startswith("complex"):
        real = values_of(kind, "float64", count, rng, smooth)
        imaginary = values_of("any", "float64", count, rng, smooth)
        return tuple(complex(a, b) for a, b in zip(real, imaginary))
    if dtype == "bool":
        return tuple(kind in ("nonzero", "positive", "above_one") or rng.random() < 0.6 for _ in range(count))
    if dtype in INTEGRAL:
        return _integers(kind, dtype, count, rng)
    return _smooth(kind, count, rng) if smooth else _floats(kind, count, rng)


def _integers(kind: str, dtype: str, count: int, rng: random.Random) -> tuple:
    low, high = -5, 9
    if kind in ("positive", "above_one", "nonzero"):
        low = 2 if kind == "above_one" else 1
    elif kind == "negative":
        low, high = -9, -1
    elif kind == "nonnegative":
        low = 0
    elif kind in ("unit", "probability"):
        low, high = 0, 1
    elif kind == "small":
        low, high = 0, 3
    if dtype == "uint8":
        low, high = max(low, 0), max(high, 1)
    if kind == "distinct":
        start = max(low, 0)
        return tuple(value % 120 for value in rng.sample(range(start, start + count), count))  # int8 ends at 127
    found = [rng.randint(low, high) for _ in range(count)]
    if kind == "nonzero" and dtype != "uint8":
        found = [value * rng.choice((1, 1, -1)) for value in found]
    return tuple(found)


def _floats(kind: str, count: int, rng: random.Random) -> tuple:
    if kind == "distinct":
        steps = rng.sample(range(-count, count + 1), count)
        return tuple(step / 4 for step in steps)
    low, high = {
        "positive": (1, 16),
        "negative": (-16, -1),
        "nonnegative": (0, 16),
        "nonzero": (1, 16),
        "unit": (-15, 15),
        "probability": (0, 16),
        "above_one": (5, 16),
        "small": (-3, 3),
    }.get(kind, (-16, 16))
    scale = {"unit": 16, "probability": 16, "small": 1}.get(kind, 4)
    found = [rng.randint(low, high) / scale for _ in range(count)]
    if kind == "nonzero":
        found = [value * rng.choice((1, -1)) for value in found]
    return tuple(found)


def _smooth(kind: str, count: int, rng: random.Random) -> tuple:
    low, high = {
        "positive": (0.2, 2.2),
        "negative": (-2.2, -0.2),
        "nonnegative": (0.2, 2.2),
        "unit": (-0.85, 0.85),
        "probability": (0.1, 0.9),
        "above_one": (1.2, 3.2),
    }.get(kind, (-2.1, 2.1))
    step = (high - low) / max(count, 1)
    places = rng.sample(range(count), count)
    found = [low + step * (place + 0.25 + 0.5 * rng.random()) for place in places]
    return tuple(_off_kinks(value, step) for value in found)


def _off_kinks(value: float, step: float) -> float:
    """Away from halves and integers, where rounding operators and their kin have corners."""
    nearest = round(value * 2) / 2
    return round(nearest + math.copysign(0.02, value - nearest) if abs(value - nearest) < 0.02 else value, 6)


def draw_dtype(pick: Picker, hint: str = "any") -> str:
    """A dtype: `integer`, `floating` and `boolean` narrow it, rarely they are ignored."""
    if hint == "boolean":
        return "uint8" if pick.wrong(16) else "bool"
    if hint in ("integer", "index"):
        return "float32" if pick.wrong(12) else pick.choice(INTEGRAL)
    if pick.gradient:
        return "float64"
    if hint in ("floating", "unit", "probability") and not pick.wrong(6):
        return pick.choice(FLOATING)
    return pick.choice(ALL)


def draw_operand(pick: Picker, shape: Sequence[int], dtype: str | None = None, kind: str = "any") -> Operand:
    """A tensor of a shape in some layout, with values of a kind (see VALUE_HINTS)."""
    shape = tuple(shape)
    dtype = draw_dtype(pick) if dtype is None else dtype
    stride, offset = _geometry(pick, shape, kind)
    count = span(shape, stride, offset)
    # Gradient mode wants no two operands alike (fmod has a jump where they are equal).
    rng = random.Random(pick.integer(0, 10**6 if pick.gradient else 7) * 1000 + count)
    smooth = pick.gradient and dtype.startswith(("float", "complex"))
    values = values_of(kind, dtype, count, rng, smooth)
    if pick.special and kind == "any" and dtype in FLOATING and count and pick.chance(8):
        values = tuple(rng.choice(_SPECIAL) if rng.random() < 0.3 else value for value in values)
    return Operand(values, dtype, shape, stride, offset)


def plain(operand: Operand) -> Operand:
    """The operand's shape with its values in order: contiguous, for internal operators that take nothing else for granted."""
    values = tuple(itertools.islice(itertools.cycle(operand.values or (0,)), operand.numel))
    return replace(operand, values=values, stride=contiguous(operand.shape), offset=0)


def draw_index(pick: Picker, shape: Sequence[int], bound: int, dtype: str = "int64", negative: bool = False) -> Operand:
    """A tensor of indices below `bound`; for bound 0 it has no valid value, and holds zeros."""
    shape = tuple(shape)
    operand = draw_operand(pick, shape, dtype, "nonnegative")
    top = max(bound - 1, 0)
    values = tuple(value % (top + 1) if bound else 0 for value in operand.values)
    if negative and bound and dtype != "uint8" and pick.chance(3):
        values = tuple(value - bound if i % 2 else value for i, value in enumerate(values))
    return replace(operand, values=values)
