"""Collectives as functions: each rank of a process group, which is given by its name or is the object, gets a result of its own.

They are done when they return. On the meta device, and in fake groups, nobody is asked: results have their shapes. Derivatives are collectives too, so all ranks of a group call backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2._above import above
from mindtorch_v2._autograd.function import Function
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def _group(name: str, given: Any) -> Any:
    """The process group that `name`'s operator is given. RuntimeError for what is neither a name nor a group."""
    return above("process_group")(name, given)


def _options(reduce_op: str) -> Any:
    return above("reduction_options")(reduce_op)


def _copy(tensor: Tensor) -> Tensor:
    """A contiguous tensor of its own with the same elements, outside of history."""
    made = tensor.new_empty(tensor.shape)
    made.copy_(tensor.detach())
    return made


def _numbers(tensor: Tensor) -> Tensor:
    """A complex tensor as pairs of numbers, of which sums and copies are the same."""
    return F.view_as_real(tensor) if tensor.is_complex() else tensor


def _sum_alone(name: str, reduce_op: str) -> None:
    if reduce_op.lower() != "sum":
        raise RuntimeError(f"{name} backward only supports 'sum' reduction, got '{reduce_op}'")


def _reduced(tensor: Tensor, reduce_op: str, group: Any) -> Tensor:
    """Reduce in place."""
    group.allreduce([_numbers(tensor)], _options(reduce_op)).wait()
    return tensor


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, reduce_op: str, group: Any) -> Tensor:
        ctx.said = reduce_op, group
        return _reduced(_copy(input), reduce_op, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        _sum_alone("all_reduce", ctx.said[0])
        return all_reduce(grad, *ctx.said), None, None


def all_reduce(input: Tensor, reduce_op: str, group_name: Any) -> Tensor:
    """The reduction of all ranks' tensors."""
    return _AllReduce.apply(input, reduce_op, _group("all_reduce", group_name))


def all_reduce_(input: Tensor, reduce_op: str, group_name: Any) -> Tensor:
    """`all_reduce` in place."""
    return _reduced(input, reduce_op, _group("all_reduce_", group_name))


def all_reduce_coalesced(inputs: Sequence[Tensor], reduce_op: str, group_name: Any) -> list[Tensor]:
    """`all_reduce` of several tensors."""
    group = _group("all_reduce_coalesced", group_name)
    return [all_reduce(input, reduce_op, group) for input in inputs]


def all_reduce_coalesced_(inputs: Sequence[Tensor], reduce_op: str, group_name: Any) -> list[Tensor]:
    """`all_reduce_` of several tensors."""
    group = _group("all_reduce_coalesced_", group_name)
    return [all_reduce_(input, reduce_op, group) for input in inputs]


def _rows(name: str, input: Tensor) -> int:
    if not input.dim():
        raise RuntimeError(f"{name}: a tensor without dimensions has no rows to exchange")
    return input.shape[0]


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, group_size: int, group: Any) -> Tensor:
        ctx.said = group_size, group
        made = input.new_empty((_rows("all_gather_into_tensor", input) * group_size, *input.shape[1:]))
        return all_gather_out(input.detach(), group_size, group, made)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return reduce_scatter(grad, "sum", *ctx.said), None, None


def all_gather(input: Tensor, group_size: int, group_name: Any) -> Tensor:
    """All ranks' tensors, joined in the first dimension."""
    return _AllGather.apply(input, group_size, _group("all_gather_into_tensor", group_name))


def all_gather_out(input: Tensor, group_size: int, group_name: Any, out: Tensor) -> Tensor:
    """`all_gather` into a tensor that is there."""
    _group("all_gather_into_tensor_out", group_name).all_gather_single(_numbers(out), _numbers(input)).wait()
    return out


def all_gather_coalesced(inputs: Sequence[Tensor], group_size: int, group_name: Any) -> list[Tensor]:
    """`all_gather` of several tensors."""
    group = _group("all_gather_into_tensor_coalesced", group_name)
    return [all_gather(input, group_size, group) for input in inputs]


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, reduce_op: str, group_size: int, group: Any) -> Tensor:
        ctx.said = reduce_op, group_size, group
        rows = _rows("reduce_scatter_tensor", input)
        if group_size < 1 or rows % group_size:
            raise RuntimeError(f"reduce_scatter_tensor: {rows} rows cannot be divided among {group_size} ranks")
        made = input.new_empty((rows // group_size, *input.shape[1:]))
        return reduce_scatter_out(input.detach(), reduce_op, group_size, group, made)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        _sum_alone("reduce_scatter_tensor", ctx.said[0])
        return all_gather(grad, *ctx.said[1:]), None, None, None


def reduce_scatter(input: Tensor, reduce_op: str, group_size: int, group_name: Any) -> Tensor:
    """This rank's rows of the reduction of all ranks' tensors."""
    return _ReduceScatter.apply(input, reduce_op, group_size, _group("reduce_scatter_tensor", group_name))


def reduce_scatter_out(input: Tensor, reduce_op: str, group_size: int, group_name: Any, out: Tensor) -> Tensor:
    """`reduce_scatter` into a tensor that is there."""
    group = _group("reduce_scatter_tensor_out", group_name)
    group.reduce_scatter_single(_numbers(out), _numbers(input), _options(reduce_op)).wait()
    return out


def reduce_scatter_coalesced(
    inputs: Sequence[Tensor], reduce_op: str, group_size: int, group_name: Any
) -> list[Tensor]:
    """`reduce_scatter` of several tensors."""
    group = _group("reduce_scatter_tensor_coalesced", group_name)
    return [reduce_scatter(input, reduce_op, group_size, group) for input in inputs]


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, output_sizes: list[int], input_sizes: list[int], group: Any) -> Tensor:
        ctx.said = input_sizes, output_sizes, group
        rows = sum(output_sizes) if output_sizes else _rows("all_to_all_single", input)
        made = input.new_empty((rows, *input.shape[1:]))
        given = _numbers(input.detach())
        group.all_to_all_single(_numbers(made), given, output_sizes, input_sizes).wait()
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return all_to_all(grad, *ctx.said), None, None, None


def all_to_all(
    input: Tensor, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], group_name: Any
) -> Tensor:
    """The rows that each rank has for this one: as many as `output_split_sizes` says of each, or equally many."""
    return _AllToAll.apply(
        input, list(output_split_sizes), list(input_split_sizes), _group("all_to_all_single", group_name)
    )


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, src: int, group: Any) -> Tensor:
        ctx.said = src, group
        return broadcast_(_copy(input), src, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        src, group = ctx.said
        total = all_reduce(grad, "sum", group)
        return (total if group.rank() == src else total * 0), None, None


def broadcast(input: Tensor, src: int, group_name: Any) -> Tensor:
    """The tensor of rank `src` of the group."""
    return _Broadcast.apply(input, src, _group("broadcast", group_name))


def broadcast_(input: Tensor, src: int, group_name: Any) -> Tensor:
    """`broadcast` in place."""
    _group("broadcast_", group_name).broadcast([_numbers(input)], root=src).wait()
    return input
