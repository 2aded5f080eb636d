"""Calls of operators in TorchScript: `torch.NAME(...)`, `ops.prim.NAME(...)`, `ops.LIBRARY.NAME(...)`.

Note [Sites]
A file names operators without their overloads: the types of the arguments say which one is meant. So a call in the code is a Site, which finds the function for
the classes of the arguments that it sees and keeps it for the next call of such. The signatures are PyTorch's (`torch.ops`), tried in their order: first as
they are, then with numbers of one kind standing for another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import ops
from .._device import device
from .._dtype import dtype
from .._generated import functions as _functions
from .._layout import layout, memory_format
from .._random.generator import Generator
from .._schemas import Argument, FunctionSchema
from .._tensor import Tensor
from .numbers import code_of, named_by
from .objects import Named
from .plain import PLAIN
from .special import ANYWAY, FORMER, PRIM, SPECIAL

_CODED = ("ScalarType", "Layout", "MemoryFormat")
_NUMBERS = (int, float, bool, complex)
_Converter = Callable[[Any], Any]


class Site:
    """One call in the code. The first `positional` arguments stand in their order, the others have the names `keywords`.

    version: of the file's operators, of which some meant something else long ago.
    """

    __slots__ = ("_found", "_keywords", "_name", "_namespace", "_positional", "_version")

    def __init__(self, namespace: str, name: str, positional: int, keywords: tuple[str, ...], version: int):
        self._namespace = namespace
        self._name = name
        self._positional = positional
        self._keywords = keywords
        self._version = version
        self._found: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *values: Any) -> Any:
        key: Any = tuple([value.__class__ for value in values])
        if list in key:
            key = (key, tuple([_first(value) for value in values]))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self.chosen(values)
        return found(*values)

    def chosen(self, values: tuple) -> Callable[..., Any]:
        """The function for values of these classes."""
        name = self._name
        if self._namespace in ("prim", "_prim"):
            function = PRIM.get(name) or (PLAIN.get(name) if name in ("min", "max", "abs") else None)
            if function is None:
                raise NotImplementedError(f"the operator prim::{name} is not supported")
            return self._named(function)
        if self._namespace == "aten":
            function = PLAIN.get(name)
            if function is not None and _is_plain(values):
                return self._named(function)
            last, function = FORMER.get(name, (0, None))
            if self._version > last:
                function = SPECIAL.get(name)
            if function is not None and (name in ANYWAY or (values and isinstance(values[0], Tensor))):
                return self._named(function)
        return self._overload(values)

    def _named(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not self._keywords:
            return function
        count, keywords = self._positional, self._keywords
        return lambda *values: function(*values[:count], **dict(zip(keywords, values[count:])))

    def _overload(self, values: tuple) -> Callable[..., Any]:
        full = f"{self._namespace}::{self._name}"
        packet = ops.lookup(self._namespace, self._name)
        if packet is None:
            raise NotImplementedError(f"the operator {full} is not there")
        if not isinstance(packet, ops.OpOverloadPacket):  # of `torch.library`
            return self._named(packet)
        given = dict(zip(self._keywords, values[self._positional :]))
        positional = values[: self._positional]
        served = False
        for exactly in (True, False):
            for overload in _overloads(packet):
                served = True
                taken = _taken(overload._schema, positional, given, exactly)
                if taken is not None:
                    return _caller(overload, taken, self._positional, self._keywords)
        kinds = ", ".join(_kind_name(value) for value in values)
        raise NotImplementedError(
            f"{full} of ({kinds}) is not supported" if served else f"the operator {full} is not supported"
        )


def _first(value: Any) -> Any:
    if value.__class__ is not list:
        return None
    return value[0].__class__ if value else list


def _is_plain(values: tuple) -> bool:
    """Whether no tensor decides: there is none, or it is in, or beside, a container or a string."""
    if not values:
        return True
    first = values[0]
    if isinstance(first, Tensor):
        return False
    if isinstance(first, _NUMBERS):
        return not any(isinstance(value, Tensor) for value in values)
    return True


def _overloads(packet: Any) -> list[Any]:
    return [packet._overload(name) for name in packet.overloads()]


def _taken(
    schema: FunctionSchema, positional: tuple, given: dict[str, Any], exactly: bool
) -> list[_Converter | None] | None:
    """What converts each argument, positional ones first, where a signature takes them; None where it does not."""
    arguments = schema.arguments
    if len(positional) > len(arguments) or any(a.kwarg_only for a in arguments[: len(positional)]):
        return None
    by_name = {a.name: a for a in arguments[len(positional) :]}
    if not given.keys() <= by_name.keys():
        return None
    if any(name not in given and not a.has_default_value() for name, a in by_name.items()):
        return None
    converters = []
    pairs = [*zip(arguments, positional), *((by_name[name], value) for name, value in given.items())]
    for argument, value in pairs:
        word, optional, is_list = _word_of(argument)
        if value is None:
            if not optional and (exactly or word not in _CODED):
                return None
            converters.append(None)
        elif not _fits(value, word, is_list, argument, exactly):
            return None
        else:
            converters.append(functools.partial(named_by, word) if word in _CODED else None)
    return converters


@functools.cache
def _parsed(text: str) -> tuple[str, bool, bool]:
    is_list = "List[" in text
    optional = text.startswith("Optional[")
    return text.replace("Optional[", "").replace("List[", "").rstrip("]"), optional, is_list


def _word_of(argument: Argument) -> tuple[str, bool, bool]:
    return _parsed(argument.real_type)


def _fits(value: Any, word: str, is_list: bool, argument: Argument, exactly: bool) -> bool:
    if not is_list:
        return _fits_one(value, word, exactly)
    if type(value) is list or (type(value) is tuple and not exactly):
        return all(one is None or _fits_one(one, word, exactly) for one in value)
    return argument.N is not None and _fits_one(value, word, exactly)


def _fits_one(value: Any, word: str, exactly: bool) -> bool:
    kind = value.__class__
    if word == "Tensor":
        return isinstance(value, Tensor) or (not exactly and kind in _NUMBERS)
    if word in ("int", "SymInt", *_CODED):
        return kind is int or (
            not exactly and (kind is bool or isinstance(value, (Tensor, dtype, layout, memory_format)))
        )
    if word == "float":
        return kind is float or (not exactly and (kind is int or isinstance(value, Tensor)))
    if word in ("number", "Scalar"):
        return kind in _NUMBERS or (not exactly and isinstance(value, Tensor))
    if word == "bool":
        return kind is bool or (not exactly and (kind is int or isinstance(value, Tensor)))
    if word == "Device":
        return isinstance(value, device) or (not exactly and kind is str)
    if word == "str":
        return kind is str
    if word == "complex":
        return kind is complex
    return word == "Generator" and isinstance(value, Generator)


def _caller(
    overload: Any, converters: list[_Converter | None], positional: int, keywords: tuple[str, ...]
) -> Callable[..., Any]:
    """What calls an overload with a script's values, and gives its results as such."""
    function = _public(overload) or overload._function
    finish = _finisher(overload._schema)
    if not keywords and not any(converters):
        return function if finish is None else lambda *values: finish(function(*values))

    def call(*values: Any) -> Any:
        values = tuple([v if c is None else c(v) for v, c in zip(values, converters)])
        result = function(*values[:positional], **dict(zip(keywords, values[positional:])))
        return result if finish is None else finish(result)

    return call


