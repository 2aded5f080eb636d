"""What the dispatcher and the C extension need of this floor, in one place; importing it connects them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import _dtype
from .._above import above
from .._device import CPU, META
from .._dispatch import backends, below, dispatcher, kinds, native, ops, plans, sparse
from .._dispatch.lazy import LazyMethod
from .._dtype import DTYPES
from .._layout import memory_format, strided
from .._payload import MetaPayload
from .._pending import PendingPayload, settled
from .._random.generator import Generator
from .._state import PLAIN, TLS
from .._storage import MetaStorage
from .._tensor import Rare, Size, Tensor, wrap
from .inplace import may_write, record_write
from .keeping import SavedOutput, keep, no_grad
from .node import (
    VIEW,
    AccumulateGrad,
    Node,
    follow_epoch,
    live_node,
    requires_grad,
)

__all__ = [
    "VIEW",
    "copy_",
    "mark_view",
    "may_write",
    "no_grad",
    "mark_inference_views",
    "record_write",
    "run_forward",
    "run_forward_inplace",
    "snapshot",
    "snapshot_view",
]

dispatcher.autograd = below.autograd = sparse.autograd = sys.modules[__name__]
native.connect(
    tensor=Tensor,
    rare=Rare,
    size=Size,
    plain=PLAIN,
    tls=TLS,
    node=Node,
    accumulate=AccumulateGrad,
    saved_output=SavedOutput,
    view=VIEW,
    live_node=live_node,
    keep=keep,
    cpu=CPU,
    float32=DTYPES["float32"],
    float64=DTYPES["float64"],
    bool_=DTYPES["bool"],
    int64=DTYPES["int64"],
    differentiable=tuple(kind for kind in DTYPES.values() if kind.category > 1),
    memory_format=memory_format,
    strided=strided,
)


def _refusal(error: TypeError, function: Any, ops: tuple, args: tuple, kwargs: dict, form: tuple) -> TypeError:
    """The error of a call of a generated function that ended in a TypeError; see _dispatch/refusals.py."""
    from .._dispatch.refusals import refusal

    return refusal(error, function.__name__, ops, args, kwargs, *form)


_errors, _quiet = plans.quiet_errors()
_bfloat16 = _dtype.bfloat16.np or np.dtype("V2")  # without ml_dtypes one that no tensor has
native.connect_meta(payload=MetaPayload, storage=MetaStorage, device=META)
native.connect_making(dtype=_dtype.dtype, namespace=vars(_dtype), bfloat16=_bfloat16, kinds=_dtype.FROM_NUMPY)


def _late(member: Any) -> Any:
    """A member that is made when it is first used, as a function that may be called at any time."""
    return (
        (lambda self, *args, **kwargs: member.resolve()(self, *args, **kwargs))
        if isinstance(member, LazyMethod)
        else member
    )


_IN_C = ("size", "stride", "numel", "nelement", "device", "detach", "contiguous", "element_size", "storage_offset")
for _name, _member in native.members(Tensor, {name: _late(vars(Tensor)[name]) for name in _IN_C}).items():
    if native.extension is not None:
        setattr(Tensor, _name, _member)


def mark_view(view: Tensor) -> None:
    """Let a view of a tensor without history look at its base again later."""
    if view._dtype.category > 1:
        view._node = VIEW


def mark_inference_views(views: tuple, source: Tensor) -> None:
    """Let views that are made in inference mode of a normal tensor be leaves that require a gradient as it does."""
    if requires_grad(source):
        for view in views:
            if view._dtype.category > 1:
                view._node = AccumulateGrad(view)
                follow_epoch(view, source if view._base is None else view._base)


native.connect_road(
    learn=plans.learn,
    refusal=_refusal,
    errors=_errors,
    quiet=_quiet,
    bfloat16=_bfloat16,
    generator=Generator,
    mark_views=mark_inference_views,
)


kinds.history = sys.modules[__name__]


def snapshot(target: Tensor) -> Tensor:
    """The values and history that a tensor has before it is written to."""
    data, where = target._payload, target.device
    if data.__class__ is PendingPayload and data.is_pending:
        with no_grad():
            kept = ops.clone(wrap(data, target._dtype))._payload
    elif where.type == "cpu":
        data = settled(target)
        kept = data.copy()
    else:
        data = settled(target)
        kept = backends.empty(tuple(data.shape), None, target._dtype, where)
        if data.size:
            backends.backend_of(where).copy(kept, data)
    copied = wrap(kept, target._dtype)
    node = target._node
    if isinstance(node, Node):
        from .node import live_node

        copied._node = live_node(target)
        copied._nr = target._nr
    return copied


def snapshot_view(target: Tensor) -> Tensor:
    """The geometry and history that a tensor has before its own geometry changes."""
    before = wrap(target._payload, target._dtype)
    before._node = live_node(target)
    if target._nr:
        before._nr = target._nr
    return before


def copy_(target: Tensor, source: Tensor) -> Tensor:
    """Write `source` into `target`, recorded."""
    return ops.copy_(target, source)


def run_forward(op: Any, args: tuple, out: Any) -> Any:
    """Run an operator inside a dual level; NotImplemented when no argument has a tangent."""
    return above("forward").run(op, args, out)


def run_forward_inplace(op: Any, args: tuple) -> Any:
    """`run_forward` of the in-place form."""
    return above("forward").run_inplace(op, args)
