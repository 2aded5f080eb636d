"""Operators of TorchScript on numbers, strings, lists, dicts and tuples.

`PLAIN` has them by name, for `torch.NAME(...)` where no tensor decides. Ints are of 64 bits and wrap; functions of floats answer as C's do (`log(0)` is -inf).
"""

from __future__ import annotations

import cmath
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._autograd import modes
from .._device import device
from .._random.generator import Generator, default_generator
from .._tensor import Tensor
from .texts import STRINGS, format_, joined, part, percent_format, raw, text_of

_LONGEST = 1 << 31  # elements that `[x] * n` may make


def wrapped(value: Any) -> Any:
    """An int as one of 64 bits; another value as it is."""
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return (value + (1 << 63)) % (1 << 64) - (1 << 63)
    return value


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, element by element; tensors, where all their elements are."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a is b or (a.shape == b.shape and bool((a == b).all()))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: wrapped(function(a, b))


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, str):
        return joined(a, b)
    return a + b if type(a) is not int else wrapped(a + b)


def _extend_by(a: list, b: list) -> list:
    a.extend(b)
    return a


def _mul(a: Any, b: Any) -> Any:
    for held, count in ((a, b), (b, a)):
        if isinstance(held, (list, str)):
            if len(held) * max(count, 0) > _LONGEST:
                raise RuntimeError(f"a result of {len(held) * count} elements is too long")
            return held * count
    return wrapped(a * b)


def _div(a: Any, b: Any) -> Any:
    if isinstance(a, complex) or isinstance(b, complex):
        return a / b
    if b:
        return a / b
    with np.errstate(all="ignore"):
        return float(np.true_divide(np.float64(a), np.float64(b)))


