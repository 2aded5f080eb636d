"""The signature of an operator, in PyTorch's grammar, of a Python function's annotations."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._device import device
from ._dtype import dtype
from ._layout import layout, memory_format
from ._random.generator import Generator
from ._schemas import Tag
from ._tensor import Tensor

_WORDS: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    dtype: "ScalarType",
    device: "Device",
    layout: "Layout",
    memory_format: "MemoryFormat",
    Generator: "Generator",
    int | float | bool: "Scalar",
    int | float | bool | complex: "Scalar",
}


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Tag | Sequence[Tag] | None = (),
) -> str:
    """The signature of a function as text: `(Tensor x, SymInt y, float z=1.0) -> Tensor`.

    Args:
        prototype_function: a function whose parameters and result are annotated.
        mutates_args: the names of the parameters that it writes to, or "unknown" for all tensors.
        op_name: stands before the text.

    ValueError for an annotation that no operator can have, for a parameter without one, and for a name in mutates_args that is none.
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    written = {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    if "unknown" in written:
        written = {
            name for name, hint in hints.items() if name != "return" and "Tensor" in _word(hint, prototype_function)
        }
    unknown = written - set(signature.parameters)
    if unknown:
        raise ValueError(
            f"infer_schema(func): {sorted(unknown)} in mutates_args were not found in the function's signature."
        )
    parts: list[str] = []
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(
                f"infer_schema(func): *args, **kwargs and positional-only parameters are not supported, got {parameter}"
            )
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        word = _word(hints[name], prototype_function)
        if name in written:
            word = word.replace("Tensor", f"Tensor(a{number}!)", 1)
        parts.append(
            f"{word} {name}" + ("" if parameter.default is parameter.empty else f"={_default(parameter.default)}")
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {_results(hints.get('return', type(None)), prototype_function)}"


def _word(hint: Any, function: Callable) -> str:
    """An annotation in the grammar."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        others = [a for a in arguments if a is not type(None)]
        if len(others) < len(arguments):
            inner = others[0] if len(others) == 1 else typing.Union[tuple(others)]
            return _word(inner, function) + "?"
    elif (
        origin is not None
        and isinstance(origin, type)
        and issubclass(origin, Sequence)
        and origin is not tuple
        and len(arguments) == 1
    ):
        return _word(arguments[0], function) + "[]"
    raise ValueError(f"infer_schema(func): unsupported type {hint} in {function}")


def _results(hint: Any, function: Callable) -> str:
    if hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        return f"({', '.join(_word(part, function) for part in typing.get_args(hint))})"
    return _word(hint, function)


def _default(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (dtype, device)):
        return str(value).removeprefix("torch.") if isinstance(value, dtype) else f'"{value}"'
    raise ValueError(f"infer_schema(func): unsupported default {value!r}")
