"""Lists and dicts that cannot be changed, in which graphs keep arguments. They are nodes of trees, as lists and dicts are."""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils import _pytree_registry as registry

__all__ = ["immutable_dict", "immutable_list"]


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args of a "
        "torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
        "    new_args = ...  # copy and mutate args\n    node.args = new_args"
    )


class immutable_list(list):
    """A list whose methods that would change it raise TypeError; it has a hash when its items have."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict whose methods that would change it raise TypeError; it has a hash when its values have."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), (tuple(self.items()),)


for _name in "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort".split():
    setattr(immutable_list, _name, _no_mutation)
for _name in "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split():
    setattr(immutable_dict, _name, _no_mutation)


def _unflatten_list(values: Any, context: Any) -> immutable_list:
    return immutable_list(values)


def _unflatten_dict(values: Any, context: Any) -> immutable_dict:
    return immutable_dict(zip(context, values, strict=True))


for _cls, _node, _unflatten in (
    (immutable_list, registry.SUPPORTED_NODES[list], _unflatten_list),
    (immutable_dict, registry.SUPPORTED_NODES[dict], _unflatten_dict),
):
    registry.register_pytree_node(
        _cls,
        _node.flatten_fn,
        _unflatten,
        serialized_type_name=f"torch.fx.immutable_collections.{_cls.__name__}",
        flatten_with_keys_fn=_node.flatten_with_keys_fn,
    )
