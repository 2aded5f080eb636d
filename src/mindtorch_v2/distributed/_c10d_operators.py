"""`torch.ops.c10d`: the collectives of a ProcessGroup object, as operators by PyTorch's signatures. Tensors are written in place, and the Work is waited for by who gets it.
`torch.ops.c10d_functional`: those that give their results, over lists of ranks, as they were before `torch.ops._c10d_functional`.

Programs have these mostly as names, of what they watch (`torch.ops.c10d.allreduce_.default`). They are plain functions of a process group's methods, without derivatives.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import mindtorch_v2 as torch

from .._schemas import FunctionSchema
from .._tensor import Tensor
from ..ops import OpOverload, OpOverloadPacket
from ._groups import _find_pg_by_ranks_and_tag
from ._options import Options
from ._process_group import ProcessGroup
from ._work import Work

_CLASSES = {
    short: f"__torch__.torch.classes.c10d.{name}"
    for short, name in (("GROUP", "ProcessGroup"), ("OP", "ReduceOp"), ("WORK", "Work"))
}
_found: dict[str, tuple[FunctionSchema, Callable[..., Any]]] = {}


def _operator(arguments: str, returns: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Keep a function as the operator of its name. GROUP, OP and WORK stand for classes."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        qualified = f"c10d::{function.__name__}"
        text = re.sub(r"\b(GROUP|OP|WORK)\b", lambda found: _CLASSES[found[0]], f"({arguments}) -> {returns}")
        _found[qualified] = FunctionSchema(qualified + text), function
        return function

    return keep


@functools.cache
def find(namespace: str, name: str) -> OpOverloadPacket | None:
    """An operator by its name, None where there is none."""
    found = _found.get(f"{namespace}::{name}")
    if found is None:
        return None
    schema, function = found
    packet = OpOverloadPacket(name, {"default": (schema, [])}, (), namespace)
    packet._made["default"] = OpOverload(packet, "default", schema, [], function)
    return packet


def _told(op: Any = None, root: int = 0, async_op: bool = True, timeout: int = -1) -> Options:
    """Options; a timeout is in milliseconds, or -1 for the group's own."""
    made = Options()
    if op is not None:
        made.reduceOp = op
    made.rootRank, made.asyncOp = root, async_op
    made.timeout = None if timeout < 0 else timedelta(milliseconds=timeout)
    return made


_END = "bool async_op=True, int timeout=-1"


@_operator(f"Tensor[] tensors, GROUP process_group, OP reduce_op, Tensor? sparse_indices, {_END}", "(Tensor[], WORK)")
def allreduce_(
    tensors: list[Tensor], process_group: ProcessGroup, reduce_op: Any, sparse_indices: Tensor | None, async_op: bool = True, timeout: int = -1
) -> tuple[list[Tensor], Work]:  # fmt: skip
    if sparse_indices is not None:
        raise NotImplementedError("c10d::allreduce_: indices of sparse tensors are not supported")
    return tensors, process_group.allreduce(tensors, _told(reduce_op, 0, async_op, timeout))


@_operator(f"Tensor[] tensors, GROUP process_group, OP reduce_op, {_END}", "WORK")
def allreduce_coalesced_(
    tensors: list[Tensor], process_group: ProcessGroup, reduce_op: Any, async_op: bool = True, timeout: int = -1
) -> Work:
    return process_group.allreduce_coalesced(tensors, _told(reduce_op, 0, async_op, timeout))


@_operator(f"Tensor[] tensors, GROUP process_group, int root_rank, int root_tensor, {_END}", "(Tensor[], WORK)")
def broadcast_(
    tensors: list[Tensor], process_group: ProcessGroup, root_rank: int, root_tensor: int, async_op: bool = True, timeout: int = -1
) -> tuple[list[Tensor], Work]:  # fmt: skip
    return tensors, process_group.broadcast(tensors, _told(None, root_rank, async_op, timeout))


@_operator(f"Tensor[] tensors, GROUP process_group, OP reduce_op, int root_rank, int root_tensor, {_END}", "WORK")
def reduce_(
    tensors: list[Tensor], process_group: ProcessGroup, reduce_op: Any, root_rank: int, root_tensor: int, async_op: bool = True, timeout: int = -1
) -> Work:  # fmt: skip
    return process_group.reduce(tensors, _told(reduce_op, root_rank, async_op, timeout))


