"""Trees of containers: flatten them into a list of leaves and a specification, and put them together again.

A node is an object whose exact type is registered (or a named tuple); everything else is a leaf, None included. Dicts
keep their insertion order.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from ._pytree_keys import GetAttrKey, KeyEntry, KeyPath, MappingKey, SequenceKey, key_get, keystr
from ._pytree_registry import (  # noqa: F401  (programs take the private names from here)
    BUILTIN_TYPES,
    CONSTANT_NODES,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    Context,
    DumpableContext,
    FlattenFunc,
    FlattenWithKeysFunc,
    FromDumpableContextFn,
    IsLeaf,
    NodeDef,
    PyTree,
    ToDumpableContextFn,
    UnflattenFunc,
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _deregister_pytree_node,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _get_node_type,
    _is_leaf,
    _is_namedtuple_instance,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _ordereddict_flatten,
    _ordereddict_flatten_with_keys,
    _ordereddict_unflatten,
    _register_namedtuple,
    _register_pytree_node,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_constant,
    register_dataclass,
    register_pytree_node,
    tree_is_leaf,
)
from ._pytree_spec import _LEAF_SPEC, LeafSpec, PyTreeSpec, TreeSpec, treespec_dict, treespec_leaf, treespec_tuple  # noqa: F401
from ._pytree_text import treespec_dumps, treespec_loads, treespec_pprint

__all__ = [
    "Context",
    "FlattenFunc",
    "FlattenWithKeysFunc",
    "FromDumpableContextFn",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFunc",
    "key_get",
    "keystr",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf | None) -> TreeSpec:
    node_type = _get_node_type(tree)
    node = SUPPORTED_NODES.get(node_type)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = node.flatten_fn(tree)
    return TreeSpec(node_type, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree` from left to right, and its specification."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree with these leaves.

    Raises:
        TypeError: if `treespec` is no specification.
        ValueError: if the number of leaves is wrong.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf | None = None) -> Iterable[Any]:
    """The leaves, one after the other."""
    node = SUPPORTED_NODES.get(_get_node_type(tree))
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves as a list."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of arguments, those by name last."""
    return [leaf for tree in (*args, *kwargs.values()) for leaf in tree_iter(tree)]


def tree_structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> TreeSpec:
    """The specification of `tree`."""
    return _flatten(tree, [], is_leaf)


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """A tree of the results of `func` at every leaf of `tree` and the parts of `rests` at the same places.

    Raises:
        ValueError: if one of `rests` is built differently.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(list(map(func, *columns)))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """Call `func` at every leaf for its effect, and return `tree`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(rest) for rest in rests)]
    for values in zip(*columns, strict=True):
        func(*values)
    return tree


def _predicate(type_or_types_or_pred: Any) -> Callable[[Any], Any]:
    if isinstance(type_or_types_or_pred, type | tuple | types.UnionType):
        return lambda x: isinstance(x, type_or_types_or_pred)
    if callable(type_or_types_or_pred):
        return type_or_types_or_pred
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is applied to values of a type (or for which a predicate holds), others stay."""
    chosen = _predicate(type_or_types_or_pred)
    return lambda func: lambda x: func(x) if chosen(x) else x


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """`tree_map` over the leaves of a type (or for which a predicate holds); others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    """`tree_map_` over the leaves of a type (or for which a predicate holds)."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None
) -> bool:
    """Whether `pred` holds for every leaf of a type."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None
) -> bool:
    """Whether `pred` holds for some leaf of a type."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf | None = None) -> list[Any] | None:
    """The leaves of `tree`, each repeated over the part of `treespec` that it stands for; None if they do not fit."""
    if treespec.is_leaf():
        return [tree] if tree_is_leaf(tree, is_leaf) else None
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    node_type = _get_node_type(tree)
    if node_type is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        result += part
    return result


# --------------------------------------------------------------------------------------------------------------- paths


def _generate_key_paths(
    key_path: KeyPath, tree: PyTree, is_leaf: IsLeaf | None = None
) -> Iterable[tuple[KeyPath, Any]]:
    node_type = _get_node_type(tree)
    node = SUPPORTED_NODES.get(node_type)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        yield key_path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node_type}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _generate_key_paths((*key_path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[tuple[KeyPath, Any]]:
    """The leaves, each with the keys that lead to it.

    Raises:
        ValueError: if a node's type has no keys.
    """
    return list(_generate_key_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with the keys that lead to them, and the specification.

    Raises:
        ValueError: if a node's type has no keys.
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """`tree_map` whose function gets the keys that lead to the leaf first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[path for path, _ in pairs], [leaf for _, leaf in pairs], *(spec.flatten_up_to(rest) for rest in rests)]
    return spec.unflatten(list(map(func, *columns)))
