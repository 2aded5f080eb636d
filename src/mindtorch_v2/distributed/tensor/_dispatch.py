"""How an operator runs on sharded tensors: its axes are chosen, its tensors moved to where these ask for them, and it runs on the pieces.

Note [What runs where]
Every operator takes one of these roads. One with axes (generated/sharding.py, of what the schema says of it) runs on the pieces. One that draws numbers draws those of the whole tensor on each
rank: see Note [The same numbers on every rank]. All others run on whole tensors, which every rank gathers, and give whole tensors: slower, and right. What is written to stays where it lies, so
that an operator in place whose result would lie elsewhere is computed on whole tensors, and each rank takes its piece.
"""

from __future__ import annotations

import functools
import importlib
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._dispatch import dispatcher
from ..._dispatch.operator import Operator
from ..._dispatch.resolver import resolve
from ..._dispatch.return_types import return_type
from ..._tensor import Tensor
from ..device_mesh import DeviceMesh
from ..placements import Placement, Replicate, Shard
from . import _random
from ._axes import UNREAD, Axis, Call, Operand
from ._redistribute import redistribute
from ._spec import DTensorSpec, TensorMeta, contiguous_strides, local_part
from ._strategy import Chosen, Here, choose
from .locals import classes

_SIZES = ("size", "shape", "input_sizes", "sizes")

REGISTERED: dict[str, Callable[[Call], list[Axis]]] = {}
"""What programs say of operators: see `experimental.register_sharding`."""

replicating = threading.local()
"""`on` is True inside `implicit_replication`: tensors that are not sharded are taken for whole ones. So they are inside `loss_parallel`, where targets and weights are plain ones."""


@functools.cache
def _tables() -> tuple[dict[str, Callable], dict[str, Callable]]:
    generated = importlib.import_module("mindtorch_v2._generated.sharding")  # which stands above the rules
    return generated.RULES, generated.KINDS


def _axes(call: Call) -> list[Axis]:
    rules, kinds = _tables()
    name = call.op.full_name
    if name in REGISTERED:
        return REGISTERED[name](call)
    if name in rules:
        return rules[name](call, *call.given)
    return kinds[name](call) if name in kinds and call.operands else []


def dispatch(kind: type, func: Any, args: tuple, kwargs: dict) -> Any:
    """Run an overload on arguments of which some are of the class `kind`, DTensor."""
    packet = func._overloadpacket
    if not packet._operators:  # the element of a tensor of one element
        return func(args[0].full_tensor(), *args[1:], **kwargs)
    out = kwargs.pop("out", None)
    op, given = resolve(packet._operators, args, kwargs)
    inplace = packet._inplace
    if out is not None:
        result = _run(kind, op, given, False)
        for buffer, one in zip(*(x if isinstance(x, (list, tuple)) else (x,) for x in (out, result))):
            buffer.copy_(one)
        return out
    if op.base is not None:
        return _each(func, op, given, inplace or op.is_inplace)
    return _run(kind, op, given, inplace or op.is_inplace)


def _each(func: Any, op: Operator, given: tuple, inplace: bool) -> Any:
    """An operator of lists, tensor by tensor."""
    base = op.base
    assert base is not None
    lists = [value for value in given if isinstance(value, (list, tuple))]
    results = []
    for row in range(len(lists[0])):
        one = [value[row] if isinstance(value, (list, tuple)) else value for value in given]
        named = {p.name: value for p, value in zip(op.params, one) if p.keyword}
        plain = [value for p, value in zip(op.params, one) if not p.keyword]
        name = base.name + "_" if inplace and not base.is_inplace else base.name
        results.append(getattr(torch.ops.aten, name)(*plain, **named))
    return given[0] if inplace else results


def _run(kind: type, op: Operator, given: tuple, inplace: bool) -> Any:
    mesh = _mesh_of(kind, op, given)
    given = tuple(_raised(kind, op, value, mesh) for value in given)
    tensors: list[Any] = []
    call = _call(kind, op, given, tensors)
    if "random" in op.tags:
        return _drawn(kind, call, tensors, mesh, inplace)
    if inplace and tensors[0].__dict__.get("_copied"):
        raise RuntimeError(
            f"{op.name}_: this view of a sharded tensor is a copy, since its dimensions had to be gathered, so that what is written would be lost; "
            "redistribute the tensor before taking the view"
        )
    target = tensors[0]._spec.placements if inplace else None
    chosen = choose(call, mesh, _axes(call), target)
    if chosen is None:
        return _written(kind, call, tensors)
    pieces = [_piece(t, places) for t, places in zip(tensors, chosen.inputs)]
    result = _on_pieces(call, mesh, chosen, pieces, inplace)
    if inplace:
        return given[0]
    made = _wrapped(kind, call, mesh, chosen.outputs, result)
    if op.is_view and (pieces[0] is not tensors[0]._local_tensor or tensors[0].__dict__.get("_copied")):
        for one in made if isinstance(made, (list, tuple)) else (made,):
            one._copied = True
    return made


def write_at(tensor: Any, index: Any, value: Any) -> None:
    """`tensor[index] = value`: each rank writes it to the whole tensor, and takes its piece."""
    if torch.is_grad_enabled() and (tensor.requires_grad or (isinstance(value, Tensor) and value.requires_grad)):
        raise NotImplementedError("writing to elements of a sharded tensor is not recorded for gradients")

    def plain(one: Any) -> Any:
        if isinstance(one, tuple):
            return tuple(plain(item) for item in one)
        return _whole(one) if hasattr(one, "_spec") else one

    whole = _whole(tensor).clone()
    whole[plain(index)] = plain(value)
    _store(tensor, whole, tensor._spec)


def _tensors_of(op: Operator, given: tuple) -> Any:
    for index in op.tensors:
        value = given[index]
        yield from (value if isinstance(value, (list, tuple)) else (value,))


def _mesh_of(kind: type, op: Operator, given: tuple) -> DeviceMesh:
    mesh = None
    for value in _tensors_of(op, given):
        if isinstance(value, kind):
            if mesh is not None and value._spec.mesh != mesh:  # type: ignore[attr-defined]
                raise RuntimeError(
                    f"{op.full_name}: DTensors on different meshes: {mesh} and {value._spec.mesh}"  # type: ignore[attr-defined]
                )
            mesh = mesh or value._spec.mesh  # type: ignore[attr-defined]
    assert mesh is not None
    return mesh


def _raised(kind: type, op: Operator, value: Any, mesh: DeviceMesh) -> Any:
    """An argument with each tensor as a DTensor: one without dimensions is taken for a whole one on every rank. RuntimeError for all others."""
    if isinstance(value, (list, tuple)):
        return [_raised(kind, op, item, mesh) for item in value]
    if not isinstance(value, Tensor) or isinstance(value, kind):
        return value
    if value.numel() == 1 and value.dim() == 1:
        warnings.warn(
            "Found a non-scalar tensor with numel=1 and ndim!=0, we are implicitly creating a replicated DTensor for it. "
            "However, please consider changing it to a scalar tensor or explicitly create a DTensor under distributed environment."
        )
    elif value.dim() and not (getattr(replicating, "on", False) or getattr(classes, "on", False)):
        raise RuntimeError(
            f"aten.{op.name}.{op.overload or 'default'} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
            "distributed operators! Please see https://docs.pytorch.org/docs/main/distributed.tensor.html#mixed-tensor-and-dtensor-operations for more details."
        )
    return _made(kind, value, mesh, [Replicate()] * mesh.ndim)


def _made(kind: type, local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], meta: Any = None) -> Any:
    if meta is None:
        meta = TensorMeta(torch.Size(local.shape), tuple(local.stride()), local.dtype)
    return kind(local, DTensorSpec(mesh, tuple(placements), meta), requires_grad=False)


