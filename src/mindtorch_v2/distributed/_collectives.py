"""The calls of `torch.distributed` over tensors: arguments are checked here, the rest is ProcessGroup's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import mindtorch_v2 as torch

from .._dispatch.native import overridable
from .._state import PLAIN
from .._tensor import Tensor
from ._backend import Backend
from ._groups import (
    _canonicalize_group_rank,
    _check_valid_timeout,
    _group_or_default_group,
    _rank_not_in_group,
    _warn_not_in_group,
    _world,
    get_backend,
    get_global_rank,
    get_rank,
)
from ._options import (
    AllgatherOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    Options,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ._process_group import ProcessGroup
from ._reduction import ReduceOp, kind_of
from ._work import Work
from .constants import default_pg_timeout

_REFUSED_OF_COMPLEX = (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction takes complex tensors."""
    return reduceOp not in _REFUSED_OF_COMPLEX


def _check_single_tensor(param: Any, name: str) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n             but got {type(param)} instead."
        )


def _check_tensor_list(param: Any, name: str) -> None:
    if not isinstance(param, list):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got {type(param)} instead."
        )
    if not all(isinstance(item, Tensor) for item in param):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(param)} with elements of type {[type(item) for item in param]}."
        )


def _ensure_all_tensors_same_dtype(*tensors: Any) -> None:
    last = None
    for item in tensors:
        for tensor in item if isinstance(item, list) else (item,):
            dtype = tensor.dtype.to_real() if tensor.dtype.is_complex else tensor.dtype
            if last is None:
                last = dtype
            elif last != dtype:
                raise ValueError(f"Invalid usage of tensors with different dtypesFound {last} and  {tensor.dtype}")


def _check_not_self_rank(group: Any, rank: int, kind: str) -> None:
    if group.rank() == rank:
        raise ValueError(f"Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process.")


def _real(tensor: Any) -> Any:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _options(kind: type[Options], op: Any = None, root: int = 0, async_op: bool = False) -> Options:
    made = kind()
    if op is not None:
        kind_of(op, kind.__name__)
        made.reduceOp = op
    made.rootRank, made.asyncOp = root, async_op
    return made


def _given(work: Work | None, async_op: bool) -> Work | None:
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


class _Coalesced(Work):
    """What stands for a call within `_coalescing_manager`."""


@overridable
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce a tensor over all ranks, in place. With `async_op` a Work; None in a process that is not in the group.

    Raises:
        RuntimeError: for a reduction of bits of floating-point numbers, or an average of integers.
        DistBackendError: for calls that do not fit each other, and for ranks that do not come in time; both name the ranks.
    """
    if not async_op and tensor.__class__ in PLAIN and not _world.pg_coalesce_state:
        chosen: Any = _world.default_pg if group is None else group
        if chosen.__class__ is ProcessGroup and chosen.quick_allreduce(tensor, op):
            return None
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("all_reduce")
        return None
    if tensor.is_complex():
        if not supports_complex(op):
            raise ValueError(f"all_reduce does not support {op} on complex tensors")
        tensor = torch.view_as_real(tensor)
    opts = _options(AllreduceOptions, op, async_op=async_op)
    group = _group_or_default_group(group)
    if group in _world.pg_coalesce_state:
        _world.pg_coalesce_state[group].append((all_reduce, (tensor, op)))
        return _Coalesced() if async_op else None
    return _given(group.allreduce([tensor], opts), async_op)


def all_reduce_coalesced(tensors: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
    """`all_reduce` of several tensors of one dtype at once; with `async_op` a future of them."""
    warnings.warn(
        "`torch.distributed.all_reduce_coalesced` will be deprecated. If you must use it, please revisit our documentation later at "
        "https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
        stacklevel=2,
    )
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    _ensure_all_tensors_same_dtype(tensors)
    if _rank_not_in_group(group):
        _warn_not_in_group("all_reduce_coalesced")
        return None
    if any(tensor.is_complex() for tensor in tensors) and not supports_complex(op):
        raise ValueError(f"all_reduce does not support {op} on complex tensors")
    opts = _options(AllreduceOptions, op, async_op=async_op)
    work = _group_or_default_group(group).allreduce_coalesced([_real(tensor) for tensor in tensors], opts)
    return work.get_future() if async_op else _given(work, False)


@overridable
def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Every rank gets the tensor of rank `src` (`group_src` by the group's numbers), in place."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("broadcast")
        return None
    root = _canonicalize_group_rank(group, src, group_src)
    _check_single_tensor(tensor, "tensor")
    return _given(group.broadcast([_real(tensor)], _options(BroadcastOptions, root=root, async_op=async_op)), async_op)


@overridable
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Rank `dst` gets the reduction of all ranks' tensors, in place."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("reduce")
        return None
    root = _canonicalize_group_rank(group, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    if tensor.is_complex():
        if not supports_complex(op):
            raise ValueError(f"reduce does not support {op} on complex tensors")
        tensor = torch.view_as_real(tensor)
    return _given(group.reduce([tensor], _options(ReduceOptions, op, root, async_op)), async_op)


@overridable
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Every rank gets all ranks' tensors, in a list of as many of the same shape."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _ensure_all_tensors_same_dtype(tensor_list, tensor)
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather")
        return None
    taken = [_real(item) for item in tensor_list]
    return _given(
        _group_or_default_group(group).allgather(
            [taken], [_real(tensor)], _options(AllgatherOptions, async_op=async_op)
        ),
        async_op,
    )


@overridable
def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Every rank gets all ranks' tensors in one, joined in the first dimension or stacked."""
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather_single")
        return None
    group = _group_or_default_group(group)
    output, given = _real(output_tensor), _real(input_tensor)
    if group in _world.pg_coalesce_state:
        _world.pg_coalesce_state[group].append((all_gather_single, (output, given)))
        return _Coalesced() if async_op else None
    return _given(group.all_gather_single(output, given, _options(AllgatherOptions, async_op=async_op)), async_op)


