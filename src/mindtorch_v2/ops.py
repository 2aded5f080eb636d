"""`torch.ops`: operators by namespace and overload, `torch.ops.aten.add.Tensor`.

Note [Overloads]
An overload of PyTorch's (generated/overloads.py has their signatures) is served by the operator of the schema that takes the same arguments, or by one
that takes them otherwise: by the dtype of a number (`add.Scalar`), or with buffers (`max.dim_max`). What is no operator here is a member of Tensor or a
function of the package of that name (`numel`, `sym_size.int`); the form without an underscore of what works in place (`exponential`) works on a copy, and a
form with buffers of what has none here copies into them. An overload that nothing of that serves is not there.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from ._above import above
from ._autograd import wiring as _wiring  # noqa: F401 (connects the dispatcher)
from ._dispatch.buffers import resize_out
from ._dispatch.dispatcher import call_converted, call_inplace
from ._dispatch.operator import Operator, Param
from ._dispatch.resolver import resolve
from ._schemas import FunctionSchema, Tag, default_text, plain, unfit
from ._tensor import Tensor

_OPTIONS = frozenset(("dtype", "layout", "device", "pin_memory"))  # of factories, which a buffer gives


class OpOverload:
    """One overload of an operator: `torch.ops.aten.add.Tensor`."""

    def __init__(
        self, packet: OpOverloadPacket, name: str, schema: FunctionSchema, tags: list[Tag], function: Callable[..., Any]
    ):
        self._overloadpacket = packet
        self._overloadname = name
        self._opname = packet._name
        self.namespace = packet._namespace
        self._schema = schema
        self._function = function
        self.tags = tags
        self.__name__ = f"{packet._name}.{name}"
        self.__qualname__ = schema.name.replace("::", ".")
        self.__module__ = packet.__module__

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator that this is an overload of."""
        return self._overloadpacket

    @property
    def op(self) -> Callable[..., Any]:
        return self._function

    _op = op

    @property
    def is_view(self) -> bool:
        """Whether the result shares memory with an argument that is not written to."""
        return any(a.alias_info is not None and not a.is_write for a in self._schema.arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except (TypeError, AttributeError) as error:
            why = unfit(self._schema, args, kwargs)
            if why is None:
                raise
            raise RuntimeError(why) from error

    def name(self) -> str:
        """`aten::add.Tensor`."""
        return self._schema.name + (f".{self._schema.overload_name}" if self._schema.overload_name else "")

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self) -> tuple:
        return _named, (self.namespace, self._opname, self._overloadname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator with all its overloads: callable itself, an attribute per overload."""

    def __init__(
        self,
        name: str,
        rows: dict[str, tuple[FunctionSchema, list[Tag]]],
        operators: tuple[Operator, ...],
        namespace: str = "aten",
    ):
        self._name = name
        self._namespace = namespace
        self._rows = rows
        self._operators = operators
        self._inplace = name.endswith("_") and not name.endswith("__")
        self._own_out = any(param.name == "out" for op in operators for param in op.params)
        self._made: dict[str, OpOverload | None] = {}
        self.__name__ = name
        self.__module__ = f"torch._ops.{namespace}"

    @property
    def _qualified_op_name(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._operators:
            given = dict(kwargs)
            out = None if self._own_out else kwargs.pop("out", None)
            try:
                op, bound = resolve(self._operators, args, kwargs, out=out)
            except TypeError as error:
                reasons = [unfit(self._rows[name][0], args, given) for name in self.overloads()]
                if not reasons or None in reasons:
                    raise
                text = "".join(f"{reason}\n\n" for reason in reasons)
                if len(reasons) == 1:
                    raise RuntimeError(reasons[0]) from error
                raise RuntimeError(
                    f"Overloaded torch operator invoked from Python failed to match any schema:\n{text}"
                ) from error
            return call_inplace(op, bound) if self._inplace else call_converted(op, bound, out)
        for name in self.overloads():
            arguments = self._rows[name][0].arguments
            required = sum(not a.has_default_value() for a in arguments)
            if required <= len(args) + len(kwargs) <= len(arguments):
                return getattr(self, name)(*args, **kwargs)
        raise TypeError(f"aten::{self._name}: no overload takes {len(args) + len(kwargs)} arguments")

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return [name for name in self._rows if self._overload(name) is not None]

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._overload(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self.overloads()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def _overload(self, name: str) -> OpOverload | None:
        """The one object that stands for an overload; None where nothing serves it."""
        if name not in self._made:
            row = self._rows.get(name)
            function = None if row is None else _Serving(self, row[0]).function()
            self._made[name] = None if row is None or function is None else OpOverload(self, name, *row, function)
        return self._made[name]

    def _of(self, op: Operator, form: str) -> OpOverload:
        """The overload that stands for a form of an operator."""
        for name, (schema, _) in self._rows.items():
            if (form == "out") == _has_buffers(schema) and _takes(op, schema, exactly=True):
                found = self._overload(name)
                if found is not None:
                    return found
        name = op.overload or "default"
        if form == "out":
            name = "out" if op.overload in ("", "Tensor") else f"{op.overload}_out"
        if self._made.get(name) is None:  # not one of PyTorch's
            schema = _own_schema(op, self._qualified_op_name, name, form)
            self._made[name] = OpOverload(self, name, schema, [], _caller(op, schema, self._inplace, named=False))
        return self._made[name]  # type: ignore[return-value]

    def _of_numbers(self, found: OpOverload, op: Operator, args: tuple) -> OpOverload:
        """The overload for numbers in places where `found` takes tensors; itself where there is none."""
        given = {p.name: value for p, value in zip(op.params, args)}
        tensors = _typed(found._schema, "Tensor")
        numbers = {name for name in tensors if isinstance(given.get(name), (int, float, complex))}
        if not numbers or "numbers_as_tensors" in op.tags:
            return found
        names = [a.name for a in found._schema.arguments]
        for name, (schema, _) in self._rows.items():
            if [a.name for a in schema.arguments] == names:
                changed = _typed(schema, "number") & tensors
                if numbers <= changed and all(given.get(more) is None for more in changed - numbers):
                    return self._overload(name) or found
        return found

    def __str__(self) -> str:
        return f"{self._namespace}.{self._name}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class HigherOrderOperator:
    """An operator that takes functions. There are none: `torch.cond` and its kin are plain functions."""


def _typed(schema: FunctionSchema, kind: str) -> set[str]:
    """The parameters of a type, or of that type or None."""
    return {a.name for a in schema.arguments if str(a.type) in (kind, f"Optional[{kind}]")}


def overload(op: Operator, form: str, args: tuple = ()) -> OpOverload:
    """The overload that stands for a form of an operator, "functional", "inplace" or "out", and for these arguments: numbers may have one of their own."""
    packet = _packet(op.name + "_" if form == "inplace" and not op.is_inplace else op.name)
    return packet._of_numbers(packet._of(op, form), op, args)


class _Serving:
    """What serves an overload: see Note [Overloads]."""

    def __init__(self, packet: OpOverloadPacket, schema: FunctionSchema):
        self.packet = packet
        self.schema = schema
        self.inputs = [a for a in schema.arguments if not a.is_out]
        self.buffers = [a.name for a in schema.arguments if a.is_out]

    def function(self) -> Callable[..., Any] | None:
        """The function that is called; None where there is none."""
        return self.operator() or self.on_copy() or self.member() or self.into_buffers()

    def operator(self) -> Callable[..., Any] | None:
        inplace = self.packet._inplace
        form = "out" if self.buffers else "inplace" if inplace else "function"
        for exactly in (True, False):
            for op in self.packet._operators:
                has = (form in op.variants) if form == "out" else not inplace or op.is_inplace or form in op.variants
                if has and _takes(op, self.schema, exactly):
                    return _caller(op, self.schema, inplace, named=not exactly)
        return None

    def member(self) -> Callable[..., Any] | None:
        if self.buffers or self.packet._operators:
            return None
        name = _MEMBERS.get(self.packet._name, self.packet._name.removeprefix("sym_"))
        if self.packet._name == _READER:
            return _read
        if self.inputs and self.inputs[0].name == "self" and hasattr(Tensor, name):
            return functools.partial(_call_member, name)
        function = getattr(sys.modules[__name__.rpartition(".")[0]], name, None)
        return function if callable(function) and not isinstance(function, type) else None

    def on_copy(self) -> Callable[..., Any] | None:
        """What `exponential_` does to a copy."""
        if self.buffers or self.packet._inplace or self.packet._operators:
            return None
        packet = _found(self.packet._name + "_")
        inner = None if packet is None else packet._overload(self.schema.overload_name or "default")
        if inner is None:
            return None

        def on_copy(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            return inner(self.clone(), *args, **kwargs)

        return on_copy

    def into_buffers(self) -> Callable[..., Any] | None:
        """The overload that takes the same and has no buffers, and a copy of its results."""
        if not self.buffers:
            return None
        wanted = [(a.name, a.type) for a in self.inputs]
        for name, (schema, _) in self.packet._rows.items():
            if _has_buffers(schema):
                continue
            given = [(a.name, a.type) for a in schema.arguments]
            if wanted in (given, [pair for pair in given if pair[0] not in _OPTIONS]):
                inner = self.packet._overload(name)
                if inner is not None:
                    return functools.partial(_into_buffers, inner, self.buffers)
        return None


_READER = "_local_scalar_dense"
_MEMBERS = {"lift_fresh_copy": "clone"}  # members of Tensor of another name


def _read(tensor: Tensor) -> Any:
    """The one element of a tensor as a number."""
    if tensor.numel() == 0:
        raise RuntimeError("Empty tensor not supported")
    return tensor.item()


def _call_member(name: str, /, self: Tensor, *args: Any, **kwargs: Any) -> Any:
    member = getattr(self, name)
    return member(*args, **kwargs) if callable(member) and not isinstance(member, Tensor) else member


def member_of(overload: OpOverload) -> str | None:
    """The method of Tensor that serves an overload; None where something else does."""
    function = overload._function
    if isinstance(function, functools.partial) and function.func is _call_member:
        name = function.args[0]
        return name if callable(getattr(Tensor, name)) else None
    return None


def _into_buffers(inner: OpOverload, names: list[str], /, *args: Any, **kwargs: Any) -> Any:
    buffers = [kwargs.pop(name) for name in names]
    results = inner(*args, **kwargs)
    for buffer, result in zip(buffers, results if isinstance(results, (tuple, list)) else (results,)):
        resize_out(buffer, tuple(result.shape), result.stride())
        buffer.copy_(result)
    return buffers[0] if len(buffers) == 1 else tuple(buffers)


def _caller(op: Operator, schema: FunctionSchema, inplace: bool, named: bool) -> Callable[..., Any]:
    """A call of an operator. named: its parameters are in another order, so that all arguments are given by name."""
    names = [a.name for a in schema.arguments if not a.is_out]
    buffers = [a.name for a in schema.arguments if a.is_out]

    def caller(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if out is None and buffers:
            given = [kwargs.pop(name, None) for name in buffers]
            out = given[0] if len(given) == 1 else None if None in given else tuple(given)
        if named:
            kwargs.update(zip(names, args))
            args = ()
        found, bound = resolve((op,), args, kwargs)
        return call_inplace(found, bound) if inplace else call_converted(found, bound, out)

    return caller


def _has_buffers(schema: FunctionSchema) -> bool:
    return any(a.is_out for a in schema.arguments)


def _takes(op: Operator, schema: FunctionSchema, exactly: bool) -> bool:
    """Whether an operator takes what an overload takes: the same parameters, or such as the overload's arguments may stand for."""
    given = {a.name: a for a in schema.arguments if not a.is_out}
    params = {p.name.rstrip("_") if p.name not in given else p.name: p for p in op.params}
    left_out = _OPTIONS if op.factory and _has_buffers(schema) else frozenset()
    if not given.keys() <= params.keys():
        return False
    for name, param in params.items():
        argument = given.get(name)
        if argument is None:
            if exactly and name not in left_out or param.required:
                return False
            continue
        kind, is_list = _kind(argument.type)
        own = plain(param.type)
        if kind == own and is_list == param.is_list:
            continue
        if exactly or is_list and not param.is_list:
            return False
        stands = own == "Tensor" and op.numbers if kind == "number" else (own, kind) in _STANDS
        if kind != own and not stands:
            return False
    return True


_STANDS = {("number", "int"), ("number", "float"), ("float", "int"), ("number", "bool")}


def _kind(text: str) -> tuple[str, bool]:
    return text.replace("Optional[", "").replace("List[", "").rstrip("]"), "List[" in text


def _own_schema(op: Operator, packet: str, name: str, form: str) -> FunctionSchema:
    """The signature of a form that PyTorch has not."""
    parts = [_worded(p) for p in op.params if not p.keyword]
    words = [_worded(p) for p in op.params if p.keyword]
    results = ["Tensor" for _ in op.returns]
    if form == "inplace" or packet.endswith("_"):
        parts[0] = parts[0].replace("Tensor", "Tensor(a!)", 1)
        results = ["Tensor(a!)"]
    elif op.is_view:
        parts[0] = parts[0].replace("Tensor", "Tensor(a)", 1)
        results = ["Tensor(a)" for _ in results]
    if form == "out":
        results = [f"Tensor({chr(ord('a') + k)}!)" for k in range(len(results))]
        names = ["out"] if len(results) == 1 else [one or f"out{k}" for k, one in enumerate(op.returns)]
        words += [f"{kind} {one}" for kind, one in zip(results, names)]
    results = [f"{kind} {one}".rstrip() for kind, one in zip(results, op.returns)]
    short = "" if name == "default" else f".{name}"
    given = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return FunctionSchema(f"{packet}{short}({', '.join([*parts, *(['*', *words] if words else [])])}) -> {given}")


def _worded(param: Param) -> str:
    """A parameter as PyTorch's grammar has it: `int[1] dim=-1`."""
    size = "" if param.size is None else param.size
    kind = f"{param.type}{'?' if param.elements_optional else ''}{f'[{size}]' if param.is_list else ''}{'?' if param.optional else ''}"
    return f"{kind} {param.name}" + ("" if param.required else f"={default_text(param.default, param.type)}")


@functools.cache
def _signatures() -> dict[str, list[tuple[str, str]]]:
    """Signatures and tags of PyTorch's overloads by operator."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in above("overloads").SIGNATURES.replace("\n", "|").split("|"):
        signature, _, tags = line.partition("\t")
        found.setdefault(signature.partition("(")[0].partition(".")[0], []).append((signature, tags))
    return found


@functools.cache
def _by_name() -> dict[str, list[Operator]]:
    """The schema's operators by name."""
    found: dict[str, list[Operator]] = {}
    for op in above("operators")():
        found.setdefault(op.name, []).append(op)
    return found


def _named(namespace: str, name: str, overload: str) -> OpOverload:
    return getattr(getattr(getattr(ops, namespace), name), overload)


def _packet(name: str) -> OpOverloadPacket:
    found = _found(name)
    if found is None:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return found


@functools.cache
def _found(name: str) -> OpOverloadPacket | None:
    """An operator by its name, None where there is none."""
    aliases = above("overloads").ALIASES
    operators = _by_name().get(aliases.get(name, name), [])
    if not operators and name.endswith("_"):
        base = name[:-1]
        operators = [op for op in _by_name().get(aliases.get(base, base), []) if "inplace" in op.variants]
    rows = {}
    for text, words in _signatures().get(name, ()):
        schema = FunctionSchema(f"aten::{text}")
        tags = [Tag[word] for word in words.split() if word != "-"]
        rows[schema.overload_name or "default"] = (
            schema,
            [*tags, *([] if "-" in words.split() else [Tag.pt2_compliant_tag])],
        )
    packet = OpOverloadPacket(name, rows, tuple(operators))
    return packet if operators or packet.overloads() else None


_MODULES = frozenset(("torch", "nn", "linalg", "special", "fft"))
"""The schema's namespaces of what torch has itself; the others are libraries' own."""


def serves(namespace: str) -> bool:
    """Whether a schema has the operators of a library, with derivatives and shapes: `torchvision`, and packages of operators."""
    from ._generated.functions import NAMESPACES

    return namespace in NAMESPACES and namespace not in _MODULES or _package(namespace) is not None


_packages: dict[str, dict[str, list[Operator]]] = {}
"""Operators by name of each package of operators that was found, by namespace; see Note [Packages of operators] in codegen/outside.py."""


@functools.cache
def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group="mindtorch_v2.operators")}


