"""Nodes of the tape: what the generated derivative classes are made of.

Note [Edges]
A node's `edges` has one entry per differentiable input: None where no gradient is wanted, else `(node, output number)`.

Note [Views and history]
A view's node may become stale: an in-place operation with a history, on the base or on another view, gives the base a new node, and each
view a history through it. So a base counts its `_epoch`s, a view remembers the one it was made in, and whoever reads a view's
node asks `live_node`. A view of a tensor without history carries the sentinel `VIEW`, so that fast paths, which take a node that is
None as "no history", leave for the code that asks. See `inplace.py` for the other half.
"""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy import ndarray

from .. import _payload
from .._device import CPU
from .._dispatch import ops
from .._handles import RemovableHandle
from .._state import DISPATCHING
from .._tensor import Tensor, rare_of, version
from .._type_names import type_name

_SEQUENCE = itertools.count()


def _zeros(like: Any, shape: Any, kind: Any, where: Any) -> Tensor:
    """Zeros of the class of another gradient, where that takes over operators."""
    if like.__class__ in DISPATCHING:
        return ops.new_zeros(like, shape, dtype=kind, device=where)
    return ops.zeros(shape, dtype=kind, device=where)


class Extras:
    """What few nodes have: hooks, and tensors that keep their gradient."""

    __slots__ = ("hooks", "post_accumulate_hooks", "prehooks", "retained", "tensor_hooks")

    hooks: dict | None  # run on the gradients of the inputs, after apply
    prehooks: dict | None  # run on the gradients of the outputs, before apply
    tensor_hooks: dict | None  # by output number: hooks that users registered on tensors
    retained: dict | None  # by output number: weak references to tensors that keep their gradient
    post_accumulate_hooks: dict | None  # of a leaf: run after its gradient was added

    def __init__(self) -> None:
        self.hooks = self.prehooks = self.tensor_hooks = self.retained = self.post_accumulate_hooks = None


class Kept:
    """What a node saves in place of a tensor; see `keeping.py`."""

    __slots__ = ()

    def unpack(self, node: Node) -> Tensor:
        """The tensor, at its place in the graph."""
        raise NotImplementedError

    def note_written(self, keeper: Tensor) -> None:
        """If it is this result of the node that is about to be written for the first time, follow its versions."""


class Node:
    """One operation on the tape. Generated subclasses define `apply(grads) -> tuple`, aligned with `edges`."""

    __slots__ = ("edges", "saved", "consts", "outputs", "extras", "__dict__", "__weakref__")

    label: str | None = None
    layout: Any = None  # of an operator's class: where what it saves stands, by name; see `saved.py`
    reader: Any = None  # what reads it
    is_cheap = False  # whether a large result may be computed again in place of being kept; see `again.py`
    runs_on_nothing = False  # whether `apply` is wanted although no gradient has come to any of the outputs

    if TYPE_CHECKING:
        edges: tuple
        saved: Any
        consts: Any
        outputs: tuple
        extras: Extras | None  # nothing at all until somebody looks

    def apply(self, grads: tuple) -> tuple:
        """Gradients of the inputs from those of the outputs."""
        raise NotImplementedError(f"the derivative for '{self.name()}' is not implemented")

    def name(self) -> str:
        """The name that printed tensors show: `AddBackward0`."""
        return self.label or type(self).__name__

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_saved_", "_raw_saved_")):
            return Node.reader.read(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *Node.reader.names(self)]

    @property
    def requires_grad(self) -> bool:
        return True

    def _sequence_nr(self) -> int:
        """The number that was given to the node, or how many were made before it was first asked for."""
        number = self.__dict__.get("_sequence")
        if number is None:
            number = self.__dict__["_sequence"] = next(_SEQUENCE)
        return number

    def _set_sequence_nr(self, number: int) -> None:
        """Give the node a number."""
        self.__dict__["_sequence"] = number

    @property
    def next_functions(self) -> tuple:
        return tuple((None, 0) if e is None else e for e in self.edges)

    @property
    def metadata(self) -> dict:
        return self.__dict__.setdefault("_metadata", {})

    def unpack(self) -> list:
        """The saved tensors. RuntimeError when they were freed, or changed in place since. The extension has one of its own."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        return [self._unpack_one(entry) for entry in saved]

    def _unpack_one(self, entry: Any) -> Any:
        kind = entry.__class__
        if kind is tuple:
            tensor, saved_version = entry
            if version(tensor) != saved_version:
                raise RuntimeError(changed(tensor, saved_version, version(tensor)))
            return tensor
        if kind is list:
            return [self._unpack_one(item) for item in entry]
        return entry.unpack(self) if isinstance(entry, Kept) else entry

    def release(self) -> None:
        """Forget the saved tensors; a second pass through this node will say so."""
        if self.saved is not None:
            self.saved = None

    def note_written(self, keeper: Tensor) -> None:
        """Follow the versions of a result, which is about to be written in place for the first time: see Note [Versions of results] in `keeping.py`."""
        _note_written(self.saved, keeper)

    def materialize(self, grads: tuple) -> list:
        """The gradients with zeros in place of those that nobody supplied, of their class; None stays where there was no result."""
        like = next((grad for grad in grads if grad is not None), None)
        return [
            _zeros(like, *output) if grad is None and output is not None else grad
            for grad, output in zip(grads, self.outputs)
        ]

    def register_hook(self, hook: Callable) -> Any:
        """Run `hook(grad_inputs, grad_outputs)` after this node; it may return replacements. Returns a removable handle."""
        return _register(self, "hooks", hook)

    def register_prehook(self, hook: Callable) -> Any:
        """Run `hook(grad_outputs)` before this node; it may return replacements. Returns a removable handle."""
        return _register(self, "prehooks", hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


def changed(tensor: Tensor, saved: int, now: int) -> str:
    """What is said of a saved tensor that is at another version now."""
    made_by = f", which is output {tensor._nr} of {function_name(tensor._node)}," if is_interior(tensor._node) else ""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_name(tensor)} {list(tensor.shape)}]{made_by} is at version {now}; expected version {saved} instead. "
        "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def _note_written(saved: Any, keeper: Tensor) -> None:
    if isinstance(saved, list):
        for entry in saved:
            _note_written(entry, keeper)
    elif isinstance(saved, Kept):
        saved.note_written(keeper)


def _register(node: Node, attribute: str, hook: Callable) -> Any:
    extras = need_extras(node)
    table = getattr(extras, attribute)
    if table is None:
        table = HookTable()
        setattr(extras, attribute, table)
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def extras_of(node: Node) -> Extras | None:
    """The hooks and the like of a node, if it has any."""
    try:
        return node.extras
    except AttributeError:  # nobody has set the slot yet
        node.extras = None
        return None


def need_extras(node: Node) -> Extras:
    """The hooks and the like of a node, made if need be."""
    extras = extras_of(node)
    if extras is None:
        extras = node.extras = Extras()
    return extras


class HookTable(dict):
    """A dict that can be referenced weakly, as removable handles do."""

    __slots__ = ("__weakref__",)


class GradientEdge(NamedTuple):
    """Where a gradient arrives: a node and the number of one of its outputs."""

    node: Node
    output_nr: int
    ownership_token: Any = None


class AccumulateGrad(Node):
    """The end of the tape at a leaf: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("reference",)

    def __init__(self, variable: Tensor):
        self.edges = ()
        self.saved = self.consts = self.extras = None
        self.outputs = ()
        self.reference = weakref.ref(variable)

    @property
    def variable(self) -> Tensor | None:
        return self.reference()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"


