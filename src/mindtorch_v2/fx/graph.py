"""A list of nodes that says how outputs follow from inputs."""

from __future__ import annotations

import builtins
import contextlib
import keyword
import operator
import re
from collections.abc import Callable, Iterator, Reversible
from typing import Any

import mindtorch_v2

from .node import Node, map_arg, qualified_name

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _Namespace:
    """Gives each node a name of its own."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.counts: dict[str, int] = {}

    def create_name(self, candidate: str) -> str:
        """A free name like `candidate`."""
        candidate = re.sub(r"\W", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, number = candidate, None
        found = re.fullmatch(r"(.*)_(\d+)", candidate)
        if found is not None:
            base, number = found[1], int(found[2])
        name = candidate
        count = number if number is not None else self.counts.get(base, 0)
        while name in self.used or keyword.iskeyword(name) or name in vars(builtins) or name in ("self", "torch"):
            count += 1
            name = f"{base}_{count}"
        self.used.add(name)
        self.counts[base] = max(self.counts.get(base, 0), count)
        return name


class PythonCode:
    """The source of a graph's function, and the objects that the source refers to by name."""

    def __init__(self, src: str, globals: dict[str, Any]) -> None:
        self.src = src
        self.globals = globals


class _NodeList(Reversible[Node]):
    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self.graph = graph
        self.backwards = backwards

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = root._prev if self.backwards else root._next
        while node is not root:
            following = node._prev if self.backwards else node._next
            if not node._erased:
                yield node
            # a node that was inserted after this one while it was visited is visited too
            current = node._prev if self.backwards else node._next
            node = current if not node._erased else following

    def __reversed__(self) -> Iterator[Node]:
        return iter(_NodeList(self.graph, not self.backwards))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Graph:
    """Nodes in an order in which they can run.

    Args:
        owning_module: the module that runs the graph.
        tracer_cls: the class that made the graph, and will make it again after pickling.
        tracer_extras: further arguments of its `trace`.
    """

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None, tracer_extras: Any = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._names = _Namespace()
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _NodeList:
        """The nodes in order; they may be changed while one goes over them."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind (and a target)."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        """The node of the output."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    # ------------------------------------------------------------------------------------------------ making nodes

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the place of insertion."""
        candidate = name if name is not None else _name_of(op, target)
        node = Node(self, self._names.create_name(candidate), op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node that reads a parameter, buffer or attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the output."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of another graph's node, its arguments translated by `arg_transform`."""
        made = self.create_node(
            node.op,
            node.target,
            map_arg(node.args, arg_transform),
            map_arg(node.kwargs, arg_transform),
            node.name,
            node.type,
        )
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of `g` but its output; returns what its output would be."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        val_map: dict[Node, Node] = {}
        result = made.graph_copy(self, val_map, return_output_node=True)
        if result is not None:
            output = made.output(result[0], result[1].type)
            output.meta = dict(result[1].meta)
            val_map[result[1]] = output
        for node, copied in val_map.items():
            copied.name = node.name  # also where that is no name that a new node would get
        made._names.used.update(self._names.used)
        made._names.counts.update(self._names.counts)
        made._codegen = self._codegen
        return made

    # ------------------------------------------------------------------------------------------------ changing

    def _insertion(self, insert: Callable[[Node], None]) -> Any:
        """A context at whose end nodes are added where they were before it; whether it is entered or not, `insert` adds them from now on."""
        before, self._insert = self._insert, insert
        left = contextlib.ExitStack()
        left.callback(setattr, self, "_insert", before)
        return left

    def inserting_before(self, n: Node | None = None) -> Any:
        """A context in which nodes are added before `n` (or at the beginning)."""
        if n is None:
            return self._insertion(self._root.append)
        return self._insertion(n.prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """A context in which nodes are added right after `n`, the last one first (or at the end, in their order)."""
        return self._insertion(self._root.prepend if n is None else n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out.

        Raises:
            RuntimeError: if it still has users.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._set_arguments((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out nodes that nobody uses and that do nothing else; returns whether there were any."""
        changed = False
        for node in list(reversed(self.nodes)):
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Check that every argument is made before it is used, names differ, and targets exist.

        Raises:
            RuntimeError: if not.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for given in node.all_input_nodes:
                if given not in seen:
                    raise RuntimeError(
                        f"Argument '{given}' of Node '{node}' was used before it has been defined! "
                        "Please check that Nodes in the graph are topologically ordered"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            seen.add(node)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                found = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(found, part):
                        raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part}")
                    found = getattr(found, part)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the source."""
        self._codegen = codegen

    def python_code(self, root_module: str = "self", **options: Any) -> PythonCode:
        """The source of the graph's function."""
        return self._codegen.generate(self, root_module)

    def print_tabular(self) -> None:
        """Print one line a node."""
        print(self)

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(node.format_node() for node in self.nodes)])


def _name_of(op: str, target: Any) -> str:
    if callable(target):
        return re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", getattr(target, "__name__", "call")).lower().strip("_") or "call"
    return str(target).lstrip("*").replace(".", "_")


class _References:
    """The names by which source refers to objects that are no literals."""

    def __init__(self, graph: Graph) -> None:
        self.reserved = graph._names.used
        self.table: dict[str, Any] = {}
        self.by_id: dict[int, str] = {}

    def __call__(self, value: Any, wish: str) -> str:
        """A name for `value`, if possible that one."""
        if wish.startswith("torch.") and _reach(wish) is value:
            self.table["torch"] = mindtorch_v2
            return wish
        if id(value) not in self.by_id:
            name = re.sub(r"\W", "_", wish).strip("_") or "constant"
            while name in self.table or name in self.reserved or keyword.iskeyword(name):
                name += "_"
            self.by_id[id(value)] = name
            self.table[name] = value
        return self.by_id[id(value)]


def _reach(path: str) -> Any:
    """What a dotted name that begins with `torch` leads to; None if nowhere."""
    found: Any = mindtorch_v2
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


_INFIX = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.matmul: "@",
    operator.pow: "**",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
}
_PREFIX = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


class CodeGen:
    """Writes the source of a graph's function."""

    def generate(self, graph: Graph, root_module: str) -> PythonCode:
        """One line a node; values that are no literals are objects of the returned table, under names of their own."""
        refer = _References(graph)
        parameters, lines = ["self"], []
        for node in graph.nodes:
            if node.op == "placeholder":
                default = f" = {_literal(node.args[0], refer)}" if node.args else ""
                parameters.append(f"{node.target}{default}")
                raw = node.target.lstrip("*")
                if raw != node.name:
                    lines.append(f"{node.name} = {raw}")
            elif node.op == "output":
                lines.append(f"return {_literal(node.args[0], refer)}")
            else:
                lines.append(f"{node.name} = {self._expression(node, root_module, refer)}")
        body = "\n    ".join(lines or ["pass"])
        return PythonCode(f"def forward({', '.join(parameters)}):\n    {body}\n", refer.table)

    def _expression(self, node: Node, root_module: str, refer: Callable[[Any, str], str]) -> str:
        positional = [_literal(arg, refer) for arg in node.args]
        named = [f"{key} = {_literal(arg, refer)}" for key, arg in node.kwargs.items()]
        if node.op == "get_attr":
            return _attribute(root_module, node.target)
        if node.op == "call_module":
            return f"{_attribute(root_module, node.target)}({', '.join(positional + named)})"
        if node.op == "call_method":
            return f"{positional[0]}.{node.target}({', '.join(positional[1:] + named)})"
        function, first = node.target, node.args[0] if node.args else None
        number = isinstance(first, int | float) and first >= 0 and function is not operator.pow
        simple = not named and (isinstance(first, Node) or number)
        if simple and len(positional) == 2 and function in _INFIX:
            return f"{positional[0]} {_INFIX[function]} {positional[1]}"
        if simple and len(positional) == 1 and function in _PREFIX:
            return f"{_PREFIX[function]}{positional[0]}"
        if simple and len(positional) == 2 and function is operator.getitem:
            return f"{positional[0]}[{positional[1]}]"
        if simple and len(positional) == 2 and function is getattr and str(node.args[1]).isidentifier():
            return f"{positional[0]}.{node.args[1]}"
        return f"{refer(function, qualified_name(function))}({', '.join(positional + named)})"


def _attribute(root: str, target: str) -> str:
    for part in target.split("."):
        root = f"{root}.{part}" if part.isidentifier() else f'getattr({root}, "{part}")'
    return root


def _literal(value: Any, refer: Callable[[Any, str], str]) -> str:
    """A value as source: nodes by name, containers written out, other objects by reference."""
    if isinstance(value, Node):
        return value.name
    if value is None or value is ... or isinstance(value, bool | str | int) and type(value) in (bool, str, int):
        return repr(value)
    if type(value) is float and value == value and abs(value) != float("inf"):
        return repr(value)
    if type(value) is tuple:
        return f"({', '.join(_literal(item, refer) for item in value)}{',' if len(value) == 1 else ''})"
    if type(value) is list:
        return f"[{', '.join(_literal(item, refer) for item in value)}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{_literal(k, refer)}: {_literal(v, refer)}" for k, v in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({', '.join(_literal(part, refer) for part in (value.start, value.stop, value.step))})"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{refer(type(value), type(value).__name__)}({', '.join(_literal(item, refer) for item in value)})"
    if isinstance(value, tuple):  # torch.Size
        return f"{refer(type(value), type(value).__name__)}([{', '.join(_literal(item, refer) for item in value)}])"
    return refer(value, repr(value) if len(repr(value)) < 40 else type(value).__name__)
