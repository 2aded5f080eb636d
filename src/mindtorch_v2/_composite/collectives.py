"""Collectives as functions: each rank of a process group, which is given by its name, gets a result of its own.

They are done when they return. On the meta device, and in fake groups, nobody is asked: results have their shapes. Derivatives are collectives too, so all ranks of a group call backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindtorch_v2._above import above
from mindtorch_v2._autograd.function import Function
from mindtorch_v2._generated import functions as F
from mindtorch_v2._tensor import Tensor


def _group(name: str) -> Any:
    return above("process_group")(name)


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


def _reduced(tensor: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """Reduce in place."""
    _group(group_name).allreduce([_numbers(tensor)], _options(reduce_op)).wait()
    return tensor


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, reduce_op: str, group_name: str) -> Tensor:
        ctx.said = reduce_op, group_name
        return _reduced(_copy(input), reduce_op, group_name)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        _sum_alone("all_reduce", ctx.said[0])
        return all_reduce(grad, *ctx.said), None, None


def all_reduce(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """The reduction of all ranks' tensors."""
    return _AllReduce.apply(input, reduce_op, group_name)


def all_reduce_(input: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """`all_reduce` in place."""
    return _reduced(input, reduce_op, group_name)


def all_reduce_coalesced(inputs: Sequence[Tensor], reduce_op: str, group_name: str) -> list[Tensor]:
    """`all_reduce` of several tensors."""
    return [all_reduce(input, reduce_op, group_name) for input in inputs]


def all_reduce_coalesced_(inputs: Sequence[Tensor], reduce_op: str, group_name: str) -> list[Tensor]:
    """`all_reduce_` of several tensors."""
    return [all_reduce_(input, reduce_op, group_name) for input in inputs]


def _rows(name: str, input: Tensor) -> int:
    if not input.dim():
        raise RuntimeError(f"{name}: a tensor without dimensions has no rows to exchange")
    return input.shape[0]


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, group_size: int, group_name: str) -> Tensor:
        ctx.said = group_size, group_name
        made = input.new_empty((_rows("all_gather_into_tensor", input) * group_size, *input.shape[1:]))
        return all_gather_out(input.detach(), group_size, group_name, made)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return reduce_scatter(grad, "sum", *ctx.said), None, None


def all_gather(input: Tensor, group_size: int, group_name: str) -> Tensor:
    """All ranks' tensors, joined in the first dimension."""
    return _AllGather.apply(input, group_size, group_name)


def all_gather_out(input: Tensor, group_size: int, group_name: str, out: Tensor) -> Tensor:
    """`all_gather` into a tensor that is there."""
    _group(group_name).all_gather_single(_numbers(out), _numbers(input)).wait()
    return out


def all_gather_coalesced(inputs: Sequence[Tensor], group_size: int, group_name: str) -> list[Tensor]:
    """`all_gather` of several tensors."""
    return [all_gather(input, group_size, group_name) for input in inputs]


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:
        ctx.said = reduce_op, group_size, group_name
        rows = _rows("reduce_scatter_tensor", input)
        if group_size < 1 or rows % group_size:
            raise RuntimeError(f"reduce_scatter_tensor: {rows} rows cannot be divided among {group_size} ranks")
        made = input.new_empty((rows // group_size, *input.shape[1:]))
        return reduce_scatter_out(input.detach(), reduce_op, group_size, group_name, made)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        _sum_alone("reduce_scatter_tensor", ctx.said[0])
        return all_gather(grad, *ctx.said[1:]), None, None, None


def reduce_scatter(input: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:
    """This rank's rows of the reduction of all ranks' tensors."""
    return _ReduceScatter.apply(input, reduce_op, group_size, group_name)


def reduce_scatter_out(input: Tensor, reduce_op: str, group_size: int, group_name: str, out: Tensor) -> Tensor:
    """`reduce_scatter` into a tensor that is there."""
    _group(group_name).reduce_scatter_single(_numbers(out), _numbers(input), _options(reduce_op)).wait()
    return out


def reduce_scatter_coalesced(
    inputs: Sequence[Tensor], reduce_op: str, group_size: int, group_name: str
) -> list[Tensor]:
    """`reduce_scatter` of several tensors."""
    return [reduce_scatter(input, reduce_op, group_size, group_name) for input in inputs]


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, output_sizes: list[int], input_sizes: list[int], group_name: str) -> Tensor:
        ctx.said = input_sizes, output_sizes, group_name
        rows = sum(output_sizes) if output_sizes else _rows("all_to_all_single", input)
        made = input.new_empty((rows, *input.shape[1:]))
        given = _numbers(input.detach())
        _group(group_name).all_to_all_single(_numbers(made), given, output_sizes, input_sizes).wait()
        return made

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return all_to_all(grad, *ctx.said), None, None, None


def all_to_all(
    input: Tensor, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], group_name: str
) -> Tensor:
    """The rows that each rank has for this one: as many as `output_split_sizes` says of each, or equally many."""
    return _AllToAll.apply(input, list(output_split_sizes), list(input_split_sizes), group_name)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, src: int, group_name: str) -> Tensor:
        ctx.said = src, group_name
        return broadcast_(_copy(input), src, group_name)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        src, group_name = ctx.said
        total = all_reduce(grad, "sum", group_name)
        return (total if _group(group_name).rank() == src else total * 0), None, None


def broadcast(input: Tensor, src: int, group_name: str) -> Tensor:
    """The tensor of rank `src` of the group."""
    return _Broadcast.apply(input, src, group_name)


def broadcast_(input: Tensor, src: int, group_name: str) -> Tensor:
    """`broadcast` in place."""
    _group(group_name).broadcast([_numbers(input)], root=src).wait()
    return input


def waited(tensor: Tensor) -> Tensor:
    """The tensor, which is there."""
    return tensor
