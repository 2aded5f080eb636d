"""What a node has saved, as attributes of it: `grad_fn._saved_self`, and `grad_fn._raw_saved_self` as a `SavedTensor`.

The names are those of the operator's parameters, `result` for what it gave, `self_sym_sizes` for a shape. `Layout` says which entry each is.
"""

from __future__ import annotations

from typing import Any

from .._dispatch.operator import Operator
from .._tensor import Tensor
from .keeping import Packed, SavedOutput
from .node import FREED, Node, edge

_ATTRIBUTES = {"shape": "_sym_sizes", "dtype": "_scalar_type", "device": "_device", "ndim": "_dim"}


class Layout:
    """Where the saved tensors and constants of an operator's node stand, by name."""

    __slots__ = ("op", "saved", "consts", "names")

    def __init__(self, op: Operator, saved: tuple, consts: tuple):
        self.op, self.saved, self.consts = op, saved, consts
        self.names: tuple | None = None

    def find(self) -> tuple[dict, dict]:
        """({name: entry of `saved`}, {name: entry of `consts`})."""
        if self.names is None:
            tensors = {self._name(source): place for place, (source, _) in enumerate(self.saved)}
            numbers = {}
            for place, (source, attribute) in enumerate(self.consts):
                if attribute in _ATTRIBUTES:
                    numbers[self._name(source) + _ATTRIBUTES[attribute]] = place
                elif attribute is None:
                    numbers[self._name(source)] = place
            self.names = (tensors, numbers)
        return self.names

    def _name(self, source: int) -> str:
        if source >= 0:
            return self.op.params[source].name
        if len(self.op.returns) < 2:
            return "result"
        return self.op.returns[-1 - source] or f"result{-1 - source}"


class _SavedTensorType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")


class SavedTensor(metaclass=_SavedTensorType):
    """A tensor that a node has saved, for which hooks may be set."""

    _node: Node
    _place: int | tuple[int, int]

    def register_hooks(self, pack_hook: Any = None, unpack_hook: Any = None) -> None:
        """Keep `pack_hook(tensor)` in place of the tensor, and call `unpack_hook` on it when it is needed.

        RuntimeError when there are hooks already, the tensor was freed, or the hook writes to it; TypeError when one of them cannot be called.
        """
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None"
            )
        node, place = self._node, self._place
        if node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you "
                "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
                "you need to access saved variables after calling backward."
            )
        entries, index = (node.saved, place) if isinstance(place, int) else (node.saved[place[0]], place[1])
        entry = entries[index]
        if entry is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if entry.__class__ is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time."
            )
        hooks = (pack_hook, unpack_hook)
        if entry.__class__ is SavedOutput:
            entries[index] = Packed(entry.unpack(node), (None, entry.number), hooks)
        else:
            tensor = node._unpack_one(entry)
            entries[index] = Packed(tensor, edge(tensor), hooks)


def _raw(node: Node, place: Any) -> SavedTensor:
    made = object.__new__(SavedTensor)
    made._node, made._place = node, place
    return made


def read(node: Node, name: str) -> Any:
    """The value of an attribute `_saved_X` or `_raw_saved_X`. AttributeError when the node saves no such thing."""
    layout = type(node).layout
    if layout is not None:
        tensors, numbers = layout.find()
        if name.startswith("_raw_saved_"):
            place = tensors.get(name[len("_raw_saved_") :])
            if place is not None:
                return _raw_entry(node, place)
        elif name.startswith("_saved_"):
            place = tensors.get(name[len("_saved_") :])
            if place is not None:
                if node.saved is None:
                    raise RuntimeError(FREED)
                found = node._unpack_one(node.saved[place])
                return tuple(found) if isinstance(found, list) else found
            place = numbers.get(name[len("_saved_") :])
            if place is not None:
                return _shown(node.consts[place])
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")


def _raw_entries(node: Node) -> tuple:
    if node.saved is None:
        raise RuntimeError(FREED)
    return tuple(_raw(node, place) for place in range(len(node.saved)))


def _raw_entry(node: Node, place: int) -> Any:
    saved = node.saved
    if saved is not None and saved[place].__class__ is list:
        return tuple(_raw(node, (place, index)) for index in range(len(saved[place])))
    return _raw(node, place)


def _shown(value: Any) -> Any:
    """A constant as PyTorch shows it: sizes as tuples, negative numbers as the unsigned ones that its C++ makes of them."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Tensor):
        return tuple(_shown(item) for item in value)
    if value.__class__ is int and value < 0:
        return value + 2**64
    return value


def names_of(node: Node) -> list[str]:
    """The names that `read` knows, for `dir`."""
    layout = type(node).layout
    if layout is None:
        return []
    tensors, numbers = layout.find()
    return [
        *(prefix + name for name in tensors for prefix in ("_saved_", "_raw_saved_")),
        *("_saved_" + n for n in numbers),
    ]


class _Reader:
    """What nodes ask for the attributes that they do not have."""

    read = staticmethod(read)
    raw = staticmethod(_raw_entries)
    names = staticmethod(names_of)


Node.reader = _Reader
