"""The axes of operators by their kind: what the schema says of all that are pointwise, of views, and of rules by their word `batch`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._rules.spec import ViewSpec
from ._axes import LINEAR, SAME, TERMS, UNREAD, Axis, Call, Operand, dim_of
from .locals import by_shape

_DIMS = frozenset("dim dims dim0 dim1 dim2 axis0 axis1 start_dim end_dim source destination dimension".split())


def elements(call: Call) -> list[Axis]:
    """An element of the result depends on the elements at its place, of tensors that broadcast."""
    shape = call.shapes[0]
    found = []
    if shape is None:
        return []
    for dim, size in enumerate(shape):
        inputs = {}
        for operand in call.operands:
            own = dim - len(shape) + operand.ndim
            if own >= 0 and operand.shape[own] == size:
                inputs[operand] = own
        if inputs and size != 1:
            found.append(Axis(inputs, call.outputs(dim)))
    return found + linear(call)


def linear(call: Call) -> list[Axis]:
    """What the tags say of terms: `linear` in all tensors together, or `multilinear`, in each of them by itself."""
    if "linear" in call.op.tags and not _numbers(call):
        return [Axis(dict.fromkeys(call.operands, LINEAR), call.outputs(SAME))]
    if "multilinear" in call.op.tags:
        return [Axis({operand: LINEAR}, call.outputs(SAME)) for operand in call.operands]
    return []


def _numbers(call: Call) -> bool:
    """Whether a number stands for a tensor."""
    return any(call.given[n] is not None and not isinstance(call.given[n], (Operand, list)) for n in call.op.tensors)


def _named(call: Call, ndim: int) -> set[int]:
    """The dimensions that are named; all of them where none is."""
    found: set[int] = set()
    said = False
    for param, value in zip(call.op.params, call.given):
        if param.name in _DIMS and value is not None:
            given = value if isinstance(value, (list, tuple)) else [value]
            found |= {dim_of(dim, ndim) for dim in given}
            said = said or bool(given)
    return found if said else set(range(ndim))


def along(call: Call) -> list[Axis]:
    """All tensors have the same number of dimensions, of which some are named; the others are as they are, and in order."""
    return list(_others(call))


def _others(call: Call) -> Any:
    if not call.operands or any(shape is None for shape in call.shapes):
        return
    ndim = call.operands[0].ndim
    if any(operand.ndim != ndim for operand in call.operands):
        return
    named = _named(call, ndim)
    left = [dim for dim in range(ndim) if dim not in named]
    for dim in left:
        size = call.operands[0].shape[dim]
        outputs = []
        for shape in call.shapes:
            own = dim if len(shape) == ndim else left.index(dim) if len(shape) == len(left) else None  # type: ignore[arg-type]
            if own is None or shape[own] != size:  # type: ignore[index]
                return
            outputs.append(own)
        if size != 1 and all(operand.shape[dim] == size for operand in call.operands):
            yield Axis(dict.fromkeys(call.operands, dim), tuple(outputs))


def reduced(call: Call, terms: Any, even: bool = False, filled: bool = False, linear: bool = False) -> list[Axis]:
    """`along` of a reduction, whose parts in the dimensions that are reduced are terms."""
    [operand] = call.operands
    found = along(call)
    for dim in sorted(_named(call, operand.ndim)) if operand.ndim else ():
        if operand.shape[dim] > 1:
            found.append(Axis({operand: dim}, call.outputs(terms), even=even, filled=filled))
    if linear:
        found.append(Axis({operand: LINEAR}, call.outputs(SAME)))
    return found


def leading(call: Call, number: int = 2) -> list[Axis]:
    """The last two dimensions, or as many as are said, belong together; those before them are as they are."""
    ndim = call.operands[0].ndim
    shapes = [operand.shape for operand in call.operands] + [shape for shape in call.shapes if shape is not None]
    found = []
    for dim in range(ndim - number):
        size = call.operands[0].shape[dim]
        if size != 1 and all(len(shape) > dim and shape[dim] == size for shape in shapes):
            if all(operand.ndim == ndim for operand in call.operands):
                found.append(Axis(dict.fromkeys(call.operands, dim), call.outputs(dim)))
    return found + linear(call)


def joined(call: Call, dim: int, new: bool) -> list[Axis]:
    """Tensors that are joined in a dimension, or in a new one."""
    ndim = call.operands[0].ndim
    if any(operand.ndim != ndim for operand in call.operands):
        return []
    dim = dim_of(dim, ndim + new)
    found = []
    for own in range(ndim):
        if own != dim or new:
            found.append(Axis(dict.fromkeys(call.operands, own), (own + (new and own >= dim),)))
    return [*found, Axis(dict.fromkeys(call.operands, TERMS), (SAME,))]


def view(call: Call) -> list[Axis]:
    """A view: each dimension of the result that spans the same memory as one of the tensor's, where that is contiguous, is divided as it is."""
    [operand] = call.operands
    found = [Axis({operand: TERMS}, call.outputs(SAME))]
    if not operand.shape or 0 in operand.shape:
        return found
    stand_in = torch.empty(operand.shape, dtype=operand.dtype, device="meta")
    given = [stand_in if value is operand else value for value in call.given]
    assert call.op.meta is not None
    spec = call.op.meta(*given)
    specs = spec if isinstance(spec, (list, tuple)) else [spec]
    if any(shape is None for shape in call.shapes):
        return found
    pairs = [matches(operand.shape, one) for one in specs]
    for dim in range(operand.ndim):
        outputs = [pair.get(dim) for pair in pairs]
        if operand.shape[dim] > 1 and outputs and None not in outputs:
            equal = all(tuple(one.shape)[out[0]] == operand.shape[dim] for one, out in zip(specs, outputs))  # type: ignore[index]
            local = by_shape if _keeps_order(operand, specs) else None
            found.append(Axis({operand: dim}, tuple(out[0] for out in outputs), even=not equal, local=local))  # type: ignore[index]
    return found