class _ViewSentinel:
    """Class of `VIEW`; see Note [Views and history]."""

    __slots__ = ()

    def note_written(self, keeper: Tensor) -> None:
        """A view sentinel has saved nothing."""

    def __repr__(self) -> str:
        return "VIEW"


VIEW = _ViewSentinel()


def is_interior(node: Any) -> bool:
    """Whether a tensor's `_node` is that of an operation (not None, a leaf's, or the view sentinel)."""
    return isinstance(node, Node) and node.__class__ is not AccumulateGrad


def edge(value: Any) -> Any:
    """The edge to what produced an input, or None; see Note [Edges]."""
    if not isinstance(value, Tensor):
        return None
    node = value._node
    if node is None:
        return None
    if value._base is not None:
        node = live_node(value)
        if node is None:
            return None
    return (node, 0 if len(node.outputs) < 2 else value._nr)


def live_node(view: Tensor) -> Any:
    """The node of a view as its base's history now is; see Note [Views and history]."""
    base = view._base
    node = view._node
    now = 0 if base is None else epoch_of(base)
    if not now or epoch_of(view) == now:  # a view of a base with none has seen none
        return None if node is VIEW else node
    return _regenerate(view, base)


def epoch_of(tensor: Tensor) -> int:
    """How often a base got a new history, or what a view has seen of it."""
    rare = rare_of(tensor)
    return 0 if rare is None else rare.epoch


def follow_epoch(view: Tensor, base: Tensor) -> None:
    """Note that the node of a view belongs to the base's history as it is now."""
    now = epoch_of(base)
    if now:  # it never falls: a view of a base with none has seen none
        view._epoch = now


def requires_grad(tensor: Tensor) -> bool:
    """Whether operations on the tensor are recorded."""
    node = tensor._node
    if node is None:
        return False
    return tensor._base is None or live_node(tensor) is not None


def attach(out: Tensor, node: Node) -> Tensor:
    """Make `out`, which is fresh or has number 0, the single result of `node`; integers and bools have no history."""
    if out._dtype.category < 2:
        return out
    data = out._payload
    node.outputs = ((data.shape, out._dtype, CPU if data.__class__ is ndarray else data.device),)
    node.extras = None
    out._node = node
    if out._base is not None:
        follow_epoch(out, out._base)
    return out


