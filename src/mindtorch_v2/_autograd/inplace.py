"""What an in-place operation does to histories: leaf checks, and the history of a base whose view was written to."""

from __future__ import annotations

import weakref

from .._dispatch import ops
from .._state import TLS
from .._tensor import Tensor, counter, rare_of
from .node import VIEW, AccumulateGrad, Node, attach, geometry, live_node, need_extras, requires_grad


def check_inplace(target: Tensor, others_need_grad: bool) -> None:
    """RuntimeError when grad mode forbids an in-place change of `target`."""
    if not TLS.grad_enabled:
        return
    node = target._node
    base = target._base
    if base is None:
        if node.__class__ is AccumulateGrad:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if target._multi_view:
            _refuse_function_view(target)
        return
    if base._multi_view:
        _refuse_function_view(base)
    if target._multi_view and (others_need_grad or (node is not None and live_node(target) is not None)):
        raise RuntimeError(
            f"Output {target._nr} of {_producer(target)} is a view and is being modified inplace. This view is the output of a "
            "function that returns multiple views. Such functions do not allow the output views to be modified inplace. You "
            "should replace the inplace operation by an out-of-place one."
        )
    if node is None and target._dtype.category > 1 and (others_need_grad or requires_grad(base)):
        raise RuntimeError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case is "
            "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both "
            "inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
        )
    if base._node.__class__ is AccumulateGrad and node is not None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def _refuse_function_view(target: Tensor) -> None:
    """RuntimeError for a write into a view that a user's Function returned: see `_own_view` in `function.py`."""
    if target._multi_view == "function":
        why = (
            "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
            "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function."
        )
    else:
        why = (
            "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be "
            "modified inplace. You should replace the inplace operation by an out-of-place one."
        )
    raise RuntimeError(f"Output {target._nr} of {_producer(target)} is a view and is being modified inplace. {why}")


def _producer(view: Tensor) -> str:
    node = live_node(view)
    return node.name() if node is not None else "UnbindBackward0"


def rebase_history(target: Tensor, node: Node) -> None:
    """Give the base of a view that `node` wrote to its new history; views find theirs through it."""
    base = target._base
    if base is None:
        target._epoch += 1
        _move_retained(target, node)
        return
    slices = CopySlices()
    old = None if base._node is None or base._node is VIEW else (base._node, base._nr)
    slices.edges = (old, *node.edges[1:])
    slices.saved = None
    slices.consts = (node, geometry(target), geometry(base))
    base._nr = 0
    attach(base, slices)
    _move_retained(base, slices)
    base._epoch += 1
    target._node = VIEW  # stale on purpose: the next look regenerates it from the base


def _move_retained(tensor: Tensor, node: Node) -> None:
    """Let a tensor that keeps its gradient keep that of its new value: from the node that made the old one to `node`."""
    rare = rare_of(tensor)
    before = rare.retains if rare is not None else None
    if not before:
        return
    kept = before.extras.retained
    for number, reference in list(kept.items()):
        if reference() is tensor:
            keep_gradient(tensor, node, 0)
            del kept[number]


def keep_gradient(tensor: Tensor, node: Node, number: int) -> None:
    """Let what arrives at an output of a node be the `.grad` of a tensor."""
    extras = need_extras(node)
    if extras.retained is None:
        extras.retained = {}
    extras.retained[number] = weakref.ref(tensor)
    tensor._retains = node


class CopySlices(Node):
    """History of a base after `node` wrote to a view of it: the view's part of the gradient goes through `node`."""

    __slots__ = ()

    def apply(self, grads: tuple) -> tuple:
        """Gradients of the base before the write, and of the other inputs of the operation that wrote."""
        node, (shape, stride, offset), (base_shape, base_stride, base_offset) = self.consts
        grad = ops.clone(grads[0])
        if grad.stride() != base_stride:
            laid_out = ops.empty_strided(base_shape, base_stride, dtype=grad.dtype, device=grad.device)
            grad = ops.copy_(laid_out, grad)
        part = ops.as_strided(grad, shape, stride, grad.storage_offset() + offset - base_offset)
        given = node.apply((ops.clone(part),))
        if self.edges[0] is None:
            return (None, *given[1:])
        if given[0] is None:
            ops.zero_(part)
        else:
            ops.copy_(part, given[0])
        return (grad, *given[1:])

    def release(self) -> None:
        """Release the operation's saved tensors too."""
        self.consts[0].release()
        Node.release(self)

    def name(self) -> str:
        return "CopySlices"


def outdate_aliases(target: Tensor, others: tuple) -> None:
    """Let those operands of a recorded in-place operation that share the memory of its target count as changed by it.

    The operation is recorded after it has run, so they were saved with the version that it made.
    """
    keeper = counter(target)
    if not any(isinstance(other, Tensor) and other is not target and counter(other) is keeper for other in others):
        return
    node = target._node
    if not isinstance(node, Node) or not node.saved:
        return
    node.saved = [
        (entry[0], entry[1] - 1) if entry.__class__ is tuple and counter(entry[0]) is keeper else entry
        for entry in node.saved
    ]
