"""Arguments as the schema's types want them, or the reason why not."""

from __future__ import annotations

import numbers
from operator import index as to_index
from typing import Any

import numpy as np

from .._device import device, placed
from .._dtype import DTYPES, dtype
from .._layout import layout, memory_format
from .._random.generator import Generator
from .._tensor import TOO_LONG, Tensor, check_word, is_word
from . import ops
from .operator import Operator, Param, takes_number_first


class Mismatch(Exception):
    """An argument has the wrong type; carries the parameter and the value."""

    def __init__(self, param: Param, value: Any, position: int, detail: str = ""):
        super().__init__(param.name)
        self.param = param
        self.value = value
        self.position = position
        self.detail = detail


class ItemTooLong(Mismatch):
    """A list whose items are whole numbers, of which one has no place in 64 bits."""


def _int(value: Any) -> Any:
    found = _whole(value)
    if found is not _NO:
        check_word(found)
    return found


def _whole(value: Any) -> Any:
    kind = value.__class__
    if kind is int:
        return value
    if kind is bool:
        return _NO
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Tensor):
        return _tensor_int(value)
    if isinstance(value, int) or (isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "iu"):
        return int(value)
    # What counts as an index, as enumerations may; numpy's other numbers and tensors do not.
    if hasattr(kind, "__index__") and not isinstance(value, (np.generic, np.ndarray)):
        return to_index(value)
    return _NO


def _tensor_int(value: Tensor) -> Any:
    if value._payload.ndim == 0 and value._dtype.category == 1 and not value.requires_grad:
        return int(value.item())
    return _NO


def _float(value: Any) -> Any:
    kind = value.__class__
    if kind is float:
        return value
    if kind is int or isinstance(value, (int, float, np.floating, np.integer)):
        return float(value)
    if (
        isinstance(value, Tensor)
        and value._payload.ndim == 0
        and not value._dtype.is_complex
        and not value.requires_grad
    ):
        return float(value.item())
    return _NO


def _bool(value: Any) -> Any:
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Tensor) and value._payload.ndim == 0 and value._dtype.name == "bool":
        return bool(value.item())
    return _NO


def _scalar(value: Any) -> Any:
    kind = value.__class__
    if kind is float or kind is bool or kind is complex:
        return value
    if kind is int:
        if -(1 << 63) <= value < 1 << 64:
            return value
        raise OverflowError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")
    if isinstance(value, np.generic):
        return value.item()
    if (
        isinstance(value, Tensor)
        and value._payload.ndim == 0
        and value.device.type != "meta"
        and not value.requires_grad
    ):
        return value.item()
    if isinstance(value, numbers.Number):
        return value
    return _NO


def _dtype_of(number: Any) -> Any:
    """The dtype of a tensor of a number; None for the default one."""
    kinds = ((bool, "bool"), (int, "int64"))
    return next((DTYPES[name] for kind, name in kinds if isinstance(number, kind)), None)


def _instance_of(kind: type) -> Any:
    def check(value: Any) -> Any:
        return value if isinstance(value, kind) else _NO

    return check


def _device(value: Any) -> Any:
    if isinstance(value, device | str) or (isinstance(value, int) and not isinstance(value, bool)):
        return placed(value)
    return _NO


_PYTHON_DTYPES = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


def _dtype(value: Any) -> Any:
    if isinstance(value, dtype):
        return value
    name = _PYTHON_DTYPES.get(value) if isinstance(value, type) else None
    if name is not None:
        from .._dtype import DTYPES

        return DTYPES[name]
    return _NO


def as_dtype(value: Any) -> Any:
    """The dtype that an argument means, a dtype or Python's float, int, bool or complex; None for all else."""
    found = _dtype(value)
    return None if found is _NO else found


def _tensor(value: Any) -> Any:
    if isinstance(value, Tensor) or hasattr(type(value), "__torch_function__"):  # the latter takes over the call later
        return value
    return _NO


class _No:
    __slots__ = ()


_NO = _No()
_CONVERTERS = {
    "Tensor": _tensor,
    "int": _int,
    "SymInt": _int,
    "float": _float,
    "bool": _bool,
    "Scalar": _scalar,
    "str": _instance_of(str),
    "ScalarType": _dtype,
    "Device": _device,
    "Layout": _instance_of(layout),
    "MemoryFormat": _instance_of(memory_format),
    "Generator": _instance_of(Generator),
    "Dimname": _instance_of(str),
    "Storage": lambda value: value,
    "Any": lambda value: value,
}