def _renamed(old: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`torch.distributed.{old}` is deprecated. Please use `torch.distributed.{function.__name__}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"`{function.__name__}` by its former name."
    return call


all_gather_into_tensor = _renamed("all_gather_into_tensor", all_gather_single)
_all_gather_base = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False
) -> Any:
    """`all_gather` of several tensors: a list of them for each rank."""
    if _rank_not_in_group(group):
        _warn_not_in_group("all_gather_coalesced")
        return None
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for row in output_tensor_lists:
        _check_tensor_list(row, "output_tensor_lists")
        _ensure_all_tensors_same_dtype(row)
    rows = [[_real(tensor) for tensor in row] for row in output_tensor_lists]
    work = _group_or_default_group(group).allgather_coalesced(rows, [_real(tensor) for tensor in input_tensor_list])
    return work.get_future() if async_op else _given(work, False)


def _validate_output_list_for_rank(my_rank: int, dst: int, gather_list: Any) -> None:
    if dst == my_rank:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


@overridable
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Rank `dst` (0 unless said) gets all ranks' tensors, in a list that it alone gives."""
    _check_single_tensor(tensor, "tensor")
    if gather_list:
        _check_tensor_list(gather_list, "gather_list")
    _ensure_all_tensors_same_dtype(tensor, gather_list or [])
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("gather")
        return None
    root = _canonicalize_group_rank(group, 0 if dst is None and group_dst is None else dst, group_dst)
    _validate_output_list_for_rank(group.rank(), root, gather_list)
    taken = [[_real(item) for item in gather_list or ()]] if root == group.rank() else []
    return _given(group.gather(taken, [_real(tensor)], _options(GatherOptions, root=root, async_op=async_op)), async_op)


@overridable
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Every rank gets its tensor of the list that rank `src` (0 unless said) alone gives."""
    _check_single_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensor_list(scatter_list, "scatter_list")
    _ensure_all_tensors_same_dtype(tensor, scatter_list or [])
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("scatter")
        return None
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    if root == group.rank():
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    given = [[_real(item) for item in scatter_list or ()]] if root == group.rank() else []
    return _given(
        group.scatter([_real(tensor)], given, _options(ScatterOptions, root=root, async_op=async_op)), async_op
    )


@overridable
def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Every rank gets the reduction of what all ranks have for it in their lists."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _ensure_all_tensors_same_dtype(output, input_list)
    if _rank_not_in_group(group):
        _warn_not_in_group("reduce_scatter")
        return None
    opts = _options(ReduceScatterOptions, op, async_op=async_op)
    return _given(_group_or_default_group(group).reduce_scatter([output], [input_list], opts), async_op)


@overridable
def reduce_scatter_single(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Every rank gets its part, in the first dimension, of the reduction of all ranks' tensors."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if _rank_not_in_group(group):
        _warn_not_in_group("reduce_scatter_single")
        return None
    opts = _options(ReduceScatterOptions, op, async_op=async_op)
    group = _group_or_default_group(group)
    if group in _world.pg_coalesce_state:
        _world.pg_coalesce_state[group].append((reduce_scatter_single, (output, input, op)))
        return _Coalesced() if async_op else None
    return _given(group.reduce_scatter_single(output, input, opts), async_op)


reduce_scatter_tensor = _renamed("reduce_scatter_tensor", reduce_scatter_single)
_reduce_scatter_base = reduce_scatter_tensor


@overridable
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Every rank gets from each rank its rows: equally many, or as many as the sizes say."""
    if _rank_not_in_group(group):
        _warn_not_in_group("all_to_all_single")
        return None
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_all_tensors_same_dtype(output, input)
    opts = _options(AllToAllOptions, async_op=async_op)
    group = _group_or_default_group(group)
    return _given(
        group.all_to_all_single(_real(output), _real(input), output_split_sizes or [], input_split_sizes or [], opts),
        async_op,
    )


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Every rank gets from each rank the tensor that this has for it."""
    if _rank_not_in_group(group):
        _warn_not_in_group("all_to_all")
        return None
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(output_tensor_list, input_tensor_list)
    taken, given = ([_real(item) for item in items] for items in (output_tensor_list, input_tensor_list))
    return _given(
        _group_or_default_group(group).alltoall(taken, given, _options(AllToAllOptions, async_op=async_op)), async_op
    )


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Return once all ranks have called it."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("barrier")
        return None
    opts = _options(BarrierOptions, async_op=async_op)
    opts.timeout = timeout
    return _given(group.barrier(opts=opts), async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Return once all ranks have called it. RuntimeError that names the first that does not come in time, or with `wait_all_ranks` all of them."""
    if _rank_not_in_group(group):
        _warn_not_in_group("monitored_barrier")
        return
    if get_backend(group) not in (Backend.GLOO, Backend.UNDEFINED, Backend.MPI):
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    if timeout is None:
        timeout = default_pg_timeout
    elif isinstance(timeout, float):
        warnings.warn(
            f"Please specify timeout arg as a timedelta. Converting current value of {timeout} assuming it represents seconds",
            stacklevel=2,
        )
        timeout = timedelta(seconds=timeout)
    _check_valid_timeout(timeout)
    _group_or_default_group(group).monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)


@overridable
def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send a tensor to a rank."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        _warn_not_in_group("isend")
        return None
    rank = _canonicalize_group_rank(group, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    return group.send([_real(tensor)], rank, tag)


@overridable
def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive a tensor from a rank, or from any."""
    _check_single_tensor(tensor, "tensor")
    if _rank_not_in_group(group):
        _warn_not_in_group("irecv")
        return None
    group = _group_or_default_group(group)
    if src is None and group_src is None:
        return group.recv_anysource([_real(tensor)], tag)
    return group.recv([_real(tensor)], _canonicalize_group_rank(group, src, group_src), tag)


@overridable
def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to another rank."""
    group = _group_or_default_group(group)
    if not _rank_not_in_group(group):
        _check_not_self_rank(group, _canonicalize_group_rank(group, dst, group_dst), "destination")
    _given(isend(tensor, dst, group, tag, group_dst), False)
    return None


@overridable
def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from another rank, or from any; the rank that sent it, -1 in a process that is not in the group."""
    group = _group_or_default_group(group)
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is None:
        rank = work._source_rank() if group_src is None else group_src
        src = get_global_rank(group, rank)
    return src


def _check_op(op: Any) -> None:
    if op not in (isend, irecv):
        raise ValueError(
            "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
        )


class P2POp:
    """A message for `batch_isend_irecv`: `op` is isend or irecv, `peer` the other rank (`group_peer` by the group's numbers)."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        _check_op(op)
        _check_single_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = _group_or_default_group(group)
        self.peer = _canonicalize_group_rank(self.group, peer, group_peer, return_global=True)
        self.group_peer = _canonicalize_group_rank(self.group, peer, group_peer)

    def __repr__(self) -> str:
        mine = get_rank(self.group)
        source, target = (mine, self.group_peer) if self.op is isend else (self.group_peer, mine)
        return f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={target},  {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages; a Work for each."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    group = p2p_op_list[0].group
    if any(one.group != group for one in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works = []
    for one in p2p_op_list:
        peer = {"group_dst" if one.op is isend else "group_src": one.group_peer}
        work = one.op(one.tensor, group=one.group, tag=one.tag, **peer)
        if work is not None:
            works.append(work)
    return works


class _CoalescingManager:
    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group: Any = None, device: Any = None, async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Calls of one kind within it begin together at its end."""
    group = _group_or_default_group(group)
    if _world.pg_coalesce_state.setdefault(group, []):
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    manager = _CoalescingManager()
    try:
        yield manager
    finally:
        calls = _world.pg_coalesce_state.pop(group)
    kinds = {function.__name__ for function, _ in calls}
    if len(kinds) > 1:
        raise RuntimeError(
            f"Coalescing manager requires all collectives to be the same type, but got mixed types: {kinds}"
        )
    for work in _begin_all(group, calls):
        manager.append(work)
    if not async_ops:
        manager.wait()


def _begin_all(group: ProcessGroup, calls: Iterable[Any]) -> Iterator[Any]:
    for function, args in calls:
        yield function(*args, group=group, async_op=True)
