"""What nodes save: inputs with their version, results without a reference to their tensor, and what hooks of users gave.

Note [Unpacked tensors]
What a user's unpack hook gives is a tensor without history; for a second derivative it must stand where the saved one stood. So the edge is kept beside
what the pack hook gave: that of the input, or (None, number) of a result of the node itself, which refers to no node lest it be a cycle.
"""

from __future__ import annotations

import weakref
from typing import Any

from .._dispatch.below import alias
from .._state import DISPATCHING, TLS
from .._tensor import Tensor, belongs_to_inference, counter, rare_of, version, wrap
from .node import AsStridedBackward0, Kept, Node, Place, attach, changed, edge


class no_grad:
    """Grad mode off, for code of this floor."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before = TLS.grad_enabled
        TLS.grad_enabled = False

    def __exit__(self, *exc: object) -> None:
        TLS.grad_enabled = self.before


def _detached(tensor: Tensor) -> Tensor:
    """Another instance without history; of a class that takes over operators, one of that class, with all that belongs to it."""
    made = alias(tensor) if tensor.__class__ in DISPATCHING else wrap(tensor._payload, tensor._dtype)
    made._shares = counter(tensor)
    return made


class Packed(Kept):
    """A saved tensor in the care of a user's saved-tensor hooks; see Note [Unpacked tensors]."""

    __slots__ = ("value", "unpack_hook", "edge")

    def __init__(self, tensor: Tensor, edge: Any, hooks: tuple | None = None):
        pack, self.unpack_hook = hooks or TLS.saved_tensor_hooks[-1]
        self.edge = edge
        before = version(tensor)
        with no_grad():
            self.value = pack(_detached(tensor))
        if version(tensor) != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
                "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
                "perform in-place operations on the input to a pack hook."
            )

    def unpack(self, node: Node) -> Tensor:
        """The tensor, made again by the user's hook, at its place in the graph."""
        tensor = self.unpack_hook(self.value)
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
            )
        if self.edge is None:
            return tensor
        source, number = self.edge
        made = _detached(tensor)
        made._node = source or node
        if number:
            made._nr = number
        return made


class SavedOutput(Kept):
    """A result that its own node saves: the payload, without a reference to the Tensor, which refers to the node.

    Note [Versions of results]. The version is the tensor's, to which there is a weak reference alone, so a tensor that was written in place and is gone
    (`y.exp().add_(1).sum()`) could not be asked. Its `Rare` counts, which outlives it here: it is taken when the result is saved, if there is one already, and
    otherwise when it is made, by the first change (`bump_version`), at which the tensor still has this node. What was never written needs none.
    """

    __slots__ = ("payload", "dtype", "reference", "version", "number", "record")

    def __init__(self, tensor: Tensor, number: int = 0):
        self.payload = tensor._payload
        self.dtype = tensor._dtype
        keeper = counter(tensor)
        rare = rare_of(keeper)
        self.reference = weakref.ref(keeper)
        self.version = 0 if rare is None else rare.version
        self.number = number
        self.record = rare

    def unpack(self, node: Node) -> Tensor:
        """The result as a tensor with its history."""
        keeper = self.reference()
        made = wrap(self.payload, self.dtype)
        made._node = node
        if self.number:
            made._nr = self.number
        now = self.version
        if self.record is not None:
            now = self.record.version
        elif keeper is not None:
            now = version(keeper)
        if now != self.version:
            raise RuntimeError(changed(made, self.version, now))
        if keeper is not None:
            made._shares = keeper
        return made

    def note_written(self, keeper: Tensor) -> None:
        """If it is this result of the node that is about to be written for the first time, follow its versions."""
        if self.record is None and self.reference() is keeper:
            self.record = keeper._rare


class SavedPart(SavedOutput):
    """A result that an operation has written into a view, which finds its history through the new one of the base; see `rebase_history`."""

    __slots__ = ("place", "slices")

    def __init__(self, saved: SavedOutput, slices: Node, place: Place):
        self.payload, self.dtype, self.reference = saved.payload, saved.dtype, saved.reference
        self.version, self.number, self.record = saved.version, saved.number, saved.record
        self.slices, self.place = weakref.ref(slices), place

    def unpack(self, node: Node) -> Tensor:
        """The result as a tensor with its history."""
        made = super().unpack(node)
        slices = self.slices()
        if slices is not None:
            view = AsStridedBackward0()
            view.edges, view.saved, view.consts = ((slices, 0),), None, self.place
            made._nr = 0
            attach(made, view)
        return made


def keep(value: Any) -> Any:
    """What a node saves of an input: tensors with their version, all else as it is."""
    if isinstance(value, Tensor):
        rare = rare_of(value)
        if (rare is not None or value._base is not None) and belongs_to_inference(value):
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
                "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
                "`torch.no_grad()` instead of `torch.inference_mode()`."
            )
        if TLS.saved_tensor_hooks:
            return Packed(value, edge(value))
        return (value, 0 if rare is None and value._base is None else version(value))
    if value.__class__ is list or value.__class__ is tuple:
        return [keep(item) for item in value]
    return value


def keep_output(tensor: Tensor, number: int = 0) -> Any:
    """What a node saves of its own result."""
    if TLS.saved_tensor_hooks:
        return Packed(
            tensor if tensor.__class__ in DISPATCHING else wrap(tensor._payload, tensor._dtype), (None, number)
        )
    if tensor.__class__ in DISPATCHING or TLS.tangents is not None:
        return SavedWrapper(tensor, number)
    return SavedOutput(tensor, number)


class SavedWrapper(SavedOutput):
    """A saved result whose class takes part in what operators do, or that has a tangent: another instance of it, with all that belongs to it."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor, number: int):
        super().__init__(tensor, number)
        self.tensor = alias(tensor)

    def unpack(self, node: Node) -> Tensor:
        """The result as a tensor with its history."""
        super().unpack(node)
        made = alias(self.tensor)
        made._node = node
        if self.number:
            made._nr = self.number
        if TLS.tangents is not None and (result := self.reference()) is not None:
            tangent = TLS.tangents.own(result)
            if tangent is not None:
                TLS.tangents.set(made, tangent)
        return made
