"""The types whose instances are nodes of trees: registration, and the containers of Python."""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from ._pytree_keys import GetAttrKey, MappingKey, SequenceKey

Context = Any
PyTree = Any
FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFunc = Callable[[PyTree], tuple[list[tuple[Any, Any]], Any]]  # each key is a KeyEntry
DumpableContext = Any
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
IsLeaf = Callable[[PyTree], bool]
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"


class NodeDef(NamedTuple):
    """How a registered type is flattened and put together again."""

    type: type[Any]
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: FlattenWithKeysFunc | None


class _SerializeNodeDef(NamedTuple):
    """How the context of a registered type is written into a text."""

    typ: type[Any]
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None,
) -> None:
    """Make instances of exactly `cls` nodes.

    Args:
        cls: the type.
        flatten_fn: from an instance to its children and a context.
        unflatten_fn: from children and context to an instance.
        serialized_type_name: the name of the type in a text made by `treespec_dumps`.
        to_dumpable_context, from_dumpable_context: from the context to something that JSON can hold, and back.
        flatten_with_keys_fn: like `flatten_fn`, with a key beside each child.

    Raises:
        ValueError: if `cls` is registered already, or only one of the two context functions is given.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = NO_SERIALIZED_TYPE_NAME_FOUND if serialized_type_name is None else serialized_type_name
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    to_str_fn: Callable[[Any], str] | None = None,
    maybe_from_str_fn: Callable[[str], Any] | None = None,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None,
) -> None:
    """The former name of `register_pytree_node`, as a FutureWarning says; a second registration replaces the first, with a UserWarning."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use `torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    _register_again(cls)
    register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _register_again(cls: type[Any]) -> None:
    if SUPPORTED_NODES.pop(cls, None) is not None:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=3
        )


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Give a class of named tuples, whose instances are nodes in any case, a name in texts made by `treespec_dumps`."""
    _register_again(cls)
    register_pytree_node(
        cls,
        _namedtuple_flatten,
        _namedtuple_unflatten,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=_namedtuple_dump,
        from_dumpable_context=_namedtuple_load,
        flatten_with_keys_fn=_namedtuple_flatten_with_keys,
    )


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Make instances of `cls` leaves again."""
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name, None)
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make instances of a dataclass nodes, with their fields as children (fields that are None are left out).

    Raises:
        ValueError: if `cls` is no dataclass and no field names are given, or names do not fit its fields.
    """
    drop = drop_field_names or []
    if dataclasses.is_dataclass(cls):
        initial = [field.name for field in dataclasses.fields(cls) if field.init]
        names = field_names if field_names is not None else [name for name in initial if name not in drop]
        if set(names) | set(drop) != set(initial):
            raise ValueError(f"the fields of {cls} are {initial}, but {names} and, dropped, {drop} were given")
    elif field_names is None:
        raise ValueError("field_names must be specified with a list of all fields used to initialize the class")
    else:
        names = field_names

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        pairs: list[tuple[Any, Any]] = []
        kept, absent = [], []
        for name in names:
            value = getattr(obj, name)
            if value is None:
                absent.append(name)
            else:
                kept.append(name)
                pairs.append((GetAttrKey(name), value))
        return pairs, [kept, absent]

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        pairs, context = flatten_with_keys(obj)
        return [value for _, value in pairs], context

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        kept, absent = context
        return cls(**dict(zip(kept, values, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: the object itself."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Make instances of `cls` nodes without children: they are part of the specification.

    Raises:
        TypeError: if `cls` compares by identity only.
    """
    if cls.__eq__ is object.__eq__:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation, so that "
            "specifications that hold two equal constants are equal."
        )
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether `cls` has been given to `register_constant`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# ---------------------------------------------------------------------------------------------------- built-in nodes


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Context]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> tuple[Any, ...]:
    return tuple(values)


def _sequence_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    values, context = SUPPORTED_NODES[type(d)].flatten_fn(d)
    return [(SequenceKey(i), value) for i, value in enumerate(values)], context


def _list_flatten(d: list[Any]) -> tuple[list[Any], Context]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    return list(values)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), list(d.keys())


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d.keys())


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Context]:
    return [(GetAttrKey(name), value) for name, value in zip(d._fields, d, strict=True)], type(d)


def _namedtuple_dump(context: Context) -> DumpableContext:
    known = SUPPORTED_SERIALIZED_TYPES.get(context)
    if known is None:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a serializated_type_name. "
            "Please register using `_register_namedtuple`."
        )
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {context} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    return known.serialized_type_name