def convert_one(op: Operator, param: Param, value: Any, position: int) -> Any:
    """`value` as `param` wants it. Raises Mismatch."""
    if value is None:
        if param.optional:
            return None
        if param.is_list and param.default == ():  # `stride=None`: what is empty by default may be left out like that
            return ()
        raise Mismatch(param, value, position)
    converter = _CONVERTERS[param.type]
    if not param.is_list:
        converted = converter(value)
        if converted is _NO:
            if param.type == "Tensor" and op.numbers and (position != 0 or takes_number_first(op)):
                converted = _scalar(value)
                if converted is not _NO:
                    return converted
            if param.type == "Tensor" and position and "wrapped_numbers" in op.tags and _scalar(value) is not _NO:
                return ops.scalar_tensor(value, dtype=_dtype_of(value))
            raise Mismatch(param, value, position)
        return converted
    if value.__class__ in (tuple, list) or isinstance(value, (tuple, list)):
        items = []
        whole = converter is _int
        converter = _whole if whole else converter
        for index, item in enumerate(value):
            if item is None and param.elements_optional:
                items.append(None)
                continue
            converted = converter(item)
            if whole and converted is not _NO and not is_word(converted):
                detail = f'failed to unpack the object at pos {index + 1} with error "{TOO_LONG}"'
                raise ItemTooLong(param, value, position, detail)
            if converted is _NO or (param.type == "Scalar" and isinstance(item, Tensor)):  # such lists are of tensors
                raise Mismatch(param, value, position, _element_detail(param, position, index, item))
            items.append(converted)
        if param.size and len(items) == 1 and param.size > 1 and "one_for_all" in op.tags:
            items *= param.size
        if param.type != "Tensor":
            return tuple(items)
        # What writes to the tensors of a list gives that list back.
        return value if position == 0 and op.is_inplace and value.__class__ is list else items
    if param.type in ("int", "SymInt", "float", "bool"):
        if param.size is not None:
            converted = converter(value)
            if converted is not _NO:
                return (converted,) * param.size
        elif isinstance(value, Tensor) and value.numel() == 1:
            converted = converter(value.reshape(()))
            if converted is not _NO:
                return (converted,)
    raise Mismatch(param, value, position)


def _element_detail(param: Param, position: int, index: int, item: Any) -> str:
    """The end of the message for a wrong item of a list; the whole message for a tensor's place."""
    kind = type(item).__name__
    if param.type == "Tensor":
        return f"expected Tensor as element {index} in argument {position}, but got {kind}"
    return (
        f'failed to unpack the object at pos {index + 1} with error "type must be {param.type_text()},but got {kind}"'
    )


def convert(op: Operator, args: tuple, method: bool = False, inplace: bool = False) -> tuple:
    """All arguments of an operator, in schema order. TypeError, in PyTorch's words, for one that cannot stand there."""
    converted = []
    too_long = None
    try:
        for position, param in enumerate(op.params):
            try:
                converted.append(convert_one(op, param, args[position], position))
            except ValueError as error:
                if str(error) != TOO_LONG:
                    raise
                too_long = too_long or error  # said once the types of all are right
    except Mismatch as mismatch:
        raise TypeError(describe(op, mismatch, method, inplace)) from None
    if too_long is not None:
        raise too_long
    return tuple(converted)


def called(op: Operator, inplace: bool) -> str:
    """The name by which an operator was called."""
    return f"{op.name}_" if inplace and not op.name.endswith("_") else op.name


def describe(op: Operator, mismatch: Mismatch, method: bool = False, inplace: bool = False) -> str:
    """The message for one wrong argument. Positions of a method's arguments begin behind the tensor."""
    param, call = mismatch.param, called(op, inplace)
    if type(mismatch.value).__name__ == "_Required":
        return f'{call}() missing 1 required positional arguments: "{param.name}"'
    name = "input" if param.name == "self" else param.name
    if mismatch.detail:
        return mismatch.detail if param.type == "Tensor" else f"{call}(): argument '{name}' {mismatch.detail}"
    where = "" if param.keyword else f" (position {mismatch.position + (0 if method and mismatch.position else 1)})"
    return f"{call}(): argument '{name}'{where} must be {param.type_text()}, not {type(mismatch.value).__name__}"
