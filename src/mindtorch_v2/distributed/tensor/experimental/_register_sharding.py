"""How ranks may divide an operator among them, where a program knows what the schema does not say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...placements import Placement, Replicate, Shard
from .._axes import Axis, Call, Operand
from .._dispatch import REGISTERED

__all__ = ["register_sharding"]


def register_sharding(op: Any) -> Callable[[Callable], Callable]:
    """Say how the ranks of a dimension of the mesh may divide a call of an overload, or of each of a list, in place of what the library takes for it.

    The decorated function gets what the call gets, with something that has `shape` and `ndim` for each tensor. It gives a list of pairs: the placements of the results, and those of
    the arguments (None of what is no tensor). The pair that moves the fewest bytes is taken; whole tensors on every rank may always be.

    ```python
    @register_sharding(torch.ops.aten._softmax.default)
    def softmax_sharding(x, dim, half_to_float):
        others = [d for d in range(x.ndim) if d != dim % x.ndim]
        return [([Replicate()], [Replicate(), None, None])] + [([Shard(d)], [Shard(d), None, None]) for d in others]
    ```

    ValueError, at the call: for another number of placements than there are results or arguments.
    """

    def register(function: Callable) -> Callable:
        for overload in op if isinstance(op, (list, tuple)) else [op]:
            packet = getattr(overload, "_overloadpacket", None)
            if packet is None or not packet._operators:
                raise NotImplementedError(
                    f"{overload} is none of the library's operators, which DTensors are computed with"
                )
            name = overload._overloadname
            named = [one for one in packet._operators if (one.overload or "default") == name]
            for one in named or packet._operators:
                REGISTERED[one.full_name] = lambda call: [_axis(call, *pair) for pair in _asked(function, call)]
        return function

    return register


def _asked(function: Callable, call: Call) -> Any:
    pairs = list(zip(call.op.params, call.given))
    plain = [value for param, value in pairs if not param.keyword]
    named = {param.name: value for param, value in pairs if param.keyword}
    return function(*plain, **named)


def _axis(call: Call, outputs: Sequence[Placement | None], inputs: Sequence[Placement | None]) -> Axis:
    """The pair as an axis: dimensions by their numbers, so that it is looked at whether they may be divided."""
    if len(outputs) != call.count or len(inputs) != len(call.given):
        raise ValueError(
            f"{call.op.full_name} has {call.count} results and {len(call.given)} arguments, its sharding placements for {len(outputs)} and {len(inputs)}"
        )
    wanted: dict[Operand, Any] = {}
    for value, placement in zip(call.given, inputs):
        for operand in value if isinstance(value, list) else [value]:
            if isinstance(operand, Operand) and not isinstance(placement, (Replicate, type(None))):
                wanted[operand] = _number(placement, operand.ndim)
    shapes = [None if shape is None else len(shape) for shape in call.shapes]
    made = tuple(
        None if placement is None or isinstance(placement, Replicate) else _number(placement, ndim)
        for placement, ndim in zip(outputs, shapes)
    )
    return Axis(wanted, made)


def _number(placement: Placement | None, ndim: int | None) -> Any:
    if type(placement) is Shard:
        return placement.dim % ndim if ndim else placement.dim
    return placement