@_operator(f"Tensor[][] output_tensors, Tensor[] input_tensors, GROUP process_group, {_END}", "(Tensor[][], WORK)")
def allgather_(
    output_tensors: list[list[Tensor]], input_tensors: list[Tensor], process_group: ProcessGroup, async_op: bool = True, timeout: int = -1
) -> tuple[list[list[Tensor]], Work]:  # fmt: skip
    return output_tensors, process_group.allgather(output_tensors, input_tensors, _told(None, 0, async_op, timeout))


@_operator(f"Tensor output_tensor, Tensor input_tensor, GROUP process_group, {_END}", "(Tensor, WORK)")
def _allgather_base_(
    output_tensor: Tensor, input_tensor: Tensor, process_group: ProcessGroup, async_op: bool = True, timeout: int = -1
) -> tuple[Tensor, Work]:
    return output_tensor, process_group.all_gather_single(
        output_tensor, input_tensor, _told(None, 0, async_op, timeout)
    )


@_operator("Tensor[][] output_lists, Tensor[] input_list, GROUP process_group, bool async_op=True", "WORK")
def allgather_coalesced_(
    output_lists: list[list[Tensor]], input_list: list[Tensor], process_group: ProcessGroup, async_op: bool = True
) -> Work:
    return process_group.allgather_coalesced(output_lists, input_list, _told(None, 0, async_op))


@_operator("Tensor[] outputs, Tensor[] inputs, GROUP process_group, bool async_op=True", "WORK")
def allgather_into_tensor_coalesced_(
    outputs: list[Tensor], inputs: list[Tensor], process_group: ProcessGroup, async_op: bool = True
) -> Work:
    return _last([process_group.all_gather_single(*pair) for pair in zip(outputs, inputs, strict=True)])


@_operator(
    f"Tensor[] output_tensors, Tensor[][] input_tensors, GROUP process_group, OP reduce_op, {_END}", "(Tensor[], WORK)"
)
def reduce_scatter_(
    output_tensors: list[Tensor], input_tensors: list[list[Tensor]], process_group: ProcessGroup, reduce_op: Any, async_op: bool = True, timeout: int = -1
) -> tuple[list[Tensor], Work]:  # fmt: skip
    opts = _told(reduce_op, 0, async_op, timeout)
    return output_tensors, process_group.reduce_scatter(output_tensors, input_tensors, opts)


@_operator(f"Tensor output_tensor, Tensor input_tensor, GROUP process_group, OP reduce_op, {_END}", "(Tensor, WORK)")
def _reduce_scatter_base_(
    output_tensor: Tensor, input_tensor: Tensor, process_group: ProcessGroup, reduce_op: Any, async_op: bool = True, timeout: int = -1
) -> tuple[Tensor, Work]:  # fmt: skip
    opts = _told(reduce_op, 0, async_op, timeout)
    return output_tensor, process_group.reduce_scatter_single(output_tensor, input_tensor, opts)


@_operator(f"Tensor[] outputs, Tensor[] inputs, GROUP process_group, OP reduce_op, {_END}", "WORK")
def reduce_scatter_tensor_coalesced_(
    outputs: list[Tensor], inputs: list[Tensor], process_group: ProcessGroup, reduce_op: Any, async_op: bool = True, timeout: int = -1
) -> Work:  # fmt: skip
    opts = _told(reduce_op, 0, async_op, timeout)
    return _last([process_group.reduce_scatter_single(*pair, opts) for pair in zip(outputs, inputs, strict=True)])


def _last(works: list[Work]) -> Work:
    """One Work for several calls: all but the last are waited for."""
    for work in works[:-1]:
        work.wait()
    return works[-1] if works else Work()


@_operator(f"Tensor[][] output_tensors, Tensor[] input_tensors, GROUP process_group, int root_rank, {_END}", "WORK")
def gather_(
    output_tensors: list[list[Tensor]], input_tensors: list[Tensor], process_group: ProcessGroup, root_rank: int, async_op: bool = True, timeout: int = -1
) -> Work:  # fmt: skip
    return process_group.gather(output_tensors, input_tensors, _told(None, root_rank, async_op, timeout))


@_operator(
    f"Tensor[] output_tensors, Tensor[][] input_tensors, GROUP process_group, int root_rank, {_END}", "(Tensor[], WORK)"
)
def scatter_(
    output_tensors: list[Tensor], input_tensors: list[list[Tensor]], process_group: ProcessGroup, root_rank: int, async_op: bool = True, timeout: int = -1
) -> tuple[list[Tensor], Work]:  # fmt: skip
    opts = _told(None, root_rank, async_op, timeout)
    return output_tensors, process_group.scatter(output_tensors, input_tensors, opts)