def _package(namespace: str) -> dict[str, list[Operator]] | None:
    """The operators of an installed package by their names, None where no package has the namespace."""
    if namespace not in _packages and namespace in _entry_points():
        _adopt(_entry_points()[namespace].load())
    return _packages.get(namespace)


def _adopt(generated: ModuleType) -> None:
    """Take the operators of a package, and what they do under `vmap`, cost, and have on an NPU, to the library's own."""
    found = _packages.setdefault(generated.NAMESPACE, {})
    for op in generated.table("tables").operators():
        found.setdefault(op.name, []).append(op)
    above("package_tables")(generated, found)


def _npu_names() -> dict[str, str]:
    from ._generated.functions import NAMESPACES

    return NAMESPACES["npu"]


def _cuda_version() -> int:
    return -1


def _of_library(namespace: str, name: str) -> Any:
    """An operator of a library that the schema has, None where there is none; `_cuda_version` says which CUDA the library was built for."""
    if not serves(namespace):
        return None
    if name == "_cuda_version":
        return _cuda_version
    package = _package(namespace)
    found = _by_name() if package is None else package
    # torch_npu's operators begin with their library's name themselves.
    operators = found.get(name if namespace == "npu" and name in _npu_names() else f"{namespace}_{name}", [])
    form = "function"
    if not operators and name.endswith("_"):
        operators, form = (
            [op for op in found.get(f"{namespace}_{name[:-1]}", []) if "inplace" in op.variants],
            "inplace",
        )
    rows = {}
    for op in operators:
        overload = op.overload or "default"
        rows[overload] = (_own_schema(op, f"{namespace}::{name}", overload, form), [])
        if "out" in op.variants and form == "function":
            overload = f"{op.overload}_out" if op.overload else "out"
            rows[overload] = (_own_schema(op, f"{namespace}::{name}", overload, "out"), [])
    return OpOverloadPacket(name, rows, tuple(operators), namespace) if operators else None


