"""Process groups of tensors on NPUs: HCCL's collectives, as work of the devices' streams.

Note [Order on streams]
A call is put on the current stream of its tensors' device. Work that is put there later sees its results, and the host does not wait: `Work.wait` returns at once, as that of NCCL
does, and errors of the ranks come with the next wait for the stream. Tensors that are no flat memory go by copies, on the same stream.

Ranks find each other by the group's store: rank 0 puts HCCL's root info there, with the first call of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import mindtorch_v2 as torch

from .._backends.npu.runtime import NpuError, get_runtime
from .._backends.npu.streams import current_stream
from .._pending import exposed
from .._tensor import Tensor, bump_version
from ._process_group import ProcessGroup
from ._reduction import RedOpType
from ._stores import Store
from ._work import Work

_ROOT_INFO = 4108  # bytes, of hccl_types.h
_DTYPES = {
    torch.int8: 0, torch.int16: 1, torch.int32: 2, torch.float16: 3, torch.float32: 4, torch.int64: 5, torch.uint64: 6, torch.uint8: 7,
    torch.uint16: 8, torch.uint32: 9, torch.float64: 10, torch.bfloat16: 11, torch.bool: 7,
}  # fmt: skip
_REDUCTIONS = {RedOpType.SUM: 0, RedOpType.PRODUCT: 1, RedOpType.MAX: 2, RedOpType.MIN: 3}


class HcclProcessGroup(ProcessGroup):
    """Some ranks, each with an NPU of its own or a share of one. Tensors are strided ones on NPUs; dtypes are HCCL's, and bool as bytes.

    NpuError for what HCCL refuses; RuntimeError for tensors elsewhere, other reductions than SUM, AVG, PRODUCT, MAX and MIN, and messages from any rank.
    """

    TITLE = "ProcessGroupHCCL"
    DEVICE = "npu"

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(store, rank, size, None, timeout, "hccl")
        self._comm: Any = None

    # Communicators

    def _communicator(self) -> Any:
        if self._comm is None:
            runtime = get_runtime()
            ffi = runtime.ffi
            info = ffi.new("char[]", _ROOT_INFO)
            pointer = ffi.cast("HcclRootInfo *", info)
            if self._rank == 0:
                _check(runtime, "HcclGetRootInfo", runtime.symbol("HcclGetRootInfo")(pointer))
                self.store.set("hccl_root_info", bytes(ffi.buffer(info, _ROOT_INFO)))
            else:
                ffi.memmove(info, self.store.get("hccl_root_info"), _ROOT_INFO)
            cell = ffi.new("HcclComm *")
            status = runtime.symbol("HcclCommInitRootInfo")(self._size, pointer, self._rank, cell)
            _check(runtime, "HcclCommInitRootInfo", status)
            self._comm = cell[0]
        return self._comm

    def shutdown(self) -> None:
        """Wait for the device, and destroy the communicator."""
        if self._comm is not None:
            torch.npu.synchronize()
            comm, self._comm = self._comm, None
            runtime = get_runtime()
            _check(runtime, "HcclCommDestroy", runtime.symbol("HcclCommDestroy")(comm))

    def abort(self) -> None:
        """Forget the communicator."""
        self._comm = None

    def _check(self, name: str, tensors: Sequence[Tensor]) -> bool:
        none = super()._check(name, tensors)
        for tensor in tensors:
            if tensor.dtype not in _DTYPES:
                raise RuntimeError(f"{self.TITLE}::{name}: HCCL has no dtype {tensor.dtype}")
        return none

    def _call(self, name: str, where: torch.device, *args: Any) -> None:
        """Call a function that ends with a communicator and a stream; tensors are given as the addresses of their first elements."""
        runtime = get_runtime()
        index = where.index or 0
        with runtime.on(index):
            given = [runtime.ffi.cast("void *", exposed(a).address) if isinstance(a, Tensor) else a for a in args]
            stream = runtime.ffi.cast("aclrtStream", current_stream(index).handle)
            _check(runtime, name, runtime.symbol(name)(*given, self._communicator(), stream))

    def _reduce_op(self, kind: RedOpType, dtype: torch.dtype) -> tuple[int, Callable[[Tensor], Any] | None]:
        """(HCCL's reduction, what is done to a result after it)."""
        if kind is RedOpType.AVG:
            return 0, lambda tensor: tensor.div_(self._size)
        if kind not in _REDUCTIONS:
            raise RuntimeError(f"HCCL has no reduction {kind.name}; it has SUM, AVG, PRODUCT, MAX and MIN")
        if dtype is torch.bool:  # bytes of 0 and 1: a sum is any of them, a product all
            return {0: 2, 1: 3}.get(_REDUCTIONS[kind], _REDUCTIONS[kind]), None
        return _REDUCTIONS[kind], None

    # Collectives. Timeouts are HCCL's own (HCCL_EXEC_TIMEOUT)

    def _allreduce(self, tensors: list[Tensor], op: Any, kind: RedOpType, timeout: timedelta | None) -> Work:
        reduction, after = self._reduce_op(kind, tensors[0].dtype)
        for tensor in tensors:
            flat = _flat(tensor)
            if flat.numel():
                self._call("HcclAllReduce", flat.device, flat, flat, flat.numel(), _DTYPES[flat.dtype], reduction)
                if after is not None:
                    after(flat)
            _written(tensor, flat)
        return Work(outputs=tensors)

    def _broadcast(self, tensors: list[Tensor], root: int, timeout: timedelta | None) -> Work:
        flat = _flat(tensors[0])
        if flat.numel():
            self._call("HcclBroadcast", flat.device, flat, flat.numel(), _DTYPES[flat.dtype], root)
        _written(tensors[0], flat)
        return Work(outputs=tensors)

    def _reduce(self, tensors: list[Tensor], op: Any, kind: RedOpType, root: int, timeout: timedelta | None) -> Work:
        reduction, after = self._reduce_op(kind, tensors[0].dtype)
        flat = _flat(tensors[0])
        if flat.numel():
            self._call("HcclReduce", flat.device, flat, flat, flat.numel(), _DTYPES[flat.dtype], reduction, root)
        if root == self._rank:
            if after is not None:
                after(flat)
            _written(tensors[0], flat)
        return Work(outputs=tensors)

    def _gathered(
        self, given: Tensor, taken: list[Tensor], root: int | None, timeout: timedelta | None, outputs: Any
    ) -> Work:
        """HCCL has no function for a root alone: all ranks get the tensors, and the root keeps them."""
        whole = torch.empty((self._size, *given.shape), dtype=given.dtype, device=given.device)
        self._all_gather_single(whole, given, timeout)
        for tensor, part in zip(taken, whole, strict=False):
            tensor.detach().copy_(part)
            bump_version(tensor)
        return Work(outputs=outputs)

    def _all_gather_single(self, output: Tensor, input: Tensor, timeout: timedelta | None) -> Work:
        given, taken = _flat(input), _flat(output)
        if given.numel():
            self._call("HcclAllGather", given.device, given, taken, given.numel(), _DTYPES[given.dtype])
        _written(output, taken)
        return Work(outputs=[output])

    def _scatter(self, taken: Tensor, given: list[Tensor], root: int, timeout: timedelta | None) -> Work:
        flat = _flat(taken)
        whole = _flat(torch.stack([tensor.detach() for tensor in given])) if given else flat
        if flat.numel():
            self._call("HcclScatter", flat.device, whole, flat, flat.numel(), _DTYPES[flat.dtype], root)
        _written(taken, flat)
        return Work(outputs=[taken])

    def _reduced_part(
        self, name: str, taken: Tensor, given: list[Tensor], op: Any, kind: RedOpType, timeout: timedelta | None
    ) -> Work:
        reduction, after = self._reduce_op(kind, taken.dtype)
        whole = _flat(given[0] if len(given) == 1 else torch.stack([tensor.detach() for tensor in given]))
        flat = _flat(taken)
        if flat.numel():
            self._call("HcclReduceScatter", flat.device, whole, flat, flat.numel(), _DTYPES[flat.dtype], reduction)
            if after is not None:
                after(flat)
        _written(taken, flat)
        return Work(outputs=[taken])

    def _all_to_all_single(
        self, output: Tensor, input: Tensor, counts: list[int], parts: list[int], timeout: timedelta | None
    ) -> Work:
        given, taken = _flat(input), _flat(output)
        self._exchange(given, parts, taken, counts)
        _written(output, taken)
        return Work(outputs=[output])

    def _alltoall(self, outputs: list[Tensor], inputs: list[Tensor], timeout: timedelta | None) -> Work:
        given = torch.cat([tensor.detach().reshape(-1) for tensor in inputs])
        parts, counts = ([tensor.numel() for tensor in tensors] for tensors in (inputs, outputs))
        taken = torch.empty(sum(counts), dtype=given.dtype, device=given.device)
        self._exchange(given, parts, taken, counts)
        for tensor, part in zip(outputs, taken.split(counts), strict=True):
            _written(tensor, part)
        return Work(outputs=outputs)

    def _exchange(self, given: Tensor, parts: list[int], taken: Tensor, counts: list[int]) -> None:
        ffi = get_runtime().ffi
        lists = [ffi.new("uint64_t[]", numbers) for numbers in (parts, _starts(parts), counts, _starts(counts))]
        kind = _DTYPES[given.dtype]
        self._call("HcclAlltoAllV", given.device, given, *lists[:2], kind, taken, *lists[2:], kind)

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Return once all ranks have called it: the host waits for the device."""
        where = torch.device("npu", torch.npu.current_device())
        self._call("HcclBarrier", where)
        torch.npu.current_stream().synchronize()
        return Work()

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """RuntimeError: it is of gloo alone, as in PyTorch."""
        raise RuntimeError("monitored_barrier is only implemented for GLOO backend")

    # Messages. HCCL has no tags: those between two ranks arrive in their order

    def _send(self, tensors: list[Tensor], rank: int, tag: int) -> Work:
        flat = _flat(tensors[0])
        self._call("HcclSend", flat.device, flat, flat.numel(), _DTYPES[flat.dtype], rank)
        return Work(outputs=tensors)

    def _receive(self, tensors: list[Tensor], rank: int | None, tag: int) -> Work:
        if rank is None:
            raise RuntimeError(f"{self.TITLE} does not support recv from any source")
        flat = _flat(tensors[0])
        self._call("HcclRecv", flat.device, flat, flat.numel(), _DTYPES[flat.dtype], rank)
        _written(tensors[0], flat)
        return Work(outputs=tensors)


def _check(runtime: Any, name: str, status: int) -> None:
    if status:
        raise NpuError.of(runtime, name, status, "a call of HCCL")


def _starts(counts: list[int]) -> list[int]:
    return [sum(counts[:index]) for index in range(len(counts))]


def _flat(tensor: Tensor) -> Tensor:
    """The tensor's elements as one dimension: its own memory where that is flat, else a copy."""
    return tensor.detach().contiguous().view(-1)


def _written(tensor: Tensor, flat: Tensor) -> None:
    """The tensor has what the flat one has."""
    if flat.data_ptr() != tensor.data_ptr():
        tensor.detach().copy_(flat.view(tensor.shape))
    bump_version(tensor)


def make(store: Store, rank: int, size: int, timeout: timedelta) -> HcclProcessGroup:
    """A group by HCCL. RuntimeError, with the reason, where there is no NPU."""
    if not torch.npu.is_available():
        from .._backends.npu import unavailable_reason

        raise RuntimeError(f"the backend hccl is of NPUs: {unavailable_reason()}")
    return HcclProcessGroup(store, rank, size, timeout)


__all__ = ["HcclProcessGroup", "make"]
