"""`torch.library`: custom operators written in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from . import ops
from ._autograd.function import Function
from ._dispatch.overrides import find_for, run_function
from ._signatures import infer_schema as infer_schema
from ._tensor import Tensor

_definitions: dict[str, CustomOpDef] = {}
_fakes_to_come: dict[str, Callable] = {}  # of operators that nobody has defined yet


class CustomOpDef:
    """An operator of a library: an implementation per device, a fake one for the meta device, and a derivative."""

    def __init__(self, name: str, function: Callable):
        self._qualname = name
        self._namespace, self._name = name.split("::")
        self._kernels: dict[str | None, Callable] = {None: function}
        self._fake: Callable | None = _fakes_to_come.pop(name, None)
        self._backward: Callable | None = None
        self._setup: Callable | None = None
        functools.update_wrapper(self, function)
        getattr(ops, self._namespace).define(self._name, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        special = find_for(args)
        if special is not None:
            return run_function(self, special, args, kwargs)
        if self._backward is not None:
            bound = inspect.signature(self._kernels[None]).bind(*args, **kwargs)
            bound.apply_defaults()
            return self._function().apply(*bound.args)
        return self._run(*args, **kwargs)

    @property
    def default(self) -> CustomOpDef:
        return self

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        device = next((a.device.type for a in args if isinstance(a, Tensor)), None)
        if device == "meta":
            if self._fake is None:
                raise NotImplementedError(
                    f"{self._qualname}: there is no fake implementation, which the meta device needs"
                )
            return self._fake(*args, **kwargs)
        kernel = self._kernels.get(device) or self._kernels[None]
        return kernel(*args, **kwargs)

    def _function(self) -> type:
        definition = self

        class Registered(Function):
            @staticmethod
            def forward(ctx: Any, *args: Any) -> Any:
                output = definition._run(*args)
                if definition._setup is not None:
                    definition._setup(ctx, args, output)
                return output

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                function: Any = definition._backward  # which is there where this is called
                return function(ctx, *grads)

        Registered.__name__ = self._name
        return Registered

    def register_fake(self, fn: Callable, /) -> Callable:
        """Use `fn` on the meta device."""
        self._fake = fn
        return fn

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Callable:
        """Use `fn` on devices of the given types."""

        def inner(kernel: Callable) -> Callable:
            for kind in [device_types] if isinstance(device_types, str) or device_types is None else device_types:
                self._kernels[kind] = kernel
            return kernel

        return inner if fn is None else inner(fn)

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Give the operator a derivative."""
        self._backward = backward
        self._setup = setup_context


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a Python function an operator `namespace::name`. ValueError for a name without a namespace."""
    if "::" not in name:
        raise ValueError(f"custom_op(name): expected name to be in the form 'namespace::name', got {name}")

    def inner(function: Callable) -> CustomOpDef:
        made = CustomOpDef(name, function)
        _definitions[name] = made
        return made

    return inner if fn is None else inner(fn)


def _is_whole(op: Any) -> bool:
    """Whether the schema has the operator, with its kernels, shapes and derivative: what its package registers for it is there already."""
    namespace = getattr(op, "namespace", None) or str(op).partition("::")[0]
    return str(op) not in _definitions and ops.serves(namespace)


def _definition(op: Any) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    found = _definitions.get(str(op))
    if found is None:
        raise ValueError(f"{op}: no such custom operator was defined")
    return found


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """Register the implementation for the meta device.

    An operator that is not defined may be named too: packages with operators in C++, which cannot be loaded here, do so when they are imported.
    """

    def inner(function: Callable) -> Callable:
        if _is_whole(op):
            return function
        if isinstance(op, str) and op not in _definitions:
            _fakes_to_come[op] = function
            return function
        return _definition(op).register_fake(function)

    return inner if func is None else inner(func)


impl_abstract = register_fake


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Register the implementation for device types."""
    return _definition(op).register_kernel(device_types, func)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """Register the derivative."""
    if not _is_whole(op):
        _definition(op).register_autograd(backward, setup_context=setup_context)


class Library:
    """The older way to define operators: `Library("ns", "DEF")`, `define`, `impl`."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns = ns
        self.kind = kind

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare an operator by its schema; returns its name."""
        name = schema.split("(", 1)[0].strip()

        def missing(*args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError(f"{self.ns}::{name}: no implementation was registered")

        missing.__signature__ = inspect.Signature([inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)])
        _definitions[f"{self.ns}::{name}"] = CustomOpDef(f"{self.ns}::{name}", missing)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register an implementation; dispatch keys: CPU, Meta, CompositeExplicitAutograd, CompositeImplicitAutograd, Autograd."""
        if _is_whole(f"{self.ns}::{op_name}"):
            return
        definition = _definition(f"{self.ns}::{op_name}")
        if dispatch_key == "Meta":
            definition.register_fake(fn)
        elif dispatch_key == "CPU":
            definition.register_kernel("cpu", fn)
        else:
            definition.register_kernel(None, fn)


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declare an operator `namespace::name`."""
    namespace, name = qualname.split("::")
    Library(namespace, "FRAGMENT").define(name + schema)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Any = None) -> Any:
    """Register an implementation for device types, or for all with 'default'. The older `impl(library, name, dispatch_key)` is a decorator."""

    given: object = func
    if given is not None and not isinstance(qualname, Library) and not callable(given):
        raise TypeError(f"Input function is required to be a callable but found type {type(func)}")

    def inner(function: Callable) -> Callable:
        if isinstance(qualname, Library):
            qualname.impl(types, function, func or "")
            return function
        kinds = [types] if isinstance(types, str) else types
        for kind in kinds:
            _definition(qualname).register_kernel(
                None if kind in ("default", "CompositeExplicitAutograd") else kind.lower(), function
            )
        return function

    return inner if func is None or isinstance(qualname, Library) else inner(func)


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """A kernel that stands for none: registered, it lets what comes behind it serve. It cannot be called."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")
