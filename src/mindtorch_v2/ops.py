"""`torch.ops`: operators by namespace and overload, `torch.ops.aten.add.Tensor`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from ._autograd import wiring as _wiring  # noqa: F401 (connects the dispatcher)
from ._dispatch.dispatcher import call_converted, call_inplace
from ._dispatch.operator import Operator
from ._dispatch.resolver import resolve


class AliasInfo(NamedTuple):
    """Whether an argument is written to."""

    is_write: bool


class Argument(NamedTuple):
    """One argument of an overload."""

    name: str
    type: str
    kwarg_only: bool
    is_out: bool
    alias_info: AliasInfo | None


class Schema(NamedTuple):
    """The signature of an overload."""

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]


class OpOverload:
    """One overload of an operator."""

    namespace = "aten"

    def __init__(self, packet: OpOverloadPacket, operator: Operator, inplace: bool, name: str):
        self._packet = packet
        self._operator = operator
        self._inplace = inplace
        self._overloadname = name
        self.__name__ = f"{packet._name}.{name}"
        self.__module__ = "torch._ops.aten"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._packet

    @property
    def _schema(self) -> Schema:
        op = self._operator
        writes = AliasInfo(is_write=True)
        shows = AliasInfo(is_write=False) if op.is_view else None
        found = [
            Argument(p.name, p.type, p.keyword, False, writes if self._inplace and not i else None if i else shows)
            for i, p in enumerate(op.params)
        ]
        if self._overloadname == _out_name(op):
            found.append(Argument("out", "Tensor", True, True, writes))
        name = "" if self._overloadname == "default" else self._overloadname
        return Schema(f"aten::{self._packet._name}", name, tuple(found))

    @property
    def is_view(self) -> bool:
        return self._operator.is_view

    @property
    def tags(self) -> list:
        return list(self._operator.tags)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        op, bound = resolve((self._operator,), args, kwargs)
        return call_inplace(op, bound) if self._inplace else call_converted(op, bound, out)

    def name(self) -> str:
        """`aten::add.Tensor`."""
        return f"aten::{self._packet._name}" + (f".{self._operator.overload}" if self._operator.overload else "")

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._packet._name}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator with all its overloads: callable itself, an attribute per overload."""

    def __init__(self, name: str, overloads: tuple[Operator, ...], inplace: bool):
        self._name = name
        self._overloads = overloads
        self._inplace = inplace
        self._made: dict[str, OpOverload] = {}
        self.__name__ = name
        self.__module__ = "torch._ops.aten"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        op, bound = resolve(self._overloads, args, kwargs)
        return call_inplace(op, bound) if self._inplace else call_converted(op, bound, out)

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [op.overload or "default" for op in self._overloads]

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        for op in self._overloads:
            short = op.overload or "default"
            if name in (short, _out_name(op)):
                return self._overload(op, name)
        raise AttributeError(f"The underlying op of 'aten.{self._name}' has no overload name '{name}'")

    def _overload(self, op: Operator, name: str) -> OpOverload:
        """The one object that stands for an overload."""
        if name not in self._made:
            self._made[name] = OpOverload(self, op, self._inplace, name)
        return self._made[name]

    def __str__(self) -> str:
        return f"aten.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


class HigherOrderOperator:
    """An operator that takes functions. There are none: `torch.cond` and its kin are plain functions."""


def _out_name(op: Operator) -> str:
    """What PyTorch calls the overload with `out=` of most operators."""
    return "out" if op.overload in ("", "Tensor") else f"{op.overload}_out"


def overload(op: Operator, form: str) -> OpOverload:
    """The overload that stands for a form of an operator: "functional", "inplace" or "out"."""
    name = op.name + "_" if form == "inplace" and not op.is_inplace else op.name
    packet = getattr(sys.modules[__spec__.name].aten, name)  # type: ignore[attr-defined]
    return packet._overload(op, _out_name(op) if form == "out" else op.overload or "default")


class _Reader:
    """`aten._local_scalar_dense`: the one element of a tensor as a number; the schema has no results that are no tensors."""

    __name__ = "_local_scalar_dense.default"
    __module__ = "torch._ops.aten"

    @property
    def default(self) -> _Reader:
        return self

    def __call__(self, tensor: Any) -> Any:
        if tensor.numel() == 0:
            raise RuntimeError("Empty tensor not supported")
        return tensor.item()

    def __str__(self) -> str:
        return "aten._local_scalar_dense.default"


reader = _Reader()


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
            if name == "_local_scalar_dense":
                return reader
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


ops = sys.modules[__spec__.name]  # `torch._ops.ops` is `torch.ops`
ops.__class__ = _Ops