def _keeps_order(operand: Operand, specs: Sequence[Any]) -> bool:
    """Whether the result has all of a contiguous tensor's elements in their order, so that its shape says all."""
    size = tuple(specs[0].shape)
    if len(specs) != 1 or math.prod(size) != math.prod(operand.shape):
        return False
    expected = _contiguous(size)
    steps = tuple(specs[0].stride) if isinstance(specs[0], ViewSpec) else expected
    return all(count == 1 or step == wanted for count, step, wanted in zip(size, steps, expected))


def matches(shape: Sequence[int], spec: Any) -> dict[int, tuple[int, ...]]:
    """By dimension of a contiguous tensor, that of its view which spans the same memory from the same place on; `shape` alone says the view where it is a copy."""
    strides = _contiguous(shape)
    size = tuple(spec.shape)
    steps = tuple(spec.stride) if isinstance(spec, ViewSpec) else _contiguous(size)
    found: dict[int, tuple[int, ...]] = {}
    for dim, (count, step) in enumerate(zip(shape, strides)):
        for own, (size_there, step_there) in enumerate(zip(size, steps)):
            if (
                size_there > 1
                and size_there * step_there == count * step
                and (step_there == step or _dense(own, size, steps, step, dim))
            ):
                found.setdefault(dim, (own,))
    return found


def _dense(own: int, size: Sequence[int], steps: Sequence[int], step: int, dim: int) -> bool:
    """Whether what lies within a step of a view's dimension is all of what a contiguous tensor has there, in order."""
    inner = 1
    for count, there in zip(reversed(size[own + 1 :]), reversed(steps[own + 1 :])):
        if count > 1 and there != inner:
            return False
        inner *= count
    return inner == steps[own]


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def unread(call: Call) -> list[Axis]:
    """The tensor's elements are not read."""
    return [Axis(dict.fromkeys(call.operands, UNREAD), call.outputs(None))]