def _floordiv(a: Any, b: Any) -> Any:
    if not b and type(a) is int and type(b) is int:
        raise ZeroDivisionError("division by 0")
    return wrapped(a // b) if b else _div(a, b)


def _remainder(a: Any, b: Any) -> Any:
    if not b and type(a) is int and type(b) is int:
        raise ZeroDivisionError("division by 0")
    return a % b if b else math.nan


def _pow(a: Any, b: Any) -> Any:
    if isinstance(a, complex) or isinstance(b, complex):
        return a**b
    try:
        return math.pow(a, b)
    except (ValueError, OverflowError, ZeroDivisionError):
        with np.errstate(all="ignore"):
            return float(np.power(np.float64(a), np.float64(b)))


def _rounded(function: Callable[[float], int]) -> Callable[[Any], Any]:
    def rounded(a: Any) -> Any:
        return wrapped(function(a)) if math.isfinite(a) else -(1 << 63)

    return rounded


def _function(name: str, ufunc: str | None = None) -> Callable[..., Any]:
    """A function of floats that answers where Python raises an error."""
    exact, of_complex = getattr(math, name), getattr(cmath, name, None)
    instead = getattr(
        np, ufunc or {"asin": "arcsin", "acos": "arccos", "atanh": "arctanh", "acosh": "arccosh"}.get(name, name), None
    )

    def function(*args: Any) -> Any:
        if any(isinstance(a, complex) for a in args) and of_complex is not None:
            return of_complex(*args)
        try:
            return exact(*args)
        except (ValueError, OverflowError):
            if instead is None:
                return math.inf
            with np.errstate(all="ignore"):
                return float(instead(*map(np.float64, args)))

    return function


def _log(a: Any, base: Any = None) -> Any:
    value = _FUNCTIONS["log"](a)
    return value if base is None else _div(value, _FUNCTIONS["log"](base))


_FUNCTIONS = {
    name: _function(name)
    for name in "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p sin sinh sqrt tan tanh erf erfc fabs degrees radians".split()
} | {
    "gamma": _function("gamma", "nan_to_num"),
    "lgamma": _function("lgamma", "abs"),
    "atan2": _function("atan2", "arctan2"),
    "copysign": _function("copysign"),
    "fmod": _function("fmod"),
    "mathremainder": _function("remainder", "fmod"),
}


def _integer(value: Any, base: int = 10) -> int:
    if isinstance(value, str):
        return wrapped(int(value, base))
    if isinstance(value, float) and not math.isfinite(value):
        return -(1 << 63)
    return wrapped(int(value))


def _contains(held: Any, value: Any) -> bool:
    if isinstance(held, str):
        return raw(value) in raw(held)
    return value in held if isinstance(held, dict) else any(same(one, value) for one in held)


def _index(held: Any, value: Any, *rest: Any) -> int:
    if isinstance(held, str):
        return STRINGS["index"](held, value, *rest)
    for place, one in enumerate(held):
        if same(one, value):
            return place
    raise ValueError(f"'{text_of(value)}' is not in list")


def _remove(held: list, value: Any) -> None:
    del held[_index(held, value)]


def _count(held: Any, value: Any, *rest: Any) -> int:
    if isinstance(held, str):
        return STRINGS["count"](held, value, *rest)
    return sum(same(one, value) for one in held)


def _slice(held: Any, start: Any = None, stop: Any = None, step: int = 1) -> Any:
    if not isinstance(held, (list, str, tuple)):
        raise TypeError(f"a {type(held).__name__} cannot be sliced")
    chosen = slice(start, stop, step)
    return part(held, chosen) if isinstance(held, str) else held[chosen]


def _len(held: Any) -> int:
    return len(held if not isinstance(held, str) or held.isascii() else raw(held))


def _item(held: Any, index: Any) -> Any:
    if isinstance(held, dict) and index not in held:
        raise KeyError(text_of(index))
    return part(held, index) if isinstance(held, str) else held[index]


def _set_item(held: Any, index: Any, value: Any) -> Any:
    held[index] = value
    return held


def _pop(held: Any, *rest: Any) -> Any:
    if isinstance(held, dict) and rest and rest[0] not in held and len(rest) == 1:
        raise KeyError(text_of(rest[0]))
    return held.pop(*rest)


def _key(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _sort(held: list, reverse: bool = False) -> None:
    held.sort(key=_key, reverse=reverse)


def _range_length(low: int, high: int, step: int) -> int:
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(low, high, step))


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*values: Any) -> Any:
        if len(values) == 2 and isinstance(values[0], list) and isinstance(values[1], list):
            return function(*values)
        if len(values) == 1 and not values[0]:
            raise ValueError(f"{function.__name__}() arg is an empty sequence")
        found = function(*values)
        return float(found) if len(values) == 2 and float in (type(values[0]), type(values[1])) else found

    return extreme


def _device(kind: str, index: int | None = None) -> device:
    return device(kind) if index is None else device(kind, index)


def _warn(text: str, stacklevel: int = 2) -> None:
    warnings.warn(text, stacklevel=3)


def _print(*values: Any) -> None:
    print(*map(text_of, values))


def _seed(seed: int) -> None:
    default_generator.manual_seed(seed)


def _set_grad(mode: bool) -> None:
    modes.set_grad_enabled(mode)


def _infer_size(a: list, b: list) -> list:
    return list(np.broadcast_shapes(tuple(a), tuple(b)))


def _dict(pairs: Any = ()) -> dict:
    return dict(pairs)


