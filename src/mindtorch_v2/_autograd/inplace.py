"""What an in-place operation does to histories: leaf checks, and the history of a base whose view was written to."""

from __future__ import annotations

from typing import Any

from .._dispatch import ops
from .._dispatch.below import needs_grad
from .._state import TLS
from .._tensor import Tensor, counter
from .keeping import SavedOutput, SavedPart
from .node import (
    OF_INFERENCE,
    VIEW,
    AccumulateGrad,
    Node,
    attach,
    function_name,
    live_node,
    move_retained,
    place_of,
    requires_grad,
)


def may_write(op: Any, args: tuple) -> bool:
    """Refuse an in-place form that PyTorch refuses in grad mode; whether it is to be recorded."""
    others = any(needs_grad(a) for a in args[1:])
    check_inplace(args[0], others)
    return op.record is not None and (others or needs_grad(args[0]))


def record_write(op: Any, args: tuple, before: tuple) -> None:
    """The history of an in-place form that has written; `before`: its arguments as they were."""
    target = args[0]
    node = target._node
    op.record(target, *before)
    target._nr = 0
    outdate_aliases(target, args[1:])
    if target._node is not node:
        rebase_history(target, target._node)


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
    if node.__class__ is AccumulateGrad:
        raise RuntimeError(OF_INFERENCE.format("is being"))
    if node is not None and _below_several(target):
        _refuse_function_view(target, several=True)
    if node is None and target._dtype.category > 1 and (others_need_grad or requires_grad(base)):
        raise RuntimeError(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case is "
            "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both "
            "inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
        )
    if base._node.__class__ is AccumulateGrad and node is not None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def _below_several(view: Tensor) -> bool:
    """Whether a view is one of a view that was made together with others."""
    base = view._base
    node, end = live_node(view), None if base is None else base._node
    while node is not None and node is not end and node is not VIEW:
        if len(node.outputs) > 1:
            return True
        node = node.edges[0][0] if node.edges and node.edges[0] is not None else None
    return False


def _refuse_function_view(target: Tensor, several: bool = False) -> None:
    """RuntimeError for a write into a view that a user's Function, or an operation with `several` results, returned."""
    if target._multi_view == "function" and not several:
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
    return function_name(node) if node is not None else "Unbind"


def rebase_history(target: Tensor, node: Node) -> None:
    """Give the base of a view that `node` wrote to its new history; views find theirs through it."""
    base = target._base
    if base is None:
        target._epoch += 1
        move_retained(target, node)
        return
    slices = CopySlices()
    old = None if base._node is None or base._node is VIEW else (base._node, base._nr)
    slices.edges = (old, *node.edges[1:])
    slices.saved = None
    place = place_of(target, base)
    slices.consts = (node, place)
    if isinstance(node.saved, list):
        node.saved = [
            SavedPart(entry, slices, place) if entry.__class__ is SavedOutput else entry for entry in node.saved
        ]
    base._nr = 0
    attach(base, slices)
    move_retained(base, slices)
    base._epoch += 1
    target._node = VIEW  # stale on purpose: the next look regenerates it from the base


class CopySlices(Node):
    """History of a base after `node` wrote to a view of it: the view's part of the gradient goes through `node`."""

    __slots__ = ()

    def apply(self, grads: tuple) -> tuple:
        """Gradients of the base before the write, and of the other inputs of the operation that wrote."""
        node, place = self.consts
        (shape, stride, offset), (base_shape, base_stride, base_offset) = place.view, place.base
        grad = ops.clone(ops.view_as_real(grads[0]) if place.pairs else grads[0])
        if grad.stride() != base_stride:
            laid_out = ops.empty_strided(base_shape, base_stride, dtype=grad.dtype, device=grad.device)
            grad = ops.copy_(laid_out, grad)
        part = ops.as_strided(grad, shape, stride, grad.storage_offset() + offset - base_offset)
        arrived = ops.clone(part)
        given = node.apply((ops.view_as_complex(arrived) if place.parts else arrived,))
        if self.edges[0] is None:
            return (None, *given[1:])
        if given[0] is None:
            ops.zero_(part)
        else:
            ops.copy_(part, place.part(given[0]))
        return (place.whole(grad), *given[1:])

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
