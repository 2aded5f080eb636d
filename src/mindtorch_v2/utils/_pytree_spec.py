"""What a tree is without its leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any

from ._pytree_registry import STANDARD_DICT_TYPES, SUPPORTED_NODES, Context, PyTree, _get_node_type


class TreeSpec:
    """What a tree is without its leaves: the type of a node, its context and the specifications of its children."""

    __slots__ = ("_children", "__dict__", "context", "type")

    def __init__(self, type: Any, context: Context, children_specs: Iterable[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self._children = list(children_specs)

    @property
    def children_specs(self) -> list[TreeSpec]:
        """The specifications of the children."""
        return self._children

    @property
    def num_children(self) -> int:
        """How many children the node has."""
        return len(self._children)

    @cached_property
    def num_leaves(self) -> int:
        """How many leaves there are below; a leaf has one."""
        return 1 if self.is_leaf() else sum(child.num_leaves for child in self._children)

    @cached_property
    def num_nodes(self) -> int:
        """How many nodes and leaves there are, this one included."""
        return 1 + sum(child.num_nodes for child in self._children)

    def is_leaf(self) -> bool:
        """Whether this stands for a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The specifications of the children, in a list of its own."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The specification of one child."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves.

        Raises:
            ValueError: if there are more or fewer leaves than the specification has.
        """
        values = leaves if isinstance(leaves, list | tuple) else list(leaves)
        if len(values) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(values))

    def _build(self, leaves: Any) -> PyTree:
        if self.type is None:
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of `tree` at the places of this specification's leaves.

        Raises:
            ValueError: if `tree` is built differently.
        """
        parts: list[PyTree] = []
        self._collect(tree, parts)
        return parts

    def _collect(self, tree: PyTree, parts: list[PyTree]) -> None:
        if self.type is None:
            parts.append(tree)
            return
        node_type = _get_node_type(tree)
        both_dicts = self.type in STANDARD_DICT_TYPES and node_type in STANDARD_DICT_TYPES
        if node_type is not self.type and not both_dicts:
            found = type(tree)
            raise ValueError(f"Node type mismatch; expected {self.type}, but got {found}.")
        if both_dicts:
            keys = self.context[1] if self.type is defaultdict else self.context
            if len(tree) != len(keys) or set(tree) != set(keys):
                missing, extra = set(keys) - set(tree), set(tree) - set(keys)
                raise ValueError(
                    "Node keys mismatch"
                    + (f"; missing key(s): {missing}" if missing else "")
                    + (f"; extra key(s): {extra}" if extra else "")
                    + "."
                )
            children = [tree[key] for key in keys]
        else:
            children, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if node_type is not deque and context != self.context:  # the length limit of a deque does not matter
                raise ValueError(
                    f"Node context mismatch for custom node type {self.type}; expected {self.context!r}, "
                    f"but got {context!r}."
                )
        for spec, child in zip(self._children, children, strict=True):
            spec._collect(child, parts)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self.context == other.context and self._children == other._children

    def __hash__(self) -> int:
        context: Any = self.context
        if self.type in (dict, OrderedDict):
            context = tuple(context)
        elif self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        if not isinstance(context, Hashable):
            context = None
        elif isinstance(context, tuple | list):
            try:
                hash(context)
            except TypeError:
                context = None
        return hash((self.type, context, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        inner = indent + 2
        children = f",\n{' ' * inner}".join(child.__repr__(inner) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (LeafSpec, ()) if self.type is None else (TreeSpec, (self.type, self.context, self._children))


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The specification of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, ())

    def __hash__(self) -> int:
        return hash((None, None, ()))


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> TreeSpec:
    """The specification of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = ()) -> TreeSpec:
    """The specification of a tuple with children of these specifications."""
    return TreeSpec(tuple, None, iterable)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The specification of a dict with children of these specifications."""
    children = dict(mapping, **kwargs)
    return TreeSpec(dict, list(children), children.values())