def attach_many(outs: Any, node: Node, differentiable: tuple | None = None) -> Any:
    """Make `outs` the results of `node`; those whose number is not in `differentiable` stay without history."""
    described = []
    for number, out in enumerate(outs):
        if out is None:  # a gradient that was not asked for
            described.append(None)
            continue
        data = out._payload
        described.append((data.shape, out._dtype, _payload.device_of(data)))
        if differentiable is not None and number not in differentiable:
            continue
        if not (out._dtype.is_floating_point or out._dtype.is_complex):
            continue
        out._node = node
        out._nr = number
        if out._base is not None:
            follow_epoch(out, out._base)
    node.outputs = tuple(described)
    return outs


class AsStridedBackward0(Node):
    """History of a view through its base, from the geometry of both."""

    __slots__ = ()

    def apply(self, grads: tuple) -> tuple:
        """The view's gradient, put where the view lies in its base."""
        place: Place = self.consts
        return (place.whole(scatter_strided(place.part(grads[0]), *place.view, *place.base)),)


class Place(NamedTuple):
    """Where a view lies in its base: both geometries, in real numbers when one of the two is complex and the other is not."""

    view: tuple
    base: tuple
    parts: bool  # whether the view is complex, and the base has real and imaginary parts as elements
    pairs: bool  # the reverse

    def part(self, grad: Tensor) -> Tensor:
        """A gradient of the view, in the numbers of the geometries."""
        return ops.view_as_real(grad) if self.parts else grad

    def whole(self, grad: Tensor) -> Tensor:
        """A gradient of the base, from the numbers of the geometries."""
        return ops.view_as_complex(grad) if self.pairs else grad


def place_of(view: Tensor, base: Tensor) -> Place:
    """Where a view lies in its base."""
    parts, pairs = (view._dtype.is_complex, base._dtype.is_complex)
    if parts == pairs:
        return Place(geometry(view), geometry(base), False, False)
    shape, stride, offset = geometry(view if parts else base)
    real = ((*shape, 2), (*(2 * step for step in stride), 1), 2 * offset)
    return Place(real, geometry(base), True, False) if parts else Place(geometry(view), real, False, True)


OF_INFERENCE = (
    "A view was created in inference mode and {} modified inplace in normal mode. Given that this use case is ambiguous and "
    "error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside the inference_mode "
    "block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def _regenerate(view: Tensor, base: Tensor) -> Any:
    if view._node.__class__ is AccumulateGrad:
        raise RuntimeError(OF_INFERENCE.format("its base or another view of its base has been"))
    view._epoch = base._epoch
    if base._node is None:
        view._node = VIEW
        return None
    node = AsStridedBackward0()
    node.edges = ((base._node, base._nr),)
    node.saved = None
    node.consts = place_of(view, base)
    view._nr = 0
    attach(view, node)
    move_retained(view, node)
    return node


def move_retained(tensor: Tensor, node: Node) -> None:
    """Let a tensor that keeps its gradient keep that of its new value: from the node that made the old one to `node`."""
    rare = rare_of(tensor)
    before = rare.retains if rare is not None else None
    if not before:
        return
    kept = before.extras.retained
    for number, reference in list(kept.items()):
        if reference() is tensor:
            del kept[number]
            keep_gradient(tensor, node, 0)


def function_name(node: Node) -> str:
    """How errors about tensors name what made them: `Exp` for ExpBackward0."""
    return re.sub(r"Backward\d+$", "", node.name())


def keep_gradient(tensor: Tensor, node: Node, number: int) -> None:
    """Let what arrives at an output of a node be the `.grad` of a tensor."""
    extras = need_extras(node)
    if extras.retained is None:
        extras.retained = {}
    extras.retained[number] = weakref.ref(tensor)
    tensor._retains = node


def geometry(tensor: Tensor) -> tuple:
    """(shape, stride, storage offset) in elements."""
    data = tensor._payload
    return (data.shape, _payload.stride_of(data), _payload.offset_of(data))


def scatter_strided(
    grad: Tensor, shape: tuple, stride: tuple, offset: int, base_shape: tuple, base_stride: tuple, base_offset: int
) -> Tensor:
    """The gradient of a base of the second geometry from that of a view of the first one.

    Elements that the view holds several times (an expanded view) add up.
    """
    reach = max(_payload.extent(base_shape, base_stride), offset - base_offset + _payload.extent(shape, stride))
    flat = ops.zeros((reach,), dtype=grad.dtype, device=grad.device)
    overlaps = any(n > 1 and s == 0 for n, s in zip(shape, stride))
    if overlaps:
        index = ops.as_strided(ops.arange(reach, device=grad.device), shape, stride, offset - base_offset)
        flat = ops.index_add(flat, 0, ops.reshape(index, (-1,)), ops.reshape(grad, (-1,)))
    else:
        ops.copy_(ops.as_strided(flat, shape, stride, offset - base_offset), grad)
    return ops.as_strided(flat, base_shape, base_stride, 0)