def _namedtuple_load(dumped: DumpableContext) -> Context:
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(dumped)
    if cls is None:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {dumped} because we couldn't find a serializated name."
        )
    return cls


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], Context]:
    return list(d.values()), [d.default_factory, list(d.keys())]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> defaultdict[Any, Any]:
    factory, keys = context
    return defaultdict(factory, _dict_unflatten(values, keys))


def _defaultdict_flatten_with_keys(d: defaultdict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    return [(MappingKey(key), value) for key, value in d.items()], [d.default_factory, list(d.keys())]


def _type_name(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _type_of_name(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _defaultdict_dump(context: Context) -> DumpableContext:
    return {
        "default_factory_module": context[0].__module__,
        "default_factory_name": context[0].__qualname__,
        "dict_context": context[1],
    }


def _defaultdict_load(dumped: DumpableContext) -> Context:
    factory = _type_of_name(f"{dumped['default_factory_module']}.{dumped['default_factory_name']}")
    return [factory, dumped["dict_context"]]


def _deque_flatten(d: deque[Any]) -> tuple[list[Any], Context]:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> deque[Any]:
    return deque(values, maxlen=context)


_tuple_flatten_with_keys = _list_flatten_with_keys = _deque_flatten_with_keys = _sequence_flatten_with_keys
_ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys

for _cls, _flatten, _unflatten, _with_keys, _name, _dump, _load in (
    (tuple, _tuple_flatten, _tuple_unflatten, _sequence_flatten_with_keys, "builtins.tuple", None, None),
    (list, _list_flatten, _list_unflatten, _sequence_flatten_with_keys, "builtins.list", None, None),
    (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys, "builtins.dict", None, None),
    (
        namedtuple,
        _namedtuple_flatten,
        _namedtuple_unflatten,
        _namedtuple_flatten_with_keys,
        "collections.namedtuple",
        _namedtuple_dump,
        _namedtuple_load,
    ),
    (
        OrderedDict,
        _dict_flatten,
        _ordereddict_unflatten,
        _dict_flatten_with_keys,
        "collections.OrderedDict",
        None,
        None,
    ),
    (
        defaultdict,
        _defaultdict_flatten,
        _defaultdict_unflatten,
        _defaultdict_flatten_with_keys,
        "collections.defaultdict",
        _defaultdict_dump,
        _defaultdict_load,
    ),
    (deque, _deque_flatten, _deque_unflatten, _sequence_flatten_with_keys, "collections.deque", None, None),
):
    register_pytree_node(
        cast(type, _cls),
        _flatten,
        _unflatten,
        serialized_type_name=_name,
        to_dumpable_context=_dump,
        from_dumpable_context=_load,
        flatten_with_keys_fn=_with_keys,
    )

STANDARD_DICT_TYPES: frozenset[Any] = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES: frozenset[Any] = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})


def is_namedtuple_class(cls: type) -> bool:
    """Whether `cls` is a class of named tuples."""
    fields = getattr(cls, "_fields", None) if isinstance(cls, type) and issubclass(cls, tuple) else None
    return isinstance(fields, tuple) and all(type(name) is str for name in fields)


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether `obj` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether `obj` is a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: type) -> bool:
    """Whether `cls` is a class of sequences of named fields like `time.struct_time`, and `torch.return_types.max`."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and all(
            isinstance(getattr(cls, f"n_{what}", None), int) for what in ("fields", "sequence_fields", "unnamed_fields")
        )
    )


def is_structseq_instance(obj: Any) -> bool:
    """Whether `obj` is a sequence of named fields."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether `obj` is a sequence of named fields or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _register_results(cls: type) -> None:
    """Let the named results of an operator be a container of its results."""

    def flatten(results: Any) -> tuple[list[Any], Context]:
        return list(results), None

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        return cls(values)

    def flatten_with_keys(results: Any) -> tuple[list[tuple[Any, Any]], Context]:
        return [(SequenceKey(index), value) for index, value in enumerate(results)], None

    SUPPORTED_NODES[cls] = NodeDef(cls, flatten, unflatten, flatten_with_keys)


def _get_node_type(tree: Any) -> Any:
    cls = type(tree)
    if issubclass(cls, tuple) and cls is not tuple:
        if is_namedtuple_class(cls):  # whether or not it was registered
            return namedtuple
        if cls not in SUPPORTED_NODES and cls.__module__ == "torch.return_types" and is_structseq_class(cls):
            _register_results(cls)
    return cls


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `tree` is a leaf: its type is not registered, or `is_leaf` says so."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf
