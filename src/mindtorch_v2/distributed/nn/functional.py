"""`torch.distributed.nn.functional`: collectives with derivatives, which are collectives too, so all ranks of a group call backward."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._autograd.function import Function
from ..._tensor import Tensor
from .. import distributed_c10d as dist
from .._reduction import ReduceOp


def _deprecated(name: str, other: str) -> None:
    warnings.warn(
        f"torch.distributed.nn.functional.{name} is deprecated, use torch.distributed._functional_collectives.{other} instead.",
        FutureWarning,
        stacklevel=3,
    )


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`."""
    _deprecated("broadcast", "broadcast")
    return _Broadcast.apply(tensor, src, group)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All ranks' tensors at rank `dst`, zeros at the others."""
    return _Gather.apply(tensor, dst, group)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This rank's tensor of those of rank `src`."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all ranks' tensors at rank `dst`."""
    return _Reduce.apply(tensor, dst, op, group)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of what all ranks have for this one in their lists, also written into `output`."""
    _deprecated("reduce_scatter", "reduce_scatter_single")
    return _ReduceScatter.apply(output, op, group, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All ranks' tensors."""
    _deprecated("all_gather", "all_gather_single")
    return _AllGather.apply(tensor, group)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """All ranks' tensors, joined in the first dimension of `output_tensor`."""
    return _AllGatherBase.apply(input_tensor, output_tensor, group)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """The tensor that each rank has for this one, of the shapes of `output_tensor_list`."""
    return _AllToAll.apply(list(output_tensor_list), group, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """The rows that each rank has for this one, also written into `output`."""
    _deprecated("all_to_all_single", "all_to_all_single")
    return _AllToAllSingle.apply(input, output, output_split_sizes, input_split_sizes, group)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all ranks' tensors. Its gradient is the same reduction of all ranks' gradients."""
    _deprecated("all_reduce", "all_reduce")
    return _AllReduce.apply(tensor, op, group)


def _same(tensor: Tensor) -> Tensor:
    """A contiguous copy outside of history."""
    return tensor.detach().clone(memory_format=torch.contiguous_format)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, src: int, group: Any) -> Tensor:
        ctx.said = src, group
        made = _same(tensor)
        dist.broadcast(made, src, group=group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        src, group = ctx.said
        total = _Reduce.apply(grad, src, ReduceOp.SUM, group)
        here = dist.get_rank() == src
        return (total if here else torch.zeros_like(grad)), None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, group: Any) -> tuple[Tensor, ...]:
        ctx.said = dst, group
        taken = [torch.zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.gather(_same(tensor), taken if dist.get_rank() == dst else None, dst, group=group)
        return tuple(taken)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _Scatter.apply(*ctx.said, *grads), None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.said = src, group
        if any(tensor.shape != tensors[0].shape for tensor in tensors):
            raise AssertionError("scatter: the tensors have different shapes")
        made = torch.zeros_like(tensors[0])
        dist.scatter(made, [_same(one) for one in tensors] if dist.get_rank() == src else None, src, group=group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        return None, None, *_Gather.apply(grad, *ctx.said)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, op: Any, group: Any) -> Tensor:
        ctx.said = dst, group
        made = _same(tensor)
        dist.reduce(made, dst, op=op, group=group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        return _Broadcast.apply(grad, *ctx.said), None, None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, output: Tensor, op: Any, group: Any, *tensors: Tensor) -> Tensor:
        ctx.group = group
        made = _same(output)
        dist.reduce_scatter(made, [_same(one) for one in tensors], op=op, group=group)
        output.detach().copy_(made)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        return None, None, None, *_AllGather.apply(grad, ctx.group)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Any) -> tuple[Tensor, ...]:
        ctx.group = group
        taken = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(taken, _same(tensor), group=group)
        return tuple(taken)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return _ReduceScatter.apply(torch.empty_like(grads[0]), ReduceOp.SUM, ctx.group, *grads), None


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, output: Tensor, group: Any) -> Tensor:
        ctx.group, ctx.shape = group, tensor.shape
        made = torch.empty_like(output)
        dist.all_gather_single(made, _same(tensor), group=group)
        output.detach().copy_(made)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        made = grad.new_empty(ctx.shape)
        dist.reduce_scatter_single(made, _same(grad), group=ctx.group)
        return made, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, outputs: list[Tensor], group: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [tensor.shape for tensor in tensors]
        taken = [torch.empty_like(one) for one in outputs]
        dist.all_to_all(taken, [_same(one) for one in tensors], group=group)
        for one, made in zip(outputs, taken):
            one.detach().copy_(made)
        return tuple(taken)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        outputs = [grads[0].new_empty(shape) for shape in ctx.shapes]
        return None, None, *_AllToAll.apply(outputs, ctx.group, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, output: Tensor, counts: Any, parts: Any, group: Any) -> Tensor:
        ctx.shape, ctx.said = tensor.shape, (parts, counts, group)
        made = torch.empty_like(output)
        dist.all_to_all_single(made, _same(tensor), counts, parts, group=group)
        output.detach().copy_(made)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        return _AllToAllSingle.apply(grad, grad.new_empty(ctx.shape), *ctx.said), None, None, None, None


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: Any, group: Any) -> Tensor:
        ctx.said = op, group
        made = _same(tensor)
        dist.all_reduce(made, op, group=group)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (grad,) = grads
        return _AllReduce.apply(grad, *ctx.said), None, None
