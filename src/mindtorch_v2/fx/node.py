"""One step of a graph: an input, a call, an attribute or the output."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..ops import OpOverload

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes = Any  # numbers, strings, dtypes, devices, tensors: what may stand in a graph as it is
Argument = Any  # the same, nodes, and containers of both
Target = Callable[..., Any] | str

OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_side_effect_functions: set[Callable[..., Any]] = set()


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose calls must not be removed as dead code; usable as a decorator."""
    _side_effect_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply `fn` to every leaf of nested tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else type(a)(items) if type(a) is not tuple else tuple(items)
    if isinstance(a, list):
        return [map_aggregate(item, fn) for item in a]
    if isinstance(a, dict):
        return {key: map_aggregate(value, fn) for key, value in a.items()}
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Apply `fn` to every node in `a`."""
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


class Node:
    """A step of a graph.

    Attributes:
        op: `placeholder`, `get_attr`, `call_function`, `call_method`, `call_module` or `output`.
        target: what is called or read: a function, the name of a method, a module or an attribute, or the input's name.
        args, kwargs: the arguments, with nodes in the place of values.
        users: the nodes that use this one, as the keys of a dict.
        meta: whatever passes over the graph want to keep with it.

    Raises:
        AssertionError: for an unknown `op`.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"unknown op {op!r} of a node; there are {', '.join(OPS)}")
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._set_arguments(args, kwargs)

    # ------------------------------------------------------------------------------------------------ arguments

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, value: tuple[Any, ...]) -> None:
        self._set_arguments(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Any]) -> None:
        self._set_arguments(self._args, value)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._inputs)

    def _set_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self._inputs:
            node.users.pop(self, None)
        self._inputs = {}
        self._args = tuple(args)
        self._kwargs = dict(kwargs)

        def use(node: Node) -> Node:
            self._inputs.setdefault(node)
            node.users.setdefault(self)
            return node

        map_arg((self._args, self._kwargs), use)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument."""
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node in the place of one of the arguments."""
        replace = {old_input: new_input}
        self._set_arguments(
            map_arg(self._args, lambda n: replace.get(n, n)), map_arg(self._kwargs, lambda n: replace.get(n, n))
        )

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node (those that `delete_user_cb` accepts) use another; returns the former users.

        Raises:
            AssertionError: if `propagate_meta` is asked for and the other node has metadata already.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but it has meta"
                )
            replace_with.meta.update(self.meta)
        users = [user for user in self.users if delete_user_cb(user)]
        for user in users:
            user.replace_input_with(self, replace_with)
        return users

    # ------------------------------------------------------------------------------------------------ place

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x` before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move `x` after this node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # ------------------------------------------------------------------------------------------------ description

    def is_impure(self) -> bool:
        """Whether the node must stay even when nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effect_functions
        if self.op == "call_module":
            owner = self.graph.owning_module
            return owner is not None and getattr(owner.get_submodule(self.target), "is_impure", False)
        return False

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None
    ) -> str:
        """The node as a line of a listing."""
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : [num_users={len(self.users)}] = get_attr[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        target = qualified_name(self.target) if callable(self.target) else self.target
        arguments = f"args = {_show(self.args)}, kwargs = {_show(self.kwargs)}"
        return f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target}]({arguments})"

    def __repr__(self) -> str:
        return self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        raise NotImplementedError("a node belongs to its graph; copy the graph")


def _show(value: Any) -> str:
    """A value for a listing: nodes with a percent sign, text and the keys of dicts without quotation marks."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(_show, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_show(item)}" for key, item in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({_show(value.start)}, {_show(value.stop)}, {_show(value.step)})"
    return str(value)


def qualified_name(function: Callable[..., Any]) -> str:
    """The name by which a function can be reached: `torch.add`, `operator.getitem`, `math.sqrt`."""
    if isinstance(function, OpOverload):
        return f"torch.ops.{function}"
    name = getattr(function, "__name__", type(function).__name__)
    module = getattr(function, "__module__", None)
    if isinstance(function, types.BuiltinFunctionType) and module in ("builtins", None):
        return f"builtins.{name}"
    if module == "_operator":
        return f"operator.{name}"
    for place in _public_places():
        if getattr(place, name, None) is function:
            return f"{place.__name__.replace('mindtorch_v2', 'torch')}.{name}"
    return f"{module}.{getattr(function, '__qualname__', name)}"


def _public_places() -> Iterable[Any]:
    import mindtorch_v2

    return (mindtorch_v2, mindtorch_v2.nn.functional, mindtorch_v2.special, mindtorch_v2.linalg, mindtorch_v2.fft)
