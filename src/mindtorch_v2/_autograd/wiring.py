"""What the dispatcher needs of this floor, in one place."""

from __future__ import annotations

from .._dispatch import ops
from .._tensor import Tensor, wrap
from .inplace import check_inplace, rebase_history
from .node import VIEW, Node

__all__ = ["check_inplace", "copy_", "mark_view", "rebase_history", "snapshot", "snapshot_view"]


def mark_view(view: Tensor) -> None:
    """Let a view of a tensor without history look at its base again later."""
    if view._dtype.category > 1:
        view._node = VIEW


def snapshot(target: Tensor) -> Tensor:
    """The values and history that a tensor has before it is written to."""
    data = target._data
    copied = wrap(data.copy() if hasattr(data, "copy") else data, target._dtype)
    node = target._node
    if isinstance(node, Node):
        from .node import live_node

        copied._node = live_node(target)
        copied._nr = target._nr
    return copied


def snapshot_view(target: Tensor) -> Tensor:
    """The geometry and history that a tensor has before its own geometry changes."""
    before = wrap(target._data, target._dtype)
    before._node = target._node
    if target._nr:
        before._nr = target._nr
    return before


def copy_(target: Tensor, source: Tensor) -> Tensor:
    """Write `source` into `target`, recorded."""
    return ops.copy_(target, source)