def _of_groups(namespace: str, name: str) -> OpOverloadPacket | None:
    return above("operators_of_groups")(namespace, name)


_FINDERS: dict[str, Callable[[str], Any]] = {
    "aten": _found,
    "c10d": functools.partial(_of_groups, "c10d"),
    "c10d_functional": functools.partial(_of_groups, "c10d_functional"),
}


def lookup(namespace: str, name: str) -> Any:
    """The operator of a namespace, or None where there is none; only operators are found, whatever the names."""
    if namespace in _FINDERS:
        return _FINDERS[namespace](name)
    made = vars(ops).get(namespace)
    custom = made._custom.get(name) if isinstance(made, _Namespace) else None
    return _of_library(namespace, name) if custom is None else custom


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
        found = _FINDERS.get(self._namespace, functools.partial(_of_library, self._namespace))(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._namespace}' object has no attribute '{name}'")
        setattr(self, name, found)
        return found


class _Ops(ModuleType):
    """The module itself: an attribute per namespace."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "reader":
            return _packet(_READER).default
        made = _Namespace(name)
        setattr(self, name, made)
        return made

    def import_module(self, module: str) -> None:
        """Import a module that defines operators; one that `mindtorch_v2.codegen` wrote has its operators served from then on."""
        imported = importlib.import_module(module)
        if hasattr(imported, "NAMESPACE") and imported.NAMESPACE not in _packages:
            _adopt(imported)

    def load_library(self, path: str) -> None:
        """Nothing where the schema has the library's operators (`torchvision/_C.so`, `torchvision/image.so`). OSError for other shared libraries."""
        file = Path(path)
        if file.parent.name == "torchvision" and serves("torchvision" if file.stem == "_C" else file.stem):
            return
        raise OSError(f"{path}: operators compiled for PyTorch cannot be loaded")


ops = sys.modules[__spec__.name]  # `torch._ops.ops` is `torch.ops`
ops.__class__ = _Ops
