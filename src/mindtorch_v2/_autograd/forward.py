"""Forward mode: tangents that go along with tensors through operators.

Note [Tangents]
While a dual level is entered, `TLS.tangents` holds the tangent of every tensor that has one, and the dispatcher asks `run` and `run_inplace` first. The
tangents of views are views of tangents. Those of other operators come from the derivative that the schema says: a pull-back is linear in its cotangent,
so its own pull-back, in the direction of the arguments' tangents, is the push-forward. No operator needs a second formula.

The operator runs on leaves that stand for its dual arguments: views of them where something outside asks for a history (then tangents have one too),
detached aliases otherwise. Where the result has a history, the operator runs a second time on the arguments themselves, so that what its node saves
has tangents in a backward pass inside the level: tensors are held by the table until the level ends, and a saved result finds its own there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._dispatch import dispatcher, ops, overlap
from .._dispatch.below import alias
from .._dispatch.operator import Operator
from .._payload import offset_of, stride_of
from .._state import DISPATCHING, TLS
from .._tensor import Tensor, wrap
from .api import grad
from .node import requires_grad


class Tangents:
    """Tangents by tensor."""

    def __init__(self) -> None:
        self.table: dict[int, tuple[Tensor, Tensor]] = {}
        self.enabled = True
        self.paused = False  # while a primal result is computed

    def own(self, tensor: Tensor) -> Tensor | None:
        """The tangent that was given to this very tensor."""
        entry = self.table.get(id(tensor))
        return None if entry is None else entry[1]

    def of(self, tensor: Tensor) -> Tensor | None:
        """The tangent of a tensor; that of a view may be a part of its base's."""
        found = self.own(tensor)
        if found is None and tensor._base is not None:
            base = self.own(tensor._base)
            if base is not None:
                found = _part(base, tensor)
                self.set(tensor, found)
        return found

    def set(self, tensor: Tensor, tangent: Tensor) -> None:
        """Give a tensor its tangent."""
        self.table[id(tensor)] = (tensor, tangent)

    def forget(self, tensor: Tensor) -> None:
        """Take a tensor's tangent away."""
        self.table.pop(id(tensor), None)


class suspended:
    """Inside, tangents take no part."""

    def __enter__(self) -> None:
        self.before = TLS.tangents, TLS.grad_enabled
        TLS.tangents = None

    def __exit__(self, *exc: object) -> None:
        TLS.tangents, TLS.grad_enabled = self.before


def _part(base_tangent: Tensor, view: Tensor) -> Tensor:
    """The part of a base's tangent that belongs to a view of the base."""
    base = view._base
    assert base is not None
    offset = base_tangent.storage_offset() + offset_of(view._payload) - offset_of(base._payload)
    with suspended():
        return ops.as_strided(base_tangent, tuple(view.shape), stride_of(view._payload), offset)


def _tensors(args: tuple) -> list[Tensor]:
    found = []
    for value in args:
        if isinstance(value, Tensor):
            found.append(value)
        elif value.__class__ is list:
            found += [item for item in value if isinstance(item, Tensor)]
    return found


def _mapped(args: tuple, change: Callable) -> tuple:
    return tuple(
        change(v)
        if isinstance(v, Tensor)
        else [change(i) if isinstance(i, Tensor) else i for i in v]
        if v.__class__ is list
        else v
        for v in args
    )


def run(op: Operator, args: tuple, out: Any) -> Any:
    """The result of an operator some of whose arguments have tangents, with its own; NotImplemented when none has."""
    tangents = TLS.tangents
    if (
        tangents.paused
        or not tangents.enabled
        or TLS.inference
        or not any(tangents.of(t) is not None for t in _tensors(args))
    ):
        return NotImplemented
    if out is not None:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.label}_out that does not support it because it is an out= function"
        )
    if "detach" in op.tags or (op.record is None and not op.is_view):
        return NotImplemented
    if op.is_view:
        with suspended():
            result = dispatcher._call(op, args, None)
            moved = dispatcher.call_converted(op, (tangents.of(args[0]), *args[1:]))  # of an example of a batch, too
        _set_all(tangents, result, moved)
        return result
    try:
        results, moved = pushed(lambda given: dispatcher._call(op, given, None), args)
    except NotImplementedError as error:
        if not str(error).startswith("the derivative for"):
            raise
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name} that does not support it because it has not been implemented yet.\nPlease file an issue "
            "to PyTorch at https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can prioritize its "
            "implementation or submit a PR adding the implementation to derivatives.yaml"
        ) from error
    if "random" not in op.tags and any(isinstance(r, Tensor) and requires_grad(r) for r in _several(results)):
        tangents.paused = True
        try:
            results = dispatcher._call(op, args, None)
        finally:
            tangents.paused = False
    _set_all(tangents, results, moved)
    return results


def _set_all(tangents: Tangents, results: Any, moved: Any) -> None:
    for result, tangent in zip(_several(results), _several(moved)):
        if tangent is not None:
            tangents.set(result, tangent)


