"""Record what a function or a module does with stand-ins for its inputs.

Note [Recording]
Operators on a proxy are recorded by its methods, torch functions by `__torch_function__`. Calls of modules and reads of
their parameters would not be seen, so `Module.__call__` and `Module.__getattr__` are replaced while a tracer runs.
Functions that know nothing of proxies, such as those of `math`, are replaced in the globals of the code that is traced.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import types
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import mindtorch_v2

from ._compatibility import compatibility as compatibility
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["Tracer", "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap"]

_tracing = 0
_wrapped: dict[
    tuple[int, str], dict[str, Any]
] = {}  # globals in which a name is to be wrapped, by their id and the name


def is_fx_tracing() -> bool:
    """Whether a tracer runs."""
    return _tracing > 0


def is_fx_symbolic_tracing() -> bool:
    """Whether a tracer runs."""
    return _tracing > 0


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Record calls of a function of the calling module as one step; call it at module scope, or as a decorator.

    Raises:
        RuntimeError: if neither a name nor a function is given.
        NotImplementedError: if it is called elsewhere.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


def _assert_equal(given: Any, expected: Any, name: str) -> None:
    """Raise unless an input has the value for which the function was specialised."""
    if given is not expected and given != expected:
        raise AssertionError(f"{name} has been specialized to have value {expected} but got another value")


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, recorded as a step when a proxy is among its arguments."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []

        def look(leaf: Any) -> None:
            if isinstance(leaf, Proxy):
                found.append(leaf)

        map_aggregate((args, kwargs), look)
        if found:
            return found[0].tracer.create_proxy("call_function", function, args, kwargs)
        return function(*args, **kwargs)

    wrapper.__name__ = getattr(function, "__name__", "wrapped")
    wrapping: Any = wrapper
    wrapping.__wrapped__ = function
    return wrapper


class _Patcher:
    """Values that have been replaced for a while, or while it is entered.

    Libraries whose tracers have a `trace` of their own call it by PyTorch's names, as they do the functions below Note [Tracers of others].
    """

    def __init__(self) -> None:
        self.done: list[Callable[[], None]] = []
        self.visited: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace an entry of a dict; a new one is taken out again. deduplicate: once, however often it is asked for."""
        if name in frame_dict:
            before = frame_dict[name]
            if deduplicate and getattr(before, "_fx_patched", False):
                return
            self.done.append(lambda: frame_dict.__setitem__(name, before))
        else:
            self.done.append(lambda: frame_dict.__delitem__(name))
        new_fn._fx_patched = deduplicate
        frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace an attribute of a class."""
        if deduplicate and getattr(getattr(cls, name), "_fx_patched", False):
            return
        if name in vars(cls):
            before = vars(cls)[name]
            self.done.append(lambda: setattr(cls, name, before))
        else:
            self.done.append(lambda: delattr(cls, name))
        new_fn._fx_patched = deduplicate
        setattr(cls, name, new_fn)

    def visit_once(self, thing: Any) -> bool:
        """Whether it is asked for the first time about an object."""
        seen = id(thing) in self.visited
        self.visited.add(id(thing))
        return not seen

    def revert_all_patches(self) -> None:
        """Put everything back, the last first."""
        while self.done:
            self.done.pop()()

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *error: object) -> None:
        self.revert_all_patches()


# Note [Tracers of others]
# A tracer of a library may have a `trace` that does what this module's does, by its private parts: the two methods of modules as they are without a tracer,
# and what replaces functions in globals. They have PyTorch's names and arguments.


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Have functions recorded that `wrap` named."""
    for (_, name), table in list(_wrapped.items()):
        original = table.get(name, vars(builtins).get(name))
        if original is not None:
            patcher.patch(table, name, _recording(original))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Have functions recorded that globals hold, of those whose ids are given."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _recording(value))


_orig_module_call = mindtorch_v2.nn.Module.__call__
_orig_module_getattr = mindtorch_v2.nn.Module.__getattr__


