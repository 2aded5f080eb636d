"""What a call that no overload takes is answered with: PyTorch's error, of the same class and in the same words.

PyTorch parses the arguments of a call by the signatures of its overloads. With one signature the error is about the first argument that does not fit. With
several it is so when only one takes as many arguments; otherwise it lists them. `refusal` does the same once a call has failed, so that calls that succeed
pay nothing. A call that all this lets through failed for another reason, and keeps its error.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .._device import device
from .._dtype import dtype
from .._layout import memory_format
from .._tensor import Tensor
from .convert import ItemTooLong, Mismatch, convert_one
from .operator import NO_DEFAULT, Operator, Param, takes_number_first

_SORTED_AS = {
    "int": "int64_t",
    "float": "double",
    "str": "c10::string_view",
    "Device": "Device",
}
_SORTED_LISTS = {"int": "IntArrayRef", "SymInt": "SymIntArrayRef", "Tensor": "TensorList", "Scalar": "ScalarList"}
_NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "input": ("x", "a", "x1"), "other": ("x2",)}
"""The spellings that PyTorch takes for its own."""


class Refused(Exception):
    """The sentence for arguments that a signature does not take."""


class _Argument(NamedTuple):
    """A parameter of a signature: its name and text there, and what it accepts."""

    name: str
    text: str
    type_text: str
    type_name: str  # the schema's, with `[]` and `?`
    sorted_as: str
    required: bool
    keyword: bool
    is_int_list: bool
    accepts: Callable[
        [Any, int], int | None
    ]  # the value and the argument's number; None if it fits, else the item that does not, or -1


class _Signature:
    """One overload as PyTorch's parser sees it. A method's tensor is no argument of it."""

    def __init__(self, name: str, arguments: Sequence[_Argument]):
        self.name = name
        self.arguments = arguments
        self.positional = sum(not argument.keyword for argument in arguments)
        self.least = sum(argument.required for argument in arguments)

    def __str__(self) -> str:
        texts = [argument.text for argument in self.arguments]
        if self.positional < len(texts):
            texts.insert(self.positional, "*")
        return f"({', '.join(texts)})"

    def check(self, args: tuple, kwargs: dict) -> None:
        """Refused for the first argument that does not fit."""
        name, count = self.name, len(args)
        gathers = self.positional == 1 and self.arguments[0].is_int_list and count > 0 and _is_int(args[0])
        if not self.arguments and (args or kwargs):
            what = "keyword arguments" if kwargs else f"arguments ({count} given)"
            raise Refused(f"TensorBase.{name}() takes no {what}")
        if count > self.positional and not gathers:
            raise Refused(self._too_many(count))
        used, late = 0, None
        for number, argument in enumerate(self.arguments):
            by_keyword = not (not argument.keyword and number < count)
            if by_keyword:
                spelling = next((s for s in (argument.name, *_NUMPY_NAMES.get(argument.name, ())) if s in kwargs), None)
                if spelling is None:
                    if argument.required:
                        raise Refused(self._missing(number))
                    continue
                used += 1
                value = kwargs[spelling]
                if value is None and argument.name == "out":
                    continue
            else:
                value = args if gathers and not number and not isinstance(args[0], (tuple, list)) else args[number]
            late = self._check_one(argument, number, value, by_keyword) or late
        if used < len(kwargs):
            raise Refused(self._surplus(kwargs))
        if late is not None:
            raise _WrongItem(late)

    def _check_one(self, argument: _Argument, number: int, value: Any, by_keyword: bool) -> str | None:
        """Refused when a value does not fit. Of a list of ints only the first item counts; the sentence about a later one is returned."""
        wrong = argument.accepts(value, number)
        if wrong is None:
            return None
        name = self.name
        if wrong > 0 and argument.is_int_list:
            item = type_name(value[wrong])
            return (
                f"{name}(): argument '{argument.name}' failed to unpack the object at pos {wrong + 1} with error "
                f'"type must be {argument.type_text},but got {item}"'
            )
        where = "" if by_keyword else f" (position {number + 1})"
        text = f"{name}(): argument '{argument.name}'{where} must be {argument.type_text}, "
        if wrong < 0:
            raise Refused(f"{text}not {type_name(value)}")
        raise Refused(f"{text}but found element of type {type_name(value[wrong])} at pos {wrong}")

    def _too_many(self, count: int) -> str:
        least, most = self.least, self.positional
        if least != most:
            return f"{self.name}() takes from {least} to {most} positional arguments but {count} were given"
        ending, verb = "" if most == 1 else "s", "was" if count == 1 else "were"
        return f"{self.name}() takes {most} positional argument{ending} but {count} {verb} given"

    def _missing(self, first: int) -> str:
        names = [f'"{argument.name}"' for argument in self.arguments[first:] if argument.required]
        # Where one is missing PyTorch says "arguments", and where several are, "argument".
        return f"{self.name}() missing {len(names)} required positional argument{'s' if len(names) == 1 else ''}: {', '.join(names)}"

    def _surplus(self, kwargs: dict) -> str:
        names = [argument.name for argument in self.arguments]
        for key in kwargs:
            if key not in names:
                return f"{self.name}() got an unexpected keyword argument '{key}'"
        twice = next((key for key in kwargs if names.index(key) < self.positional), None)
        return (
            "invalid keyword arguments"
            if twice is None
            else f"{self.name}() got multiple values for argument '{twice}'"
        )

    def fits(self, args: tuple, kwargs: dict) -> bool:
        try:
            self.check(args, kwargs)
        except Refused:
            return False
        return True


def refusal(
    error: TypeError, name: str, ops: Iterable[Operator], args: tuple, kwargs: dict, method: bool, inplace: bool
) -> TypeError:
    """The error of a call of overloads that ended in one: PyTorch's sentence for arguments that do not fit, or `error` itself when they fit."""
    if name.startswith("__"):  # Python's operators have sentences of Python
        return error
    if method:
        args = args[1:]
    try:
        hidden = any("factors_first" in op.tags for op in ops)
        _check_any(name, _signatures(name, ops, method, inplace), args, kwargs, hidden)
    except (Refused, _WrongItem) as refused:
        return TypeError(str(refused))
    return error