def _public(overload: Any) -> Callable[..., Any] | None:
    """The function or method of the package that binds this overload's arguments as they stand: it takes the short road."""
    packet = overload._overloadpacket
    if packet._inplace or not packet._operators or packet._namespace != "aten":
        return None
    if any(a.is_out for a in overload._schema.arguments):
        return None
    for op in packet._operators:
        if op.name != packet._name:
            return None
        if not ops._takes(op, overload._schema, exactly=True):
            continue
        if [p.name for p in op.params] != [a.name for a in overload._schema.arguments]:
            continue
        if "function" in op.variants:
            names = (named[op.name] for named in _functions.NAMESPACES.values() if op.name in named)
            return getattr(_functions, next(names, ""), None)
        return getattr(Tensor, op.name, None) if "method" in op.variants else None
    return None


def _finisher(schema: FunctionSchema) -> Callable[[Any], Any] | None:
    if len(schema.returns) == 1 and schema.returns[0].type.startswith("List["):
        return _as_list
    if schema.name in ("aten::result_type", "aten::promote_types"):
        return code_of
    return None


def _as_list(result: Any) -> Any:
    return result if type(result) is list else list(result)


def _kind_name(value: Any) -> str:
    if isinstance(value, list):
        return f"{_kind_name(value[0]) if value else ''}[]"
    if isinstance(value, Named):
        return value._script_class.short
    return "Tensor" if isinstance(value, Tensor) else "None" if value is None else type(value).__name__
