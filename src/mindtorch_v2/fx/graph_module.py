"""A module whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from typing import Any

import mindtorch_v2

from .graph import Graph
from .node import Node, map_aggregate

__all__ = ["GraphModule"]

_counter = itertools.count()
_USER_PRESERVED_ATTRIBUTES_KEY = (
    "_user_preserved_attributes"  # where `meta` keeps attributes that passes shall not lose
)


class _Reference:
    """The number of a node, in a graph that is pickled."""

    def __init__(self, number: int) -> None:
        self.number = number


def _flatten_graph(graph: Graph) -> list[tuple[Any, ...]]:
    numbers = {node: i for i, node in enumerate(graph.nodes)}

    def refer(value: Any) -> Any:
        return map_aggregate(value, lambda leaf: _Reference(numbers[leaf]) if isinstance(leaf, Node) else leaf)

    return [
        (node.op, node.name, node.target, refer(node.args), refer(node.kwargs), _picklable(node.type))
        for node in graph.nodes
    ]


def _picklable(annotation: Any) -> Any:
    return annotation if annotation is None or isinstance(annotation, str | type) else None


def _build_graph(steps: list[tuple[Any, ...]], tracer_cls: type | None) -> Graph:
    graph = Graph(tracer_cls=tracer_cls)
    nodes: list[Node] = []

    def find(value: Any) -> Any:
        return map_aggregate(value, lambda leaf: nodes[leaf.number] if isinstance(leaf, _Reference) else leaf)

    for op, name, target, args, kwargs, kind in steps:
        nodes.append(graph.create_node(op, target, find(args), find(kwargs), name, kind))
    return graph


def _unpickle(
    cls: Any, class_name: str, body: dict[str, Any], steps: list[tuple[Any, ...]], tracer_cls: type | None
) -> GraphModule:
    module = cls.__new__(cls)
    module.__dict__.update(body)
    type(module).__name__ = class_name
    module.graph = _build_graph(steps, tracer_cls)
    return module


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Give `to_module` what a dotted name in `from_module` leads to, with modules on the way."""
    *parents, last = target.split(".")
    for part in parents:
        from_module = getattr(from_module, part)
        if not hasattr(to_module, part):
            to_module.add_module(part, mindtorch_v2.nn.Module())
        to_module = getattr(to_module, part)
    _assign(to_module, last, getattr(from_module, last))


def _assign(destination: Any, name: str, value: Any) -> None:
    if isinstance(value, mindtorch_v2.Tensor) and not isinstance(value, mindtorch_v2.nn.Parameter):
        destination.register_buffer(name, value)
    else:
        setattr(destination, name, value)


class _CodeOnlyModule(mindtorch_v2.nn.Module):
    """A module of the attributes of another one (a dict of them), without its methods."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(mindtorch_v2.nn.Module):
    """A module that runs a graph.

    Args:
        root: the module (or a dict by dotted name) from which submodules, parameters and buffers are taken that the graph
            refers to.
        graph: the graph.
        class_name: the name that the class shows.

    Raises:
        RuntimeError: if the graph refers to something that a `root` dict does not have.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # `forward` belongs to the class, so each instance has a class of its own.
        base = cls if "_graph_module_instance" not in vars(cls) else cls.__bases__[0]
        made = type(base.__name__, (base,), {"_graph_module_instance": True, "__module__": base.__module__})
        return super().__new__(made)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, mindtorch_v2.nn.Module):
            self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        else:
            missing = [target for target in targets if target not in root]
            if missing:
                raise RuntimeError(f"the graph references targets {missing} that are not provided in `root`")
            for target in sorted(targets, key=lambda name: name.count(".")):
                owner: Any = self
                *parents, last = target.split(".")
                for part in parents:
                    if not hasattr(owner, part):
                        owner.add_module(part, mindtorch_v2.nn.Module())
                    owner = getattr(owner, part)
                _assign(owner, last, root[target])
        self.meta: dict[str, Any] = dict(getattr(root, "meta", None) or {})
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; a graph that is set is copied if it belongs to another module, and `forward` is written again."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        if g.owning_module is not None and g.owning_module is not self:
            g = copy.deepcopy(g)
        g.owning_module = self
        self.__dict__["_graph"] = g
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self._code

    def recompile(self) -> Any:
        """Write `forward` again, after the graph has been changed."""
        written = self._graph.python_code(root_module="self")
        name = f"<graph_module_{next(_counter)}>"
        lines = written.src.splitlines(keepends=True)
        linecache.cache[name] = (len(written.src), None, lines, name)
        scope = dict(written.globals)
        exec(compile(written.src, name, "exec"), scope)
        type(self).forward = scope["forward"]
        self.__dict__["_code"] = written.src
        return written

    def add_submodule(self, target: str, m: Any) -> bool:
        """Put a submodule at a dotted name; False if something else is on the way."""
        *parents, last = target.split(".")
        owner: Any = self
        for part in parents:
            if not hasattr(owner, part):
                owner.add_module(part, mindtorch_v2.nn.Module())
            owner = getattr(owner, part)
            if not isinstance(owner, mindtorch_v2.nn.Module):
                return False
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take out a submodule; False if there is none."""
        *parents, last = target.split(".")
        owner: Any = self
        for part in parents:
            owner = getattr(owner, part, None)
            if not isinstance(owner, mindtorch_v2.nn.Module):
                return False
        if not isinstance(getattr(owner, last, None), mindtorch_v2.nn.Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the submodules that the graph does not use."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    used.update(f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The source of `forward` under the name of the class; also printed."""
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "".join(
            f"    {line}\n" for line in self._code.splitlines()
        )
        if print_output:
            print(text)
        return text

    def _base_class(self) -> Any:
        return type(self).__bases__[0]

    def _body(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_graph", "_code")}

    def __reduce__(self) -> tuple[Any, ...]:
        tracer = self._graph._tracer_cls
        if tracer is not None and "<locals>" in tracer.__qualname__:
            tracer = None
        return _unpickle, (self._base_class(), type(self).__name__, self._body(), _flatten_graph(self._graph), tracer)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        base = self._base_class()
        made = base.__new__(base)
        memo[id(self)] = made
        made.__dict__.update(copy.deepcopy(self._body(), memo))
        type(made).__name__ = type(self).__name__
        made.graph = copy.deepcopy(self._graph)
        return made

    def __copy__(self) -> Any:
        base = self._base_class()
        made = base.__new__(base)
        made.__dict__.update(self._body())
        type(made).__name__ = type(self).__name__
        made.graph = copy.deepcopy(self._graph)
        return made

    def __str__(self) -> str:
        return f"{super().__repr__()}\n\n{self._code}"
