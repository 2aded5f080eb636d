"""`torch.ops`: operators by namespace and overload, `torch.ops.aten.add.Tensor`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ._autograd import wiring as _wiring  # noqa: F401 (connects the dispatcher)
from ._dispatch.dispatcher import call_converted, call_inplace
from ._dispatch.operator import Operator
from ._dispatch.resolver import resolve


class OpOverload:
    """One overload of an operator."""

    def __init__(self, packet: OpOverloadPacket, operator: Operator, inplace: bool):
        self._packet = packet
        self._operator = operator
        self._inplace = inplace
        self.__name__ = f"{packet._name}.{operator.overload or 'default'}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        op, bound = resolve((self._operator,), args, kwargs)
        return call_inplace(op, bound) if self._inplace else call_converted(op, bound, out)

    def name(self) -> str:
        """`aten::add.Tensor`."""
        return f"aten::{self._packet._name}" + (f".{self._operator.overload}" if self._operator.overload else "")

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._packet._name}', overload='{self._operator.overload or 'default'}')>"


class OpOverloadPacket:
    """An operator with all its overloads: callable itself, an attribute per overload."""

    def __init__(self, name: str, overloads: tuple[Operator, ...], inplace: bool):
        self._name = name
        self._overloads = overloads
        self._inplace = inplace
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        op, bound = resolve(self._overloads, args, kwargs)
        return call_inplace(op, bound) if self._inplace else call_converted(op, bound, out)

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [op.overload or "default" for op in self._overloads]

    def __getattr__(self, name: str) -> OpOverload:
        for op in self._overloads:
            if (op.overload or "default") == name:
                return OpOverload(self, op, self._inplace)
        raise AttributeError(f"The underlying op of 'aten.{self._name}' has no overload name '{name}'")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


class HigherOrderOperator:
    """An operator that takes functions. There are none: `torch.cond` and its kin are plain functions."""


def _operators() -> Iterator[Operator]:
    from ._generated.tables import operators

    return operators()


class _Namespace(ModuleType):
    """`torch.ops.aten`, or a library's namespace."""

    def __init__(self, name: str):
        super().__init__(f"torch.ops.{name}")
        self._namespace = name
        self._custom: dict[str, Callable] = {}

    def define(self, name: str, function: Callable) -> None:
        """Add an operator of a library."""
        self._custom[name] = function
        setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        if self._namespace == "aten":
            own = tuple(op for op in _operators() if op.name == name)
            if own:
                packet = OpOverloadPacket(name, own, own[0].is_inplace)
            else:
                base = tuple(op for op in _operators() if op.name + "_" == name and "inplace" in op.variants)
                packet = OpOverloadPacket(name, base, True) if base else None
            if packet is not None:
                setattr(self, name, packet)
                return packet
        raise AttributeError(f"'_OpNamespace' '{self._namespace}' object has no attribute '{name}'")


class _Ops(ModuleType):
    """The module itself: an attribute per namespace."""

    def __getattr__(self, name: str) -> _Namespace:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Namespace(name)
        setattr(self, name, made)
        return made

    def load_library(self, path: str) -> None:
        """Shared libraries of operators for PyTorch cannot be loaded."""
        raise OSError(f"{path}: operators compiled for PyTorch cannot be loaded")


ops = sys.modules[__name__]  # `torch._ops.ops` is `torch.ops`
ops.__class__ = _Ops