class Tracer(TracerBase):
    """Makes the graph of a function or a module; a subclass may override what is a leaf and how steps are recorded.

    Args:
        autowrap_modules: modules whose functions are recorded where the traced code has them among its globals.
        autowrap_functions: further functions of that kind.
        param_shapes_constant: let reads of a parameter's shape give its value instead of a step.
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root: Any = None
        self.tensor_attrs: dict[Any, str] = {}

    # ------------------------------------------------------------------------------------------------ arguments

    def create_arg(self, a: Any) -> Any:
        """An argument as a node can hold it: parameters, buffers and other tensors become reads of attributes."""
        if isinstance(a, mindtorch_v2.nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, mindtorch_v2.Tensor):
            for name, buffer in self.root.named_buffers():
                if a is buffer:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a, "_tensor_constant"), (), {})
        if isinstance(a, mindtorch_v2.nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _constant(self, value: Any, prefix: str) -> str:
        """The name of the attribute of the root that holds a tensor which is neither parameter nor buffer."""
        name = self.tensor_attrs.get(value)
        if name is None:
            number = 0
            while hasattr(self.root, f"{prefix}{number}"):
                number += 1
            name = self.tensor_attrs[value] = f"{prefix}{number}"
            setattr(self.root, name, value)
        return name

    def _collect_tensors(self, module: Any, prefix: str) -> None:
        for name, value in module.__dict__.items():
            if isinstance(value, mindtorch_v2.Tensor):
                self.tensor_attrs[value] = f"{prefix}{name}"
        for name, child in module.named_children():
            self._collect_tensors(child, f"{prefix}{name}.")

    # ------------------------------------------------------------------------------------------------ modules

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a call of a module is one step: so for the modules of `torch.nn`, containers excepted."""
        ours = type(m).__module__.startswith(("mindtorch_v2.nn", "torch.nn"))
        return ours and not isinstance(m, mindtorch_v2.nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """The dotted name of a submodule of the root.

        Raises:
            NameError: if it is none.
        """
        if self.submodule_paths is not None:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called in the place of a module: records a step for a leaf, and goes into any other."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called when a parameter, buffer or submodule is read: gives a proxy for a parameter (and, if wished, a buffer)."""

        def recorded(named: Iterator[tuple[str, Any]], shapes: bool) -> Any:
            for name, value in named:
                if attr_val is value:
                    if name not in parameter_proxy_cache:
                        factory = functools.partial(self._parameter_proxy, name, attr_val) if shapes else None
                        parameter_proxy_cache[name] = self.create_proxy(
                            "get_attr", name, (), {}, proxy_factory_fn=factory
                        )
                    return parameter_proxy_cache[name]
            return None

        found = None
        if isinstance(attr_val, mindtorch_v2.nn.Parameter):
            found = recorded(self.root.named_parameters(), self.param_shapes_constant)
        elif self.proxy_buffer_attributes and isinstance(attr_val, mindtorch_v2.Tensor):
            found = recorded(self.root.named_buffers(), False)
        return attr_val if found is None else found

    def _parameter_proxy(self, name: str, parameter: Any, node: Node) -> ParameterProxy:
        return ParameterProxy(self, node, name, parameter)

    # ------------------------------------------------------------------------------------------------ tracing

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """A function, and proxies (or given values) for its arguments, in an order in which it can be called with them."""
        analysed = inspect.unwrap(root_fn)
        signature = inspect.signature(analysed)
        parameters = list(signature.parameters.values())
        arguments: list[Any] = []
        keywords: dict[str, Any] = {}
        if is_module:
            arguments.append(self.root)
            parameters = parameters[1:]
        variable: list[Any] = []
        specialised = 0
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                variable.append(self._placeholder(f"*{parameter.name}", ()))
                continue
            if parameter.kind is parameter.VAR_KEYWORD:
                variable.append(self._placeholder(f"**{parameter.name}", ()))
                continue
            default = () if parameter.default is parameter.empty else (parameter.default,)
            if concrete_args is not None and parameter.name in concrete_args:
                specialised += 1
                value: Any = concrete_args[parameter.name]
                given = self.create_proxy("placeholder", f"{parameter.name}_{specialised}", default, {})
                if value is None or isinstance(value, bool | int | float | str):
                    self.create_proxy("call_function", _assert_equal, (given, value, parameter.name), {})
            else:
                value = self._placeholder(parameter.name, default, parameter.annotation)
            if parameter.kind is parameter.KEYWORD_ONLY:
                keywords[parameter.name] = value
            else:
                arguments.append(value)
        if not keywords and not variable:
            return root_fn, arguments
        code = getattr(root_fn, "__code__", None)
        if analysed is root_fn and code is not None:
            # As positional parameters, `*args` and `**kwargs` are proxies themselves.
            arguments = [*arguments, *keywords.values(), *variable]
            flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            plain = code.replace(co_argcount=len(arguments), co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
            return FunctionType(plain, root_fn.__globals__, root_fn.__name__, None, root_fn.__closure__), arguments
        return lambda *given: root_fn(*given, **keywords), arguments

    def _placeholder(self, name: str, default: tuple[Any, ...], annotation: Any = None) -> Any:
        kind = None if annotation is inspect.Parameter.empty else annotation
        return self.create_proxy("placeholder", name, default, {}, type_expr=kind)

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's `forward`, or of a function.

        Args:
            root: the module or function.
            concrete_args: values for arguments that are not inputs; the graph checks them.
        """
        global _tracing
        is_module = isinstance(root, mindtorch_v2.nn.Module)
        self.root = root if is_module else mindtorch_v2.nn.Module()
        function = type(root).forward if is_module else root
        if is_module:
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        self._collect_tensors(self.root, "")
        annotations = getattr(inspect.unwrap(function), "__annotations__", {})
        patcher = _Patcher()
        _tracing += 1
        try:
            function, arguments = self.create_args_for_root(function, is_module, concrete_args)
            self._patch(patcher, function)
            result = function(*arguments)
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=annotations.get("return"))
        finally:
            _tracing -= 1
            patcher.revert_all_patches()
            self.submodule_paths = None
        return self.graph

    def _patch(self, patcher: _Patcher, function: Callable[..., Any]) -> None:
        """Replace what would not be recorded otherwise: Note [Recording]."""
        module_class = mindtorch_v2.nn.Module
        call, read = module_class.__call__, module_class.__getattr__
        proxies: dict[str, Any] = {}

        def getattr_of_module(module: Any, attr: str) -> Any:
            return self.getattr(attr, read(module, attr), proxies)

        def call_of_module(module: Any, *args: Any, **kwargs: Any) -> Any:
            table = getattr(inspect.unwrap(type(module).forward), "__globals__", {})
            _autowrap_check(patcher, table, self._autowrap_function_ids)
            return self.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        _patch_wrapped_functions(patcher)
        patcher.patch_method(module_class, "__getattr__", getattr_of_module, deduplicate=False)
        patcher.patch_method(module_class, "__call__", call_of_module, deduplicate=False)
        tables = [getattr(inspect.unwrap(function), "__globals__", {}), *map(vars, self._autowrap_search)]
        for table in tables:
            _autowrap_check(patcher, table, self._autowrap_function_ids)


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The module of the graph of a module or function.

    Args:
        root: the module or function.
        concrete_args: values for arguments that are not inputs.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, mindtorch_v2.nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def __getattr__(name: str) -> Any:
    if (
        name == "ScriptObject"
    ):  # by which tracers of others ask for tensors that TorchScript holds: Note [Tracers of others]
        from .._script.objects import Instance

        return Instance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