PLAIN: dict[str, Callable[..., Any]] = {
    **_FUNCTIONS,
    **STRINGS,
    "add": _add,
    "add_": _extend_by,
    "sub": _arithmetic(operator.sub),
    "mul": _mul,
    "mul_": lambda held, count: _set_item(held, slice(None), _mul(held, count)),
    "div": _div,
    "floordiv": _floordiv,
    "__round_to_zero_floordiv": lambda a, b: int(_div(a, b)),
    "remainder": _remainder,
    "pow": _pow,
    "log": _log,
    "neg": lambda a: wrapped(-a),
    "abs": abs,
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "round": lambda a: float(round(a)),
    "gcd": math.gcd,
    "factorial": lambda a: wrapped(math.factorial(min(a, 20))) if a >= 0 else math.factorial(a),
    "modf": math.modf,
    "frexp": math.frexp,
    "ldexp": lambda a, b: math.ldexp(a, b),
    "divmod": lambda a, b: (_floordiv(a, b), _remainder(a, b)),
    "isnan": lambda a: a != a,
    "isinf": lambda a: cmath.isinf(a),
    "isfinite": lambda a: cmath.isfinite(a),
    "angle": lambda a: cmath.phase(a),
    "polar": lambda a, b: cmath.rect(a, b),
    "eq": same,
    "ne": lambda a, b: not same(a, b),
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "__is__": lambda a, b: a is b or (a is not None and b is not None and same(a, b)),
    "__isnot__": lambda a, b: not (a is b or (a is not None and b is not None and same(a, b))),
    "__not__": operator.not_,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "__lshift__": lambda a, b: wrapped(a << (b & 63)),
    "__rshift__": lambda a, b: a >> (b & 63),
    "bitwise_not": operator.invert,
    "__range_length": _range_length,
    "__derive_index": lambda index, start, step: start + index * step,
    "__contains__": _contains,
    "__getitem__": _item,
    "_set_item": _set_item,
    "select": _item,
    "slice": _slice,
    "len": _len,
    "append": lambda held, value: _extend_by(held, [value]),
    "extend": lambda held, more: held.extend(more),
    "insert": lambda held, place, value: held.insert(place, value),
    "remove": _remove,
    "clear": lambda held: held.clear(),
    "reverse": lambda held: held.reverse(),
    "sort": _sort,
    "sorted": lambda held, reverse=False: sorted(held, key=_key, reverse=reverse),
    "copy": lambda held: held.copy(),
    "pop": _pop,
    "index": _index,
    "count": _count,
    "list": lambda held: [part(held, n) for n in range(_len(held))] if isinstance(held, str) else list(held),
    "dict": _dict,
    "sum": sum,
    "any": any,
    "all": all,
    "max": _extreme(max),
    "min": _extreme(min),
    "keys": lambda held: list(held.keys()),
    "values": lambda held: list(held.values()),
    "items": lambda held: list(held.items()),
    "get": lambda held, key, default=None: held.get(key, default),
    "setdefault": lambda held, key, default: held.setdefault(key, default),
    "popitem": lambda held: held.popitem(),
    "update": lambda held, other: held.update(other),
    "Delete": lambda held, key: held.__delitem__(key),
    "int": _integer,
    "Int": _integer,
    "float": float,
    "Float": float,
    "bool": bool,
    "Bool": bool,
    "str": text_of,
    "complex": complex,
    "Complex": complex,
    "ScalarImplicit": lambda a: a,
    "FloatImplicit": float,
    "IntImplicit": int,
    "hash": hash,
    "hex": hex,
    "oct": oct,
    "bin": bin,
    "ord": lambda text: ord(text) if text.isascii() else raw(text)[0],
    "chr": chr,
    "format": format_,
    "percentFormat": percent_format,
    "print": _print,
    "warn": _warn,
    "device": _device,
    "Generator": lambda device=None: Generator("cpu" if device is None else device),
    "manual_seed": _seed,
    "is_grad_enabled": modes.is_grad_enabled,
    "set_grad_enabled": _set_grad,
    "is_scripting": lambda: True,
    "is_autocast_enabled": lambda *kind: _state_autocast(),
    "is_autocast_cpu_enabled": lambda: _state_autocast(),
    "has_torch_function": lambda *values: False,
    "_get_tracing_state": lambda: False,
    "_infer_size": _infer_size,
    "_unwrap_optional": lambda value: _unwrapped(value),
    "unchecked_unwrap_optional": lambda value: _unwrapped(value),
    "wait": lambda value: value,
    "unchecked_cast": lambda value: value,
}


def _unwrapped(value: Any) -> Any:
    if value is None:
        raise RuntimeError("Unwrapping null optional")
    return value


def _state_autocast() -> bool:
    from ..amp._state import is_autocast_enabled

    return is_autocast_enabled("cpu")
