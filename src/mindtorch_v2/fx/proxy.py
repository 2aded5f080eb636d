"""Objects that stand for values while a function is traced: what is done to them is recorded."""

from __future__ import annotations

import dis
import enum
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import mindtorch_v2

from .graph import Graph
from .node import Node, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

_BASE_TYPES = (str, int, float, bool, complex, type(None), type(...), enum.Enum, range)


class TraceError(ValueError):
    """Something that cannot be recorded was asked of a proxy."""


def _tensor_types() -> tuple[type, ...]:
    return (mindtorch_v2.dtype, mindtorch_v2.device, mindtorch_v2.memory_format, mindtorch_v2.layout)


class TracerBase:
    """What proxies ask of a tracer."""

    graph: Graph
    record_stack_traces = False
    trace_asserts = False
    proxy_buffer_attributes = False

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """A proxy for a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:
        """Record a step, and give a proxy for its result."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """An argument as a node can hold it.

        Raises:
            NotImplementedError: for a kind of object that nodes cannot hold.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*(self.create_arg(item) for item in a))
        if isinstance(a, tuple | list):
            return (
                type(a)([self.create_arg(item) for item in a])
                if type(a) is not tuple
                else tuple(map(self.create_arg, a))
            )
        if isinstance(a, dict):
            return {self.create_arg(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, Node) or isinstance(a, _BASE_TYPES) or isinstance(a, _tensor_types()) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called for the truth of a proxy.

        Raises:
            TraceError: the value is not known while a function is traced.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called to go over a proxy.

        Raises:
            TraceError: the number of its items is not known.
        """
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for the keys of a proxy, as `**` does."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for the value of a node: operators, methods and torch functions on it become nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = self.__class__.__new__(self.__class__)
        made.__dict__ = dict(self.__dict__)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        if caller is not None:
            for instruction in dis.get_instructions(caller.f_code):
                if instruction.offset == caller.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                    mine: Any = self
                    return (operator.getitem(mine, i) for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", abs, (self,), {})

    def keys(self) -> Any:
        """The keys, as `**` wants them."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, key: Any) -> bool:
        raise TraceError("'in' cannot be recorded: its result is a truth value")

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[int, TracerBase] = {}

        def find(leaf: Any) -> None:
            if isinstance(leaf, Proxy):
                tracers[id(leaf.tracer)] = leaf.tracer

        map_aggregate(args, find)
        map_aggregate(kwargs, find)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers.values())} while trying to trace operations"
            )
        tracer = next(iter(tracers.values()))
        name = getattr(orig_method, "__name__", "")
        if getattr(mindtorch_v2.Tensor, name, None) is orig_method:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class Attribute(Proxy):
    """An attribute of a proxy; it becomes a node when it is used otherwise than called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node that reads the attribute."""
        if self._node is None:
            made: Node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
            self._node = made
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    def size(self, dim: int | None = None) -> Any:
        """The shape of the parameter, or one of its sizes."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """The number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The number of elements."""
        return self.param.nelement()


_MAGIC = (
    "eq ne lt gt le ge pos neg invert add sub mul floordiv truediv mod lshift rshift and_ or_ xor getitem matmul pow"
).split()
_REFLECTABLE = "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul".split()


def _forward(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Proxy, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, *args), kwargs)

    return method


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


for _name in _MAGIC:
    setattr(Proxy, f"__{_name.strip('_')}__", _forward(getattr(operator, _name)))
for _name in _REFLECTABLE:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(getattr(operator, _name)))
# Defining __eq__ would take it away.
Proxy.__hash__ = object.__hash__