def _check_any(name: str, signatures: Sequence[_Signature], args: tuple, kwargs: dict, hidden: bool = False) -> None:
    """Refused, or _WrongItem, where none of the signatures takes the arguments. hidden: there is one more, of which nothing is said."""
    if len(signatures) == 1 and not hidden:
        signatures[0].check(args, kwargs)
    elif not any(signature.fits(args, kwargs) for signature in signatures):
        count = len(args) + len(kwargs)
        likely = [s for s in signatures if s.least <= count <= len(s.arguments)]
        if len(likely) == 1:
            likely[0].check(args, kwargs)
        raise Refused(combination(name, [str(signature) for signature in signatures], args, kwargs))


def _is_int(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return False
    try:
        convert_one(_NOTHING, _INT, value, 0)
    except ValueError:
        return True
    except Mismatch:
        return False
    return True


_INT = Param("size", "int")
_NOTHING = Operator("", "", ())


class _WrongItem(Exception):
    """A list whose first items fit: PyTorch refuses the one that does not before it looks at other overloads."""


# ------------------------------------------------------------------------------------------------------------------ signatures


def _signatures(name: str, ops: Iterable[Operator], method: bool, inplace: bool) -> list[_Signature]:
    """The signatures of the overloads, in the order in which PyTorch tries them."""
    found = []
    for op in ops:
        found.append(_arguments(op, method, inplace, False))
        if (
            op.numbers
            and len(op.tensors) > 1
            and not (_takes_numbers_for_tensors(op) and name in (op.name, f"{op.name}_"))
        ):
            found.append(_arguments(op, method, inplace, True))
    return [_Signature(name, arguments) for arguments in _in_order(found)]


def _takes_numbers_for_tensors(op: Operator) -> bool:
    """Whether the parser itself takes numbers for tensors, as it does for the four arithmetic operators."""
    return takes_number_first(op) and op.overload == "Tensor"


def _arguments(op: Operator, method: bool, inplace: bool, numbers: bool) -> list[_Argument]:
    """The arguments of an overload; `numbers`: of the one that takes a number for the last tensor, or for those that may be left out."""
    last = op.tensors[-1] if numbers else -1
    own = next((i for i, p in enumerate(op.params) if p.name == "self"), 0) if method else -1
    made = [
        _argument(op, p, number, numbers and p.type == "Tensor" and not p.is_list and (number == last or p.optional))
        for number, p in enumerate(op.params)
        if number != own and not _is_option(op, p)
    ]
    made.sort(key=lambda argument: argument.keyword)
    if "out" in op.variants and not method and not inplace and not (numbers and takes_number_first(op)):
        made.append(_out(len(op.returns), op.composite is not None))
    if op.factory:
        made += [_argument(op, p, number, False) for number, p in enumerate(op.params) if _is_option(op, p)]
        made.append(_argument(op, _REQUIRES_GRAD, -1, False))
    return made


_REQUIRES_GRAD = Param("requires_grad", "bool", optional=True, default=False, keyword=True)
_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def _is_option(op: Operator, param: Param) -> bool:
    """Whether a parameter is one of those that all factories have."""
    return op.factory and param.keyword and param.name in _OPTIONS


def _argument(op: Operator, param: Param, number: int, as_number: bool) -> _Argument:
    name = (
        "input"
        if param.name == "self" and param.type == "Tensor" and not param.is_list and not as_number
        else param.name
    )
    if as_number:
        # The number has a name of its own where the tensor's is one of many.
        name = {"test_elements": "test_element"}.get(name, name)
        param = Param(param.name, "Scalar", optional=param.optional, keyword=param.keyword)
        if op.params[number].optional:
            param.required = False
    text = f"{param.type_text()} {name}"
    if not param.required:
        text += f" = {_default(param)}"
    ending = ("[]" if param.is_list else "") + ("?" if param.optional else "")
    kind = (
        _SORTED_LISTS.get(param.type, f"ArrayRef<{param.type}>")
        if param.is_list
        else _SORTED_AS.get(param.type, param.type)
    )
    sized = f"[{param.size}]" if param.size else ""
    return _Argument(
        name,
        text,
        param.type_text(),
        f"{param.type}[{param.size or ''}]{'?' if param.optional else ''}" if param.is_list else param.type + ending,
        f"{'*, ' if param.keyword else ''}{kind}{sized}{'?' if param.optional else ''} {name}{'' if param.required else '='}",
        param.required,
        param.keyword,
        param.is_list and param.type in ("int", "SymInt"),
        _tensors
        if param.type == "Tensor" and param.is_list and not param.elements_optional
        else _Accepts(op, param, number),
    )


class _Accepts:
    """Whether a value can stand for a parameter."""

    def __init__(self, op: Operator, param: Param, number: int):
        self.op = op
        self.param = param
        self.number = number

    def __call__(self, value: Any, number: int) -> int | None:
        param = self.param
        if param.type == "Any":
            return None
        if isinstance(value, (tuple, list)) and not param.is_list:
            return -1
        if param.type == "Device" and value.__class__ in (int, str):
            return None  # whether there is such a device is looked at later
        if param.type == "Tensor" and not param.is_list and not _takes_numbers_for_tensors(self.op):
            takes_none = value is None and (param.optional or not param.required)
            is_tensor = isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")
            return None if takes_none or is_tensor or "wrapped_numbers" in self.op.tags else -1
        try:
            convert_one(self.op, param, value, self.number)
        except (ItemTooLong, ValueError, OverflowError):
            return None  # of the kind that is wanted; it is refused when it is converted
        except Mismatch:
            return self._item(value) if isinstance(value, (tuple, list)) else -1
        return None

    def _item(self, value: Sequence) -> int:
        """The number of the first item that does not fit."""
        item = Param(self.param.name, self.param.type)
        for number, one in enumerate(value):
            try:
                convert_one(_NOTHING, item, one, 0)
            except (ValueError, OverflowError):
                continue
            except Mismatch:
                return number
        return -1


def _tensors(value: Any, number: int) -> int | None:
    if not isinstance(value, (tuple, list)):
        return -1
    for at, item in enumerate(value):
        if not isinstance(item, Tensor) and not hasattr(type(item), "__torch_function__"):
            raise _WrongItem(f"expected Tensor as element {at} in argument {number}, but got {type_name(item)}")
    return None


def _out(count: int, may_be_list: bool) -> _Argument:
    def accepts(value: Any, number: int) -> int | None:
        if value is None:
            return None
        if count == 1:
            is_list = may_be_list and isinstance(value, (tuple, list)) and all(isinstance(v, Tensor) for v in value)
            return None if is_list or isinstance(value, Tensor) else -1
        wrong = _tensors(value, number)
        if wrong is None and len(value) != count:
            raise _WrongItem(f"expected tuple of {count} elements but got {len(value)}")
        return wrong

    kind = "Tensor" if count == 1 else "tuple of Tensors"
    return _Argument("out", f"{kind} out = None", kind, "out", "*, Tensor out=None", False, True, False, accepts)


def _default(param: Param) -> str:
    value = param.default
    if value.__class__ is str:
        return f'"{value}"'
    if param.name in _OPTIONS:
        return "False" if param.name == "pin_memory" else "None"
    if param.is_list:
        if not value:
            return "None"
        if len(set(value)) == 1:
            return str(value[0])
        return f"{{{','.join(map(str, value))}}}"
    if param.name == "reduction" and param.type == "int":
        return f"at::Reduction::{('None', 'Mean', 'Sum')[value]}"
    return str(value)


def _in_order(found: list[list[_Argument]]) -> list[list[_Argument]]:
    """PyTorch's order of overloads: by their text, and one that takes more behind one that takes less."""
    found.sort(key=lambda arguments: ", ".join(argument.sorted_as for argument in arguments))
    behind = {i: {j for j, other in enumerate(found) if _is_behind(one, other)} for i, one in enumerate(found)}
    order = [i for i, before in behind.items() if not before]
    waiting = {i: before for i, before in behind.items() if before}
    for done in order:
        for i in sorted(waiting):
            waiting[i].discard(done)
            if not waiting[i]:
                del waiting[i]
                order.append(i)
    return [found[i] for i in order]


def _is_behind(one: list[_Argument], other: list[_Argument]) -> bool:
    left = [argument for argument in one if argument.type_name != "out"]
    right = [argument for argument in other if argument.type_name != "out"]
    if len(left) != len(right):
        return False
    pairs = [(a.type_name, b.type_name) for a, b in zip(left, right)]
    return any(a != b for a, b in pairs) and all(a == b or _takes_less(a, b) for a, b in pairs)


def _takes_less(kind: str, other: str) -> bool:
    """Whether an argument of the first type is tried behind one of the second, which it would hide or be hidden by."""
    return (
        (kind, other) in (("Scalar", "Tensor"), ("Scalar?", "Tensor?"), ("SymInt[]", "int[]"))
        or (kind == "int[]" and other in ("int", "int?"))
        or (kind == "Tensor[]" and "[]" in other)
        or (kind in ("SymInt", "int") and other == "Tensor")
    )


# ------------------------------------------------------------------------------------------------------------------ the list


def type_name(value: Any) -> str:
    """The name of a value's type as Python's C types have it: with the module for those that say it."""
    name = type(value).__name__
    return _QUALIFIED.get(name, name)


_QUALIFIED = {
    "UntypedStorage": "torch.storage.UntypedStorage",
    **{name: f"torch.{name}" for name in ("dtype", "device", "layout", "memory_format", "Size", "finfo", "iinfo")},
    "Generator": "torch._C.Generator",
}


def combination(name: str, signatures: Sequence[str], args: tuple, kwargs: dict) -> str:
    """The sentence for arguments that none of the signatures takes, which are given as text."""
    text = f"{name}() received an invalid combination of arguments - "
    if len(signatures) == 1:
        option = _Option(signatures[0])
        unknown = option.unknown(kwargs)
        if unknown:
            return f"{text}got unrecognized keyword arguments: {', '.join(unknown)}"
        given = option.compared(args, kwargs) if option.counts(args, kwargs) else _given(args, kwargs)
        return f"{text}got {given}, but expected {option.text}"
    lines = [f"{text}got {_given(args, kwargs)}, but expected one of:\n"]
    for signature in signatures:
        option = _Option(signature)
        lines.append(f" * {option.text}\n")
        if option.counts(args, kwargs):
            unknown = option.unknown(kwargs)
            if unknown:
                lines.append(f"      didn't match because some of the keywords were incorrect: {', '.join(unknown)}\n")
            else:
                compared = option.compared(args, kwargs)
                lines.append(f"      didn't match because some of the arguments have invalid types: {compared}\n")
    return "".join(lines)


def _given(args: tuple, kwargs: dict) -> str:
    # PyTorch goes through a hash table of few names, which gives the last one first.
    named = [f"{key}={type_name(value)}, " for key, value in reversed(kwargs.items())]
    parts = [f"{type_name(value)}, " for value in args] + named
    text = "".join(parts)
    return f"({text[:-2] if args else text})"


class _Option:
    """A signature as the list compares it with a call: by its text, of which each part between commas counts as an argument, `*` too, and a part with a
    default is named by that."""

    def __init__(self, text: str):
        self.text = text
        self.parts = [part.rpartition(" ") for part in self.text[1:-1].split(", ")]

    def counts(self, args: tuple, kwargs: dict) -> bool:
        return len(self.parts) == len(args) + len(kwargs)

    def unknown(self, kwargs: dict) -> list[str]:
        names = [name for _, _, name in self.parts[max(len(self.parts) - len(kwargs), 0) :]]
        return [key for key in reversed(kwargs) if key not in names]

    def compared(self, args: tuple, kwargs: dict) -> str:
        parts = []
        for number, (kind, _, name) in enumerate(self.parts):
            value = args[number] if number < len(args) else kwargs[name]
            text = ("" if number < len(args) else f"{name}=") + _detailed(value)
            parts.append(text if _is_named(kind, value) else f"!{text}!")
        text = "".join(f"{part}, " for part in parts)
        return f"({text[:-2] if args else text})"


def _is_named(kind: str, value: Any) -> bool:
    name = type_name(value)
    return name in ("float", "int") if kind == "float" else name == kind


def _detailed(value: Any) -> str:
    name = type_name(value)
    if not isinstance(value, (tuple, list)):
        return name
    inner = ", ".join(type_name(item) for item in value)
    if isinstance(value, list):
        return f"{name} of [{inner}]"
    return f"{name} of ({inner}{',' if len(value) == 1 else ''})"


# ------------------------------------------------------------------------------------------------------ functions by hand


def check_by_text(name: str, texts: tuple[str, ...], args: tuple, kwargs: dict) -> None:
    """TypeError for arguments that none of the signatures takes, which are given as the schema writes them: `int[] size, *, MemoryFormat? memory_format=None`."""
    try:
        _check_any(name, _from_texts(name, texts), args, kwargs)
    except (Refused, _WrongItem) as refused:
        raise TypeError(str(refused)) from None


@functools.cache
def _from_texts(name: str, texts: tuple[str, ...]) -> list[_Signature]:
    return [_Signature(name, [_argument(_NOTHING, param, 1, False) for param in _params(text)]) for text in texts]


class Usual(NamedTuple):
    """Arguments of a signature that need no closer look: the names of its parameters, and instances of which classes they are (None: of none; list: ints)."""

    names: tuple[str, ...]
    classes: tuple[type | None, ...]
    positional: int
    required: int

    def are(self, args: tuple, kwargs: dict) -> bool:
        """Whether these are; those that must be there are, by their place. Ints may stand one by one where the first parameter takes a list of them."""
        count = len(args)
        if count < self.required:
            return False
        if count > self.positional or (count == self.positional == 1 and args[0].__class__ is int):
            spread = self.positional and self.classes[0] is list and not kwargs
            return bool(spread) and all(value.__class__ is int for value in args)
        if not all(map(_is_usual, self.classes, args)):
            return False
        for name, value in kwargs.items():
            at = self.names.index(name) if name in self.names else -1
            if at < count or not _is_usual(self.classes[at], value):
                return False
        return True


def usual(text: str) -> Usual:
    """The usual arguments of a signature."""
    params = list(_params(text))
    classes = tuple(_USUAL.get(p.type + "[]" * p.is_list) for p in params)
    names = tuple(sys.intern(p.name) for p in params)
    return Usual(names, classes, sum(not p.keyword for p in params), sum(p.required for p in params))


def _is_usual(cls: type | None, value: Any) -> bool:
    if cls is list:
        return isinstance(value, (tuple, list)) and all(item.__class__ is int for item in value)
    return cls is not None and isinstance(value, cls)


_USUAL: dict[str, type] = {
    "Any": object,
    "Device": device,
    "MemoryFormat": memory_format,
    "ScalarType": dtype,
    "SymInt[]": list,
    "Tensor": Tensor,
    "bool": bool,
}


def _params(text: str) -> Iterator[Param]:
    keyword = False
    for part in text.split(", ") if text else ():
        if part == "*":
            keyword = True
            continue
        words, given, default = part.partition("=")
        kind, _, name = words.partition(" ")
        base, is_list, _ = kind.removesuffix("?").partition("[]")
        value = _CONSTANTS.get(default, default) if given else NO_DEFAULT
        yield Param(name, base, kind.endswith("?"), bool(is_list), default=value, keyword=keyword)


_CONSTANTS = {"None": None, "True": True, "False": False, "[]": ()}


def wrong_type(function: str, name: str, position: int, kind: str, value: object) -> TypeError:
    """The error of a function that is written by hand, for an argument of another type. Position 0: it goes by its name alone."""
    where = f" (position {position})" if position else ""
    return TypeError(f"{function}(): argument '{name}'{where} must be {kind}, not {type_name(value)}")


def check_tensor(function: str, value: object, name: str = "input", position: int = 1) -> None:
    """TypeError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise wrong_type(function, name, position, "Tensor", value)


def check_bool(function: str, name: str, value: object, position: int = 0) -> None:
    """TypeError for what is neither True nor False."""
    if value is not True and value is not False and convert_bool(value) is None:
        raise wrong_type(function, name, position, "bool", value)


def convert_bool(value: object) -> bool | None:
    """The flag that a value stands for, as numpy's bools and tensors of one do; None for all else."""
    try:
        return convert_one(_NOTHING, _BOOL, value, 0)
    except Mismatch:
        return None


_BOOL = Param("flag", "bool")
