"""Strings in TorchScript: how values are printed (as C++ prints them there), and methods of strings."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .objects import Instance, Member, Named


def text_of(value: Any) -> str:
    """A value as TorchScript's `str`, `print` and `format` show it: `1.` for a float, True for a bool, [1, 2], (1, 2), {a: 1}."""
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, complex):
        return f"{_float_text(value.real)}{'+' if value.imag >= 0 else ''}{_float_text(value.imag)}j"
    if isinstance(value, list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, Named):
        return f"{value._script_class.short}({', '.join(f'{n}={text_of(v)}' for n, v in value._asdict().items())})"
    if isinstance(value, tuple):
        return f"({', '.join(map(text_of, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Member):
        return f"Enum<{value._script_class.name}.{value.name}>"
    if isinstance(value, Instance):
        return f"<{value._script_class.name} object>"
    if isinstance(value, Tensor):
        return _tensor_text(value)
    return str(value)


def _float_text(value: float) -> str:
    if math.isfinite(value) and abs(value) < 1e10 and value == int(value) and (value == 0 or abs(value) >= 2.3e-308):
        return f"{'-' if math.copysign(1, value) < 0 and value else ''}{abs(int(value))}."
    return f"{value:.17g}"


def _tensor_text(tensor: Tensor) -> str:
    """Columns of elements, a matrix at a time, and the type: `[ CPUFloatType{2,3} ]`."""
    kind = f"[ {'CPU' if tensor.device.type == 'cpu' else tensor.device.type.upper()}{tensor.dtype.cpp}Type"
    sizes = "{" + ",".join(map(str, tensor.shape)) + "}"
    if tensor.dim() == 0:
        return f"{tensor.item():.6g}\n{kind}{{}} ]"
    if tensor.numel() == 0:
        return f"{kind}{sizes} ]"
    width, scale, form = _form([abs(v) for v in tensor.flatten().tolist()])
    head = "" if scale == 1 else f"{scale:g} *\n"
    parts = []
    for place in itertools.product(*map(range, tensor.shape[:-2])):
        held = tensor[place].tolist() if place else tensor.tolist()
        rows = [[one] for one in held] if tensor.dim() == 1 else held
        title = f"({','.join(str(p + 1) for p in place)},.,.) = \n" if place else ""
        parts.append(
            title + head + "".join(" ".join(format(v / scale, form).rjust(width) for v in row) + "\n" for row in rows)
        )
    return "\n".join(parts) + f"{kind}{sizes} ]"


def _form(sizes: list[float]) -> tuple[int, float, str]:
    """The width of an element, what it is divided by, and its form, for elements of these absolute values."""
    finite = [size for size in sizes if math.isfinite(size)]
    low, high = (_digits(f(finite)) for f in (min, max)) if finite else (1, 1)
    if all(size == math.ceil(size) for size in finite):
        return (11, 1, ".4e") if high > 9 else (high + 1, 1, ".6g")
    if high - low > 4:
        return 12 if max(abs(high), abs(low)) > 99 else 11, 1, ".4e"
    if high > 5 or high < 0:
        return 7, 10.0 ** (high - 1), ".4f"
    return 7 if high == 0 else high + 6, 1, ".4f"


def _digits(size: float) -> int:
    return math.floor(math.log10(size)) + 1 if size else 1


def format_(template: str, *values: Any) -> str:
    """`template` with each {} replaced. RuntimeError where there are too few values or too many."""
    parts = template.split("{}")
    if len(values) < len(parts) - 1:
        raise RuntimeError(f"Too few arguments for format string: {template}")
    if len(values) > len(parts) - 1:
        raise RuntimeError(f"Too many arguments for format string: {template}")
    made = [parts[0]]
    for value, part in zip(values, parts[1:]):
        made += [text_of(value), part]
    return "".join(made)


def percent_format(template: str, *values: Any) -> str:
    """`template` with each % of a kind (%s, %d, %i, %f, %e, %c) replaced by a value. RuntimeError for other forms."""
    given = list(values[0]) if len(values) == 1 and isinstance(values[0], tuple) else list(values)
    made, place, used = [], 0, 0
    while True:
        mark = template.find("%", place)
        if mark < 0 or mark + 1 >= len(template):
            break
        made.append(template[place:mark])
        kind = template[mark + 1]
        place = mark + 2
        if kind == "%":
            made.append("%")
            continue
        if used >= len(given):
            raise RuntimeError("Too few arguments for format string")
        made.append(_formatted(kind, given[used]))
        used += 1
    if used < len(given):
        raise RuntimeError("Too many arguments for format string")
    return "".join([*made, template[place:]])


def _formatted(kind: str, value: Any) -> str:
    number = isinstance(value, (int, float))
    if kind in "di" and number:
        return str(int(value))
    if kind in "eEfF" and number:
        return f"%{kind}" % value
    if kind == "c":
        return chr(value) if isinstance(value, int) else str(value)
    if kind == "s":
        return text_of(value)
    if kind in "dieEfF":
        raise RuntimeError(f"%{kind} requires a number for formatting, but got {type(value).__name__}")
    raise RuntimeError(f"The specifier %{kind} is not supported in TorchScript format strings")


_METHODS = (
    "capitalize center count endswith expandtabs find index isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust "
    "lower lstrip partition replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill"
).split()


def raw(value: Any) -> Any:
    """A string, or those of a list, as bytes: see Note [Bytes]."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return list(map(raw, value)) if isinstance(value, list) else value


def cooked(value: Any) -> Any:
    """Bytes, or those of a list or tuple, as strings."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return type(value)(map(cooked, value)) if isinstance(value, (list, tuple)) else value


def joined(a: str, b: str) -> str:
    """Two strings one behind the other, whose parts of letters become letters."""
    made = a + b
    return made if made.isascii() else cooked(raw(made))


def part(text: str, index: Any) -> str:
    """One element of a string by its number, or those of a slice."""
    if text.isascii():
        return text[index]
    found = raw(text)[index]
    return cooked(bytes([found]) if isinstance(found, int) else found)


def _plain(value: Any) -> bool:
    return value.isascii() if isinstance(value, str) else not isinstance(value, list) or all(map(_plain, value))


def _method(name: str) -> Callable[..., Any]:
    """Note [Bytes]: a string in TorchScript is bytes of UTF-8. Lengths, numbers of elements and slices count bytes, so that a slice may end inside a letter, and only ASCII has
    cases and kinds. Here strings stay Python's, with surrogates for parts of letters; those beyond ASCII go through bytes, whose methods do just that."""
    found, bytewise = getattr(str, name), getattr(bytes, name, None)

    @functools.wraps(found)
    def method(text: Any, *args: Any) -> Any:
        if not isinstance(text, str):
            raise TypeError(f"{name} is an operator on strings, but got {type(text).__name__}")
        if text.isascii() and all(map(_plain, args)):
            return found(text, *args)
        if bytewise is None:  # a kind of letters
            return False
        return cooked(bytewise(raw(text), *map(raw, args)))

    return method


STRINGS: dict[str, Callable[..., Any]] = {name: _method(name) for name in _METHODS}