@_operator(f"Tensor[] output_tensors, Tensor[] input_tensors, GROUP process_group, {_END}", "(Tensor[], WORK)")
def alltoall_(
    output_tensors: list[Tensor], input_tensors: list[Tensor], process_group: ProcessGroup, async_op: bool = True, timeout: int = -1
) -> tuple[list[Tensor], Work]:  # fmt: skip
    return output_tensors, process_group.alltoall(output_tensors, input_tensors, _told(None, 0, async_op, timeout))


@_operator(
    f"Tensor output, Tensor input, GROUP process_group, int[] output_split_sizes, int[] input_split_sizes, {_END}",
    "WORK",
)
def alltoall_base_(
    output: Tensor, input: Tensor, process_group: ProcessGroup, output_split_sizes: list[int], input_split_sizes: list[int], async_op: bool = True, timeout: int = -1
) -> Work:  # fmt: skip
    opts = _told(None, 0, async_op, timeout)
    return process_group.all_to_all_single(output, input, output_split_sizes, input_split_sizes, opts)


@_operator(f"Tensor tensor, GROUP process_group, int[] device_ids, {_END}", "WORK")
def barrier(
    tensor: Tensor, process_group: ProcessGroup, device_ids: list[int], async_op: bool = True, timeout: int = -1
) -> Work:
    return process_group.barrier(_told(None, 0, async_op, timeout))


@_operator("Tensor tensor, GROUP process_group, int[] device_ids, int timeout, bool wait_all_ranks", "()")
def monitored_barrier_(
    tensor: Tensor, process_group: ProcessGroup, device_ids: list[int], timeout: int, wait_all_ranks: bool
) -> None:
    process_group.monitored_barrier(_told(timeout=timeout).timeout, wait_all_ranks)


@_operator("Tensor[] tensors, GROUP process_group, int dst, int tag", "WORK")
def send(tensors: list[Tensor], process_group: ProcessGroup, dst: int, tag: int) -> Work:
    return process_group.send(tensors, dst, tag)


@_operator("Tensor[] tensors, GROUP process_group, int src, int tag", "WORK")
def recv_(tensors: list[Tensor], process_group: ProcessGroup, src: int, tag: int) -> Work:
    return process_group.recv(tensors, src, tag)


@_operator("Tensor[] tensors, GROUP process_group, int tag", "WORK")
def recv_any_source_(tensors: list[Tensor], process_group: ProcessGroup, tag: int) -> Work:
    return process_group.recv_anysource(tensors, tag)


@_operator("Tensor tensor", "()")
def check_for_nan(tensor: Tensor) -> None:
    """RuntimeError for a tensor with an element that is not a number."""
    if tensor.is_floating_point() and tensor.isnan().any():
        raise RuntimeError("NaN found in input tensor.")


def _of_ranks(name: str, arguments: str, returns: str = "Tensor") -> None:
    """Keep an operator that calls the one of `_c10d_functional` with the group of the ranks that it is given last."""
    qualified = f"c10d_functional::{name}"
    schema = FunctionSchema(f"{qualified}({arguments}, str tag, int[] ranks, int group_size) -> {returns}")
    _found[qualified] = schema, functools.partial(_over_ranks, name)


def _over_ranks(name: str, *given: Any) -> Any:
    *rest, tag, ranks, size = given
    group = _find_pg_by_ranks_and_tag(tag, list(ranks))
    if group is None:
        raise ValueError(f"there is no process group of the ranks {list(ranks)}")
    if name.startswith(("all_gather", "reduce_scatter")):
        rest.append(size)
    return getattr(torch.ops._c10d_functional, name)(*([] if one is None else one for one in rest), group)


_of_ranks("broadcast", "Tensor self, int src")
_of_ranks("all_reduce", "Tensor self, str reduceOp")
_of_ranks("all_reduce_coalesced", "Tensor[] self, str reduceOp", "Tensor[]")
_of_ranks("all_gather_into_tensor", "Tensor shard")
_of_ranks("all_gather_into_tensor_coalesced", "Tensor[] input", "Tensor[]")
_of_ranks("reduce_scatter_tensor", "Tensor input, str reduceOp")
_of_ranks("reduce_scatter_tensor_coalesced", "Tensor[] inputs, str reduceOp", "Tensor[]")
_of_ranks("all_to_all_single", "Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes")


def _waited(tensor: Tensor) -> Tensor:
    return torch.ops._c10d_functional.wait_tensor(tensor)


_found["c10d_functional::wait_tensor"] = FunctionSchema("c10d_functional::wait_tensor(Tensor self) -> Tensor"), _waited