def _call(kind: type, op: Operator, given: tuple, tensors: list[Any]) -> Call:
    operands: list[Operand] = []

    def stand_in(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [stand_in(item) for item in value] if any(isinstance(item, kind) for item in value) else value
        if not isinstance(value, kind):
            return value
        spec = value._spec  # type: ignore[attr-defined]
        operands.append(Operand(len(operands), spec.shape, value.dtype, spec.placements))
        tensors.append(value)
        return operands[-1]

    stood = tuple(stand_in(value) for value in given)
    assert op.meta is not None
    spec = op.meta(*given)  # what is wrong with the arguments, as a whole tensor's call says it
    specs = spec if isinstance(spec, (list, tuple)) else [spec]
    return Call(op, stood, operands, specs)


def _piece(tensor: Any, placements: Sequence[Placement]) -> Tensor:
    spec = tensor._spec
    return redistribute(tensor._local_tensor, spec.shape, spec.mesh, spec.placements, placements)


def _in_place_of(value: Any, pieces: list[Tensor]) -> Any:
    if isinstance(value, Operand):
        return pieces[value.number]
    return [_in_place_of(item, pieces) for item in value] if isinstance(value, list) else value


def _on_pieces(call: Call, mesh: DeviceMesh, chosen: Chosen, pieces: list[Tensor], inplace: bool) -> Any:
    op = call.op
    args = tuple(_in_place_of(value, pieces) for value in call.given)
    if chosen.is_whole:
        return _plain(op, args, inplace)
    place = mesh.get_coordinate()
    if place is None:  # not a rank of the mesh
        return None
    whole = call.shapes[0] if call.count else None
    shape = None if whole is None else local_part(whole, mesh.shape, chosen.outputs[0], place)[0]
    special = next((axis.local for axis in chosen.axes if axis.local is not None), None)
    if special is not None:

        def offsets(number: int) -> tuple[int, ...]:
            return local_part(call.operands[number].shape, mesh.shape, chosen.inputs[number], place)[1]

        return special(Here(op, mesh, chosen.axes, offsets, lambda given: _plain(op, given, False), shape), args)
    if not inplace and call.count == 1 and shape is not None:
        args = tuple(
            shape if p.name in _SIZES and p.is_list and len(value) == len(shape) else value
            for p, value in zip(op.params, args)
        )
    return _plain(op, args, inplace)


def _plain(op: Operator, args: tuple, inplace: bool) -> Any:
    if inplace or op.is_inplace:
        return dispatcher.call_inplace(op, args, converted=True)
    return dispatcher.call_converted(op, args)


def _wrapped(kind: type, call: Call, mesh: DeviceMesh, placements: Sequence[Sequence[Placement]], result: Any) -> Any:
    if not isinstance(result, (list, tuple)):
        return _wrap_one(kind, call, mesh, placements, result, 0)
    made = [_wrap_one(kind, call, mesh, placements, one, number) for number, one in enumerate(result)]
    return made if isinstance(result, list) else return_type(call.op, made) if len(call.op.returns) > 1 else tuple(made)


def _wrap_one(kind: type, call: Call, mesh: DeviceMesh, placements: Any, local: Any, number: int) -> Any:
    if not isinstance(local, Tensor):
        return local
    meta = None
    if number < call.count and call.shapes[number] is not None:
        spec, shape = call.specs[number], call.shapes[number]
        strides = spec.stride if spec.stride is not None else contiguous_strides(shape)
        meta = TensorMeta(torch.Size(shape), tuple(strides), local.dtype)
    return _made(kind, local, mesh, placements[number] if number < call.count else [Replicate()] * mesh.ndim, meta)


def _whole(tensor: Any) -> Tensor:
    return _piece(tensor, [Replicate()] * tensor._spec.mesh.ndim)


def _written(kind: type, call: Call, tensors: list[Any]) -> Any:
    """What an operator in place gives whole tensors, of which each rank writes its piece."""
    pieces = [_whole(tensor) for tensor in tensors]
    spec = tensors[0]._spec
    args = [_in_place_of(value, pieces) for value in call.given]
    args[0] = args[0].clone()
    _store(tensors[0], _plain(call.op, tuple(args), True), spec)
    return tensors[0]


def _store(tensor: Any, whole: Tensor, spec: DTensorSpec) -> None:
    local = redistribute(whole, spec.shape, spec.mesh, [Replicate()] * spec.mesh.ndim, spec.placements)
    tensor._local_tensor.copy_(local)


def _drawn(kind: type, call: Call, tensors: list[Any], mesh: DeviceMesh, inplace: bool) -> Any:
    """See Note [The same numbers on every rank]."""
    _random.align(mesh)
    op = call.op
    if op.name == "native_dropout":
        return _dropped(kind, call, tensors[0], mesh)
    unread = any(UNREAD in axis.inputs.values() for axis in _axes(call))
    pieces = []
    for tensor in tensors:
        if unread:
            pieces.append(_like_whole(tensor))
        else:
            pieces.append(_whole(tensor).clone() if inplace else _whole(tensor))
    args = tuple(_in_place_of(value, pieces) for value in call.given)
    result = _plain(op, args, inplace)
    if inplace:
        _store(tensors[0], result, tensors[0]._spec)
        return tensors[0]
    source = tensors[0]._spec.placements
    outputs = []
    for shape in call.shapes:
        same = shape == tuple(tensors[0].shape)
        outputs.append([p if same and isinstance(p, Shard) else Replicate() for p in source])
    whole = [Replicate()] * mesh.ndim
    results = result if isinstance(result, (list, tuple)) else [result]
    cut = [redistribute(one, one.shape, mesh, whole, places) for one, places in zip(results, outputs)]
    return _wrapped(kind, call, mesh, outputs, type(result)(cut) if isinstance(result, (list, tuple)) else cut[0])


def _like_whole(tensor: Any) -> Tensor:
    """A plain tensor with the shape and strides of the whole one."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor._local_tensor.device)


def _dropped(kind: type, call: Call, tensor: Any, mesh: DeviceMesh) -> Any:
    places = [p if isinstance(p, Shard) else Replicate() for p in tensor._spec.placements]
    local = _piece(tensor, places)
    ones = _like_whole(tensor).fill_(1)  # in the memory's order, in which numbers are drawn
    factors, mask = _plain(call.op, (ones, *call.given[1:]), False)
    whole = [Replicate()] * mesh.ndim
    factors, mask = (redistribute(one, tensor.shape, mesh, whole, places) for one in (factors, mask))
    return _wrapped(kind, call, mesh, [places, places], (local * factors, mask))
