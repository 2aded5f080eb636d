"""`torch.utils.swap_tensors`: two tensors take each other's place, under every reference to them."""

from __future__ import annotations

import copyreg
import gc
import sys
import weakref
from typing import Any

from .._autograd.node import AccumulateGrad, extras_of
from .._tensor import Tensor

_STATE = ("_payload", "_dtype", "_node", "_base", "_rare")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swap the values, dtypes, classes, attributes and histories of two tensors.

    RuntimeError when one of them is referred to weakly, or stands in a graph: those would see the other one.
    """
    own = [_leaf(t1), _leaf(t2)]
    t1._node, t2._node = (None if leaf is not None else t._node for t, leaf in zip((t1, t2), own))
    try:
        for name, place in (("t1", 0), ("t2", 1)):
            if own[place] is not None and sys.getrefcount(own[place]) > 2:
                gc.collect()  # a graph that nobody refers to any more may be a cycle
            if own[place] is not None and (count := sys.getrefcount(own[place])) > 2:
                raise RuntimeError(
                    f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count} make sure you are not holding "
                    "references to the tensor in other places."
                )
        kept = [leaf for leaf in own if leaf is not None]
        grounds = [weakref.getweakrefs(t) for t in (t1, t2)]
        for name, tensor, refs in zip(("t1", "t2"), (t1, t2), grounds):
            mine = [leaf.reference for leaf in kept if leaf.reference() is tensor]
            if any(ref not in mine for ref in refs):
                raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        slot_names: Any = getattr(copyreg, "_slotnames")  # noqa: B009 - type checkers do not know of it
        first, second = (set(slot_names(type(t))) - {"__dict__", "__weakref__", *_STATE} for t in (t1, t2))
        if first != second:
            raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
        _exchange(t1, t2, first)
    except BaseException:  # an interrupt too must leave both tensors with their nodes; it goes on
        for tensor, leaf in zip((t1, t2), own):
            if leaf is not None:
                tensor._node = leaf
        raise
    for tensor, leaf in zip((t2, t1), own):  # a leaf's node goes with its values
        if leaf is None:
            continue
        tensor._node = made = AccumulateGrad(tensor)
        extras = extras_of(leaf)
        if extras is not None:
            made.extras = extras


def _leaf(tensor: Tensor) -> Any:
    """The node of a leaf, which refers to its tensor, or None."""
    return tensor._node if tensor._node.__class__ is AccumulateGrad else None


def _exchange(t1: Any, t2: Any, slots: set) -> None:
    """Swap class, instance dict, state and the slots of a subclass."""
    for name in _STATE:
        before = getattr(t1, name)
        setattr(t1, name, getattr(t2, name))
        setattr(t2, name, before)
    for tensor, other in ((t1, t2), (t2, t1)):  # what one was to the other it still is
        if tensor._base is tensor:
            tensor._base = other
        if tensor._shares is tensor:
            tensor._shares = other
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in slots:
        present = [(t, hasattr(t, name), getattr(t, name, None)) for t in (t1, t2)]
        for tensor, (_, there, value) in zip((t2, t1), present):
            if there:
                setattr(tensor, name, value)
            elif hasattr(tensor, name):
                delattr(tensor, name)
