"""Types of TorchScript, and whether a value has one.

Note [Values]
A script's tensor is a Tensor; its numbers, strings, lists, dicts and tuples are Python's own, of exactly these classes; None is None. A dtype, a layout and a
memory format are ints, as in the file. Devices are `torch.device`s. Instances of classes of the file are `ScriptModule`, `Instance`, `Named` and `Member`.
Types are looked at where a program calls a method, and where the code itself asks (`isinstance`): the compiler that wrote the code has checked the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._device import device
from .._dtype import dtype
from .._layout import layout, memory_format
from .._random.generator import Generator
from .._tensor import Tensor
from .numbers import code_of
from .objects import Instance, Member, Named, ScriptClass

_BARE = frozenset(
    ("Tensor", "int", "float", "bool", "str", "complex", "number", "NoneType", "Device", "Any", "Generator", "Layout")
) | frozenset(("ScalarType", "MemoryFormat", "Stream", "AnyList", "AnyTuple", "AnyEnumType", "AnyClassType", "Storage"))
_WITH_PARTS = frozenset(("List", "Dict", "Optional", "Tuple", "Union", "Final", "Future", "Await", "RRef"))


@dataclass(frozen=True)
class Kind:
    """A type: its name, the types between its brackets, and the class of the file that it is."""

    name: str
    parts: tuple[Kind, ...] = ()
    cls: ScriptClass | None = None

    def __str__(self) -> str:
        if self.cls is not None:
            return self.cls.name
        if self.name == "List":
            return f"List[{self.parts[0]}]"
        return f"{self.name}[{', '.join(map(str, self.parts))}]" if self.parts else self.name


ANY = Kind("Any")


def kind_of(node: ast.expr | None, class_of: Callable[[str], ScriptClass | None]) -> Kind:
    """The type that an annotation writes. ValueError for what is none; class_of: the class of a dotted name, or None."""
    if node is None:
        return ANY
    if isinstance(node, ast.Constant) and node.value is None:
        return Kind("NoneType")
    if isinstance(node, ast.Name) and node.id == "None":
        return Kind("NoneType")
    if isinstance(node, ast.Name) and node.id in _BARE | _WITH_PARTS:
        return Kind(node.id)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in _WITH_PARTS:
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return Kind(node.value.id, tuple(kind_of(part, class_of) for part in inner))
    name = dotted(node)
    if name is not None and name.partition(".")[0] in ("__torch__", "torch"):
        cls = class_of(name)
        if cls is not None:
            return Kind(name, (), cls)
    raise ValueError(f"unknown type {ast.unparse(node)[:100]}")


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` of an expression that is such a name, or None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "str": (str,),
    "complex": (complex,),
    "number": (int, float, complex, bool),
    "NoneType": (type(None),),
    "Device": (device,),
    "AnyList": (list,),
    "AnyTuple": (tuple, Named),
    "AnyEnumType": (Member,),
    "Layout": (int,),
    "ScalarType": (int,),
    "MemoryFormat": (int,),
    "Generator": (Generator,),
}


def holds(value: Any, kind: Kind) -> bool:
    """Whether a script's value has a type; containers element by element."""
    name, parts = kind.name, kind.parts
    if kind.cls is not None:
        own = getattr(value, "_script_class", None) if isinstance(value, (Instance, Named, Member)) else None
        own = value.__dict__.get("_script_class") if own is None and hasattr(value, "__dict__") else own
        return own is kind.cls or (kind.cls.flavour == "interface" and own is not None and kind.cls.covers(own))
    if name == "Tensor":
        return isinstance(value, Tensor)
    plain = _PLAIN.get(name)
    if plain is not None:
        return type(value) in plain
    if name == "List":
        return type(value) is list and (not parts or all(holds(v, parts[0]) for v in value))
    if name == "Dict":
        return type(value) is dict and all(holds(k, parts[0]) and holds(v, parts[1]) for k, v in value.items())
    if name == "Tuple":
        if not isinstance(value, tuple) or not parts:
            return isinstance(value, tuple)
        return len(value) == len(parts) and all(map(holds, value, parts))
    if name == "Optional":
        return value is None or holds(value, parts[0])
    if name == "Union":
        return any(holds(value, part) for part in parts)
    if name == "Final":
        return holds(value, parts[0])
    return name in ("Any", "AnyClassType", "Future", "Await", "Stream", "Storage")


class Unfit(Exception):
    """A program's value has not the type of the parameter."""


def fitted(value: Any, kind: Kind) -> Any:
    """A program's value as a script's value of a type: lists and dicts are copied, ints become floats where floats are wanted. Unfit if it is none."""
    name, parts = kind.name, kind.parts
    if kind.cls is not None and kind.cls.flavour == "tuple" and type(value) is not Named:
        if not isinstance(value, tuple) or len(value) != len(kind.cls.fields):
            raise Unfit
        return Named(kind.cls, tuple(fitted(v, k) for v, k in zip(value, kind.cls.kinds())))
    if name == "List":
        if not isinstance(value, (list, tuple)):
            raise Unfit
        return [fitted(v, parts[0]) for v in value] if parts else list(value)
    if name == "Dict":
        if not isinstance(value, dict):
            raise Unfit
        return {fitted(k, parts[0]): fitted(v, parts[1]) for k, v in value.items()}
    if name == "Tuple":
        if not isinstance(value, tuple) or (parts and len(value) != len(parts)):
            raise Unfit
        return tuple(fitted(v, k) for v, k in zip(value, parts)) if parts else tuple(value)
    if name == "Optional":
        return None if value is None else fitted(value, parts[0])
    if name == "Final":
        return fitted(value, parts[0])
    if name == "Union":
        for part in parts:
            if holds(value, part):
                return value
        for part in parts:
            try:
                return fitted(value, part)
            except Unfit:
                continue
        raise Unfit
    if name == "Any":
        return value
    return _fitted_plain(value, kind)


def _fitted_plain(value: Any, kind: Kind) -> Any:
    name = kind.name
    if name == "float" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if name == "complex" and isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        return complex(value)
    if name == "int":
        if isinstance(value, int):
            return int(value)
        if isinstance(value, (dtype, layout, memory_format)):
            return code_of(value)
    if name == "Device" and isinstance(value, str):
        return device(value)
    if name == "str" and isinstance(value, str):
        return str(value)
    if isinstance(value, Tensor) and value.numel() == 1 and name in ("number", "int", "float"):
        number = value.item()
        if name == "number" or type(number).__name__ == name:
            return number
    if not holds(value, kind):
        raise Unfit
    return value
