"""Signatures of operators as objects, as `torch.ops.aten.add.Tensor._schema` is one, and the tags of overloads.

`parse` reads PyTorch's grammar: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
"""

from __future__ import annotations

import ast
import enum
import json
import re
from collections.abc import Iterator
from typing import Any

Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view maybe_aliasing_or_mutating "
    "needs_contiguous_strides needs_exact_strides needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy",
    module="torch",
    start=0,
)

_TYPE = re.compile(r"(?P<base>\w+)(?:\((?P<alias>[^)]*)\))?(?P<rest>[\w\[\]?!()]*)")
_PLAIN = {
    "SymInt": "int",
    "SymBool": "bool",
    "ScalarType": "int",
    "Layout": "int",
    "MemoryFormat": "int",
    "Scalar": "number",
    "float": "float",
}
_REAL = {"Scalar": "number"}


class AliasInfo:
    """What an argument or a result shares memory with, by letters, and whether that is written to."""

    __slots__ = ("after_set", "before_set", "is_write")

    def __init__(self, text: str):
        before, _, after = text.partition("->")
        self.is_write = "!" in before
        self.before_set = {letter.strip() for letter in before.replace("!", "").split("|") if letter.strip()}
        self.after_set = {letter.strip() for letter in after.split("|")} if after else set(self.before_set)


class Argument:
    """One argument, or one result, of a signature.

    type, real_type: words of PyTorch's (`Tensor`, `Optional[int]`, `List[int]`), in which sizes and dtypes are ints but for real_type. N: the length of a list
    for which one number may stand, or None.
    """

    __slots__ = ("N", "_default", "alias_info", "default_value", "is_out", "kwarg_only", "name", "real_type", "type")

    def __init__(self, text: str, kwarg_only: bool = False):
        words, given, default = text.partition("=")
        kind, _, self.name = words.rpartition(" ") if " " in words else (words, "", "")
        self._default = bool(given)
        self.kwarg_only = kwarg_only
        base, alias, rest = _parts(kind)
        self.alias_info = None if alias is None else AliasInfo(alias)
        self.is_out = kwarg_only and self.is_write
        size = re.search(r"\[(\d+)\]", rest)
        self.N = int(size[1]) if size else None
        self.type = _worded(plain(base), rest)
        self.real_type = _worded(_REAL.get(base, base), rest)
        self.default_value = _value(default) if given else None

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self) -> bool:
        """Whether the argument may be left out."""
        return self._default


class FunctionSchema:
    """A signature: name, overload_name, arguments, returns; its text is PyTorch's."""

    __slots__ = ("_text", "arguments", "name", "overload_name", "returns")

    def __init__(self, text: str):
        match = re.fullmatch(r"\s*([\w:]+)(?:\.(\w+))?\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
        if match is None:
            raise RuntimeError(f"no signature of an operator: {text!r}")
        self._text = text.strip()
        self.name = match[1]
        self.overload_name = match[2] or ""
        self.arguments = list(_arguments(match[3]))
        results = match[4]
        inner = results[1:-1] if results.startswith("(") and results.endswith(")") else results
        self.returns = [Argument(part) for part in _split(inner)]

    @property
    def is_mutable(self) -> bool:
        return any(argument.is_write for argument in self.arguments)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def plain(base: str) -> str:
    """The word that `Argument.type` has for a type of the grammar: `number` for `Scalar`."""
    return _PLAIN.get(base, base)


def parse(text: str) -> FunctionSchema:
    """The signature that a text says. RuntimeError for a text that is none."""
    return FunctionSchema(text)


def _arguments(text: str) -> Iterator[Argument]:
    keyword = False
    for part in _split(text):
        if part == "*":
            keyword = True
        else:
            yield Argument(part, keyword)


def _split(text: str) -> Iterator[str]:
    """What stands between the commas that are in no brackets or quotes."""
    depth, start, quoted = 0, 0, False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "([") - (letter in ")]")
            if letter == "," and not depth:
                yield text[start:place].strip()
                start = place + 1
    if text[start:].strip():
        yield text[start:].strip()


def _parts(kind: str) -> tuple[str, str | None, str]:
    match = _TYPE.fullmatch(kind)
    return (kind, None, "") if match is None else (match["base"], match["alias"], match["rest"])


