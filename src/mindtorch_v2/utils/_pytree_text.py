"""Specifications of trees as JSON text."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

from . import _pytree_registry as registry
from ._pytree_spec import _LEAF_SPEC, TreeSpec

PROTOCOL = 1
_ENUM_MARK = "__enum__"


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations by the name of their class and their own."""

    def default(self, o: Any) -> Any:
        """What JSON can hold in place of `o`."""
        if isinstance(o, Enum):
            return {_ENUM_MARK: True, "fqn": registry._type_name(type(o)), "name": o.name}
        return super().default(o)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The member of an enumeration that `EnumEncoder` has written."""
    if _ENUM_MARK in obj:
        return registry._type_of_name(obj["fqn"])[obj["name"]]
    return obj


def _to_data(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = registry.SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if known.serialized_type_name == registry.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a "
            "`serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                f"Unable to serialize context. Please make the context json dump-able or register a custom serializer "
                f"using register_pytree_node: {error}"
            ) from error
    return {
        "type": known.serialized_type_name,
        "context": context,
        "children_spec": [_to_data(child) for child in spec.children_specs],
    }


def _from_data(data: dict[str, Any]) -> TreeSpec:
    if data["type"] is None:
        return _LEAF_SPEC
    cls = registry.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(data["type"])
    if cls is None or data["type"] == registry.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(f"Deserializing {data['type']} in pytree is not registered")
    load = registry.SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context
    context = json.loads(data["context"], object_hook=enum_object_hook) if load is None else load(data["context"])
    return TreeSpec(cls, context, [_from_data(child) for child in data["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A specification as text.

    Raises:
        TypeError: if `treespec` is no specification, or a context is nothing that JSON can hold.
        ValueError: for an unknown protocol.
        NotImplementedError: if a type has no name for texts.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    if protocol not in (None, PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return json.dumps((PROTOCOL, _to_data(treespec)), cls=EnumEncoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The specification that `treespec_dumps` has written.

    Raises:
        ValueError: for an unknown protocol.
        NotImplementedError: if a type is not registered.
    """
    protocol, data = json.loads(serialized)
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{PROTOCOL}]")
    return _from_data(data)


def treespec_pprint(treespec: TreeSpec) -> str:
    """A specification as the tree itself, with `*` for every leaf."""

    class _Star:
        def __repr__(self) -> str:
            return "*"

    return repr(treespec.unflatten([_Star() for _ in range(treespec.num_leaves)]))
