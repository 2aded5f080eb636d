"""`torch.distributed._functional_collectives`: collectives that give their results, with derivatives, by `torch.ops._c10d_functional`.

A group is a ProcessGroup, its name, a mesh of one dimension, a pair of a mesh and a dimension, or a list of ranks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mindtorch_v2 as torch

from .._tensor import Tensor
from ._groups import _find_pg_by_ranks_and_tag, _get_group_size, _resolve_process_group
from ._process_group import ProcessGroup


class AsyncCollectiveTensor(Tensor):
    """What PyTorch gives for a result that has not come yet. Here results are there, so nothing is one."""

    def wait(self) -> Tensor:
        """The tensor."""
        return self


def _resolve_group(group: Any, tag: str = "") -> ProcessGroup:
    """The process group that is meant. ValueError for what means none."""
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, tuple) and len(group) == 2:
        return group[0].get_group(group[1])
    of_mesh = getattr(group, "get_group", None)
    if of_mesh is not None:
        if getattr(group, "ndim", 1) != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return of_mesh()
    if isinstance(group, list):
        found = _find_pg_by_ranks_and_tag(
            tag, [rank for one in group for rank in (one if isinstance(one, list) else [one])]
        )
        if found is None:
            raise ValueError(f"there is no process group of the ranks {group}")
        return found
    raise ValueError(f"Unsupported group type: {type(group)}, {group}")


def _resolve_group_name(group: Any, tag: str = "") -> str:
    return _resolve_group(group, tag).group_name


def _ops() -> Any:
    return torch.ops._c10d_functional


def _maybe_wrap_tensor(tensor: Tensor) -> Tensor:
    return wait_tensor(tensor)


def wait_tensor(tensor: Tensor) -> Tensor:
    """A result, once it is there."""
    return _ops().wait_tensor(tensor)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank `src` of the group."""
    return wait_tensor(_ops().broadcast(self, src, _resolve_group_name(group, tag)))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The reduction ("sum", "avg", "max", ...) of all ranks' tensors."""
    return wait_tensor(_ops().all_reduce(self, reduceOp.lower(), _resolve_group_name(group, tag)))


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:
    """`all_reduce` of several tensors."""
    return list(_ops().all_reduce_coalesced(list(self), reduceOp.lower(), _resolve_group_name(group, tag)))


def all_gather_single(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """All ranks' tensors, joined in a dimension."""
    found = _resolve_group(group, tag)
    size = _get_group_size(found)
    made = wait_tensor(_ops().all_gather_into_tensor(self.contiguous(), size, found.group_name))
    return made if gather_dim == 0 else torch.cat(torch.chunk(made, size, 0), gather_dim)


def all_gather_single_coalesced(self: Sequence[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """`all_gather_single` of several tensors, in the first dimension."""
    found = _resolve_group(group, tag)
    given = [tensor.contiguous() for tensor in self]
    return list(_ops().all_gather_into_tensor_coalesced(given, _get_group_size(found), found.group_name))


def _moved(tensor: Tensor, size: int, dim: int) -> Tensor:
    """The parts of a dimension one after the other in the first."""
    if tensor.shape[dim] % size:
        raise AssertionError(f"input dimension 0 ({tensor.size(0)} must be a multiple of group_size {size})")
    return tensor.contiguous() if dim == 0 else torch.cat(torch.chunk(tensor, size, dim), 0)


def reduce_scatter_single(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This rank's part, in a dimension, of the reduction of all ranks' tensors. AssertionError where it cannot be divided."""
    found = _resolve_group(group, tag)
    size = _get_group_size(found)
    given = _moved(self, size, scatter_dim)
    return wait_tensor(_ops().reduce_scatter_tensor(given, reduceOp.lower(), size, found.group_name))


def reduce_scatter_single_coalesced(
    inputs: Sequence[Tensor], reduceOp: str, scatter_dim: Sequence[int], group: Any, tag: str = ""
) -> list[Tensor]:
    """`reduce_scatter_single` of several tensors, each in a dimension of its own."""
    found = _resolve_group(group, tag)
    size = _get_group_size(found)
    if len(scatter_dim) != len(inputs):
        raise AssertionError(
            f"Expected length of scatter_dim ({len(scatter_dim)}) to equal length of inputs ({len(inputs)})"
        )
    given = [_moved(tensor, size, dim) for tensor, dim in zip(inputs, scatter_dim)]
    return list(_ops().reduce_scatter_tensor_coalesced(given, reduceOp.lower(), size, found.group_name))


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """The rows that each rank has for this one."""
    name = _resolve_group_name(group, tag)
    sizes = [list(one) if one is not None else [] for one in (output_split_sizes, input_split_sizes)]
    return wait_tensor(_ops().all_to_all_single(self.contiguous(), *sizes, name))


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the rank whose place in `src_dst` has this one's number."""
    found = _resolve_group(group, tag)
    rank, size = found.rank(), _get_group_size(found)
    gives, takes = [0] * size, [0] * size
    for source, target in enumerate(src_dst):
        if source == rank:
            gives[target] = self.numel()
        if target == rank:
            takes[source] = self.numel()
    return all_to_all_single(self.reshape(-1), takes, gives, found).reshape(self.shape)


def _former(old: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        home = "torch.distributed._functional_collectives"
        warnings.warn(
            f"`{home}.{old}` is deprecated. Please use `{home}.{function.__name__}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"`{function.__name__}` by its former name."
    return call


all_gather_single_autograd = all_gather_single
reduce_scatter_single_autograd = reduce_scatter_single
all_to_all_single_autograd = all_to_all_single
all_gather_tensor = _former("all_gather_tensor", all_gather_single)
all_gather_tensor_autograd = _former("all_gather_tensor_autograd", all_gather_single)
all_gather_into_tensor_coalesced = _former("all_gather_into_tensor_coalesced", all_gather_single_coalesced)
reduce_scatter_tensor = _former("reduce_scatter_tensor", reduce_scatter_single)
reduce_scatter_tensor_autograd = _former("reduce_scatter_tensor_autograd", reduce_scatter_single)
reduce_scatter_tensor_coalesced = _former("reduce_scatter_tensor_coalesced", reduce_scatter_single_coalesced)