def _worded(base: str, rest: str) -> str:
    """`Tensor` behind `?[]` is `List[Optional[Tensor]]`."""
    for mark in re.findall(r"\?|\[\d*\]", rest):
        base = f"Optional[{base}]" if mark == "?" else f"List[{base}]"
    return base


def _value(text: str) -> Any:
    return (
        text
        if re.fullmatch(r"[A-Za-z_]\w*", text) and text not in ("None", "True", "False")
        else ast.literal_eval(text)
    )


def default_text(value: Any, kind: str) -> str:
    """A default as PyTorch writes one of a type: `1.`, `[0, 0]`, `"mean"`."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(default_text(one, kind) for one in value)}]"
    if isinstance(value, str):
        return json.dumps(value)
    if kind == "float" and value is not None:
        text = f"{value:.17g}"
        return text if re.search(r"[.en]", text) else f"{text}."
    return repr(value) if value is None or isinstance(value, (int, float)) else str(value).rpartition(".")[2]


# ------------------------------------------------------------------------------------------------------------- calls that do not fit


def unfit(schema: FunctionSchema, args: tuple, kwargs: dict[str, Any]) -> str | None:
    """Why arguments that were refused are none of a signature's, in the words of PyTorch's operators; None where they are."""
    return _unfit(schema, args, kwargs, _REFUSED) or _unfit(schema, args, kwargs, _NO_NUMBERS)


def _unfit(
    schema: FunctionSchema, args: tuple, kwargs: dict[str, Any], refused: dict[str, tuple[type, ...]]
) -> str | None:
    name, arguments = schema.name, schema.arguments
    if len(args) > len(arguments):
        return f"{name}() expected at most {len(arguments)} argument(s) but received {len(args)} argument(s). Declaration: {schema}"
    given = dict(kwargs)
    used = 0
    for place, argument in enumerate(arguments):
        if place < len(args):
            if argument.kwarg_only:
                most = sum(not a.kwarg_only for a in arguments)
                return f"{name}() takes {most} positional argument(s) but {len(args)} was/were given.  Declaration: {schema}"
            if argument.name in given:
                return f"Argument '{argument.name}' specified both as positional and keyword argument. Schema: {schema}"
            value = args[place]
        elif argument.name in given:
            value = given.pop(argument.name)
        elif argument.has_default_value():
            continue
        else:
            return f"{name}() is missing value for argument '{argument.name}'. Declaration: {schema}"
        if not _fits(argument.type, value, refused):
            if argument.type == "Tensor":
                why = f"Unable to cast {value} to Tensor"
            elif argument.type == "number":
                why = f"Cannot cast {value} to number"
            else:
                inner = value
                if argument.type == "List[int]" and isinstance(value, list):
                    inner = next((v for v in value if not _fits("int", v, refused)), value)
                why = (
                    f"Unable to cast Python instance of type {type(inner)} to C++ type '?' (#define "
                    "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
                )
            return (
                f"{name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead found type "
                f"'{type(value).__name__}'.\nPosition: {used}\nValue: {value!r}\nDeclaration: {schema}\nCast error details: {why}"
            )
        used += 1
    if given:
        return f"Unknown keyword argument '{next(iter(given))}' for operator '{name}'. Schema: {schema}"
    return None


def _fits(kind: str, value: Any, refused: dict[str, tuple[type, ...]]) -> bool:
    """Whether a value may be one of the kind. What this library has classes of its own for is looked at later."""
    if kind.startswith("Optional["):
        return value is None or _fits(kind[9:-1], value, refused)
    if kind.startswith("List["):
        return isinstance(value, (list, tuple)) and all(_fits(kind[5:-1], item, refused) for item in value)
    if kind == "str":
        return isinstance(value, str)
    return not isinstance(value, refused.get(kind, ()))


_REFUSED: dict[str, tuple[type, ...]] = {
    "Tensor": (str, bytes, list, tuple, dict, set),
    "number": (str, bytes, list, tuple, dict, set),
    "int": (str, bytes, float, complex, list, tuple, dict, set),
    "float": (str, bytes, complex, list, tuple, dict, set),
    "bool": (str, bytes, float, complex, list, tuple, dict, set),
}
"""By kinds the plain values that are none. Numbers may stand for tensors, where the operator takes them."""
_NO_NUMBERS = {**_REFUSED, "Tensor": (*_REFUSED["Tensor"], int, float, complex)}
