"""What calls of process groups are told beyond their tensors."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ._reduction import RedOpType, ReduceOp


class Options:
    """What a call is told beyond its tensors. PyTorch has a class for each call; here they differ by name."""

    def __init__(self) -> None:
        self.reduceOp: Any = ReduceOp.SUM
        self.rootRank = 0
        self.rootTensor = 0
        self.timeout: timedelta | None = None
        self.asyncOp = False
        self.device_ids: list[int] = []
        self.device: Any = None
        self.tensor: Any = None


def _options(name: str, doc: str) -> type[Options]:
    return type(name, (Options,), {"__doc__": doc, "__module__": "torch._C._distributed_c10d"})


AllreduceOptions = _options("AllreduceOptions", "Options of allreduce.")
AllreduceCoalescedOptions = _options("AllreduceCoalescedOptions", "Options of allreduce_coalesced.")
AllgatherOptions = _options("AllgatherOptions", "Options of allgather.")
AllToAllOptions = _options("AllToAllOptions", "Options of alltoall.")
BarrierOptions = _options("BarrierOptions", "Options of barrier.")
BroadcastOptions = _options("BroadcastOptions", "Options of broadcast.")
GatherOptions = _options("GatherOptions", "Options of gather.")
ReduceOptions = _options("ReduceOptions", "Options of reduce.")
ReduceScatterOptions = _options("ReduceScatterOptions", "Options of reduce_scatter.")
ScatterOptions = _options("ScatterOptions", "Options of scatter.")


def options_of(reduce_op: str) -> Options:
    """Options of a reduction that is named as operators name it. RuntimeError for another name."""
    found = RedOpType.__members__.get(reduce_op.upper())
    if found is None or found is RedOpType.PREMUL_SUM:
        raise RuntimeError(f"Unrecognized reduce_op: {reduce_op}")
    made = AllreduceOptions()
    made.reduceOp = found
    return made


def timeout_of(opts: Any, timeout: timedelta | None) -> timedelta | None:
    """The timeout that a call is given, by itself or in its options."""
    return timeout or (opts.timeout if isinstance(opts, Options) else None)


def operation_of(opts: Any) -> Any:
    """The reduction that a call is given: options, the reduction itself, or None for a sum."""
    if isinstance(opts, Options):
        return opts.reduceOp
    return ReduceOp.SUM if opts is None else opts