def _several(value: Any) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def pushed(function: Callable, args: tuple) -> tuple[Any, tuple]:
    """(result, tangents of the results) of a function of the arguments; see Note [Tangents]."""
    tangents = TLS.tangents
    before = TLS.grad_enabled
    given = _tensors(args)
    primal_history = before and any(requires_grad(t) for t in given)
    history = primal_history or (before and any(requires_grad(d) for t in given if (d := tangents.of(t)) is not None))
    leaves: list[Tensor] = []
    directions: list[Tensor] = []

    def stand_in(tensor: Tensor) -> Tensor:
        direction = tangents.of(tensor)
        if direction is None:
            return tensor if history or tensor._node is None else _bare(tensor)
        connected = history and requires_grad(tensor)
        with suspended():
            leaf = tensor.view_as(tensor) if connected else _bare(tensor).requires_grad_()
        leaves.append(leaf)
        directions.append(direction)
        return leaf

    replaced = _mapped(args, stand_in)
    with suspended():
        TLS.grad_enabled = True
        result = function(replaced)
        outs = _several(result)
        live = [o for o in outs if isinstance(o, Tensor) and requires_grad(o)]
        moved = _push(live, leaves, directions, history)
    found = [moved.get(id(o)) for o in outs]
    if not primal_history:
        bare = [_bare(o) if isinstance(o, Tensor) and o._node is not None else o for o in outs]
        result = _like(result, bare)
    return result, tuple(found)


def _bare(tensor: Tensor) -> Tensor:
    if tensor.__class__ in DISPATCHING:
        return alias(tensor)
    return wrap(tensor._payload, tensor._dtype)


def _like(result: Any, items: list) -> Any:
    """Items in the container of a result."""
    if isinstance(result, Tensor):
        return items[0]
    if isinstance(result, tuple) and type(result) is not tuple:
        return type(result)(items)
    return type(result)(items)


def _push(outputs: list, leaves: list, directions: list, history: bool) -> dict:
    """Tangents of the outputs, by id."""
    found: dict[int, Tensor] = {}
    for out in outputs:
        seed = ops.zeros_like(out).requires_grad_()
        pulled = grad((out,), leaves, (seed,), retain_graph=True, create_graph=True, allow_unused=True)
        pairs = [(p, d) for p, d in zip(pulled, directions) if p is not None and requires_grad(p)]
        if not pairs:
            found[id(out)] = ops.zeros_like(out).detach()
            continue
        roots, seeds = zip(*pairs)
        seeds = [ops._to_copy(d, dtype=p._dtype) if d._dtype is not p._dtype else d for p, d in zip(roots, seeds)]
        (tangent,) = grad(roots, (seed,), seeds, retain_graph=True, create_graph=history, allow_unused=True)
        if tangent is not None and any(overlap.shares_memory(tangent._payload, d._payload) for d in directions):
            tangent = ops.clone(tangent)  # a result that is written to must not change its argument's
        found[id(out)] = ops.zeros_like(out).detach() if tangent is None else tangent
    return found


def run_inplace(op: Operator, args: tuple) -> Any:
    """The in-place form of an operator some of whose arguments have tangents; NotImplemented when none has."""
    tangents = TLS.tangents
    target = args[0]
    if tangents.paused or not tangents.enabled or not any(tangents.of(t) is not None for t in _tensors(args)):
        return NotImplemented
    own = tangents.of(target)
    if op.record is None:
        with suspended():
            result = dispatcher.call_inplace(op, args, converted=True)
            if own is not None and not op.name.endswith("_"):  # what has no other form changes beside the derivative
                own.zero_()
        return result
    if op.is_view:  # squeeze_ and its kin
        with suspended():
            result = dispatcher.call_inplace(op, args, converted=True)
            if own is not None:
                dispatcher.call_inplace(op, (own, *args[1:]), converted=True)
        return result

    def on_copy(given: tuple) -> Tensor:
        return dispatcher.call_inplace(op, (ops.clone(given[0]), *given[1:]), converted=True)

    _, (tangent,) = pushed(on_copy, args)
    with suspended():
        result = dispatcher.call_inplace(op, args, converted=True)
        if tangent is not None:
            give(tangents, target, tangent)
    return result


def give(tangents: Tangents, target: Tensor, tangent: Tensor) -> None:
    """Make something the tangent of a tensor that was written to: into the memory of the tangent that it has, or of its base's."""
    own = tangents.own(target)
    if own is not None:
        ops.copy_(own, tangent)
        return
    base = target._base
    if base is None:
        tangents.set(target, tangent)
        return
    whole = tangents.own(base)
    if whole is None:
        whole = ops.empty_strided(tuple(base.shape), stride_of(base._payload), dtype=base._dtype, device=base.device)
        tangents.set(base, ops.zero_(whole))
    part = _part(whole, target)
    ops.copy_(part, tangent)
    tangents.set(target, part)
