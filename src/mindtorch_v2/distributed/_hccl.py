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
from ._process_group import Options, ProcessGroup
from ._reduction import RedOpType, ReduceOp, kind_of
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
        kinds = {tensor.device.type for tensor in tensors}
        if kinds - {"npu", "meta"}:
            raise RuntimeError(
                f"ProcessGroupHCCL::{name}: tensors must be on NPUs, not on {', '.join(sorted(kinds - {'npu'}))}"
            )
        for tensor in tensors:
            if tensor.layout is not torch.strided:
                raise RuntimeError(f"ProcessGroupHCCL::{name}: unsupported layout")
            if tensor.dtype not in _DTYPES:
                raise RuntimeError(f"ProcessGroupHCCL::{name}: HCCL has no dtype {tensor.dtype}")
        return "meta" in kinds

    def _call(self, name: str, where: torch.device, *args: Any) -> None:
        """Call a function that ends with a communicator and a stream; tensors are given as the addresses of their first elements."""
        runtime = get_runtime()
        index = where.index or 0
        with runtime.on(index):
            given = [runtime.ffi.cast("void *", exposed(a).address) if isinstance(a, Tensor) else a for a in args]
            stream = runtime.ffi.cast("aclrtStream", current_stream(index).handle)
            _check(runtime, name, runtime.symbol(name)(*given, self._communicator(), stream))

    def _reduce_op(
        self, op: Any, tensors: Sequence[Tensor], options: str
    ) -> tuple[int, Callable[[Tensor], Any] | None]:
        """(HCCL's reduction, what is done to a result after it)."""
        kind = kind_of(op, options)
        dtype = tensors[0].dtype
        if kind is RedOpType.AVG:
            if not dtype.is_floating_point:
                raise RuntimeError(f"ReduceOp.AVG needs a floating dtype, not {dtype}")
            return 0, lambda tensor: tensor.div_(self._size)
        if kind not in _REDUCTIONS:
            raise RuntimeError(f"HCCL has no reduction {kind.name}; it has SUM, AVG, PRODUCT, MAX and MIN")
        if dtype is torch.bool:  # bytes of 0 and 1: a sum is any of them, a product all
            return {0: 2, 1: 3}.get(_REDUCTIONS[kind], _REDUCTIONS[kind]), None
        return _REDUCTIONS[kind], None

    # Collectives

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Every rank gets the reduction of all ranks' tensors, in place."""
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        op = opts.reduceOp if isinstance(opts, Options) else (ReduceOp.SUM if opts is None else opts)
        if not tensors:
            raise RuntimeError("ProcessGroupHCCL::allreduce: requires non-empty tensor list")
        if self._check("allreduce", tensors):
            return Work(outputs=tensors)
        reduction, after = self._reduce_op(op, tensors, "AllreduceOptions")
        for tensor in tensors:
            flat = _flat(tensor)
            if flat.numel():
                self._call("HcclAllReduce", flat.device, flat, flat, flat.numel(), _DTYPES[flat.dtype], reduction)
                if after is not None:
                    after(flat)
            _written(tensor, flat)
        return Work(outputs=tensors)

    allreduce_coalesced = allreduce

    def broadcast(self, tensors: Any, opts: Any = None, root: int = 0, timeout: timedelta | None = None) -> Work:
        """Every rank gets the root's tensor."""
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        root = opts.rootRank if isinstance(opts, Options) else (root if opts is None else opts)
        self._root("broadcast", root)
        if self._check("broadcast", tensors):
            return Work(outputs=tensors)
        flat = _flat(tensors[0])
        if flat.numel():
            self._call("HcclBroadcast", flat.device, flat, flat.numel(), _DTYPES[flat.dtype], root)
        _written(tensors[0], flat)
        return Work(outputs=tensors)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The root gets the reduction of all ranks' tensors, in place."""
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        options = isinstance(opts, Options)
        root, op = (opts.rootRank, opts.reduceOp) if options else (opts or 0, op)
        self._root("reduce", root)
        if self._check("reduce", tensors):
            return Work(outputs=tensors)
        reduction, after = self._reduce_op(op, tensors, "ReduceOptions")
        flat = _flat(tensors[0])
        if flat.numel():
            self._call("HcclReduce", flat.device, flat, flat, flat.numel(), _DTYPES[flat.dtype], reduction, root)
        if root == self._rank:
            if after is not None:
                after(flat)
            _written(tensors[0], flat)
        return Work(outputs=tensors)

    def all_gather_single(
        self, output: Tensor, input: Tensor, opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets all ranks' tensors, joined in the first dimension or stacked."""
        if output.dtype is not input.dtype:
            raise RuntimeError(f"ProcessGroupHCCL::allgather: output has dtype {output.dtype}, input {input.dtype}")
        if output.numel() != input.numel() * self._size:
            raise RuntimeError("output tensor size must be equal to world_size times input tensor size")
        if self._check("allgather", [output, input]):
            return Work(outputs=[output])
        given, taken = _flat(input), _flat(output)
        if given.numel():
            self._call("HcclAllGather", given.device, given, taken, given.numel(), _DTYPES[given.dtype])
        _written(output, taken)
        return Work(outputs=[output])

    _allgather_base = all_gather_single

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Every rank gets all ranks' tensors, in the order of ranks."""
        given = inputs if isinstance(inputs, Tensor) else inputs[0]
        taken = outputs if isinstance(inputs, Tensor) else outputs[0]
        if len(taken) != self._size:
            raise RuntimeError(
                f"ProcessGroupHCCL::allgather: invalid output tensor list (expected length {self._size}, got {len(taken)})"
            )
        self._alike("allgather", taken, given)
        if self._check("allgather", [given, *taken]):
            return Work(outputs=[taken])
        whole = torch.empty((self._size, *given.shape), dtype=given.dtype, device=given.device)
        self.all_gather_single(whole, given)
        _spread(taken, whole)
        return Work(outputs=[taken])

    def gather(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int = 0, timeout: timedelta | None = None
    ) -> Work:
        """The root gets all ranks' tensors. HCCL has no function for it: all ranks get them, and the root keeps them."""
        given = inputs if isinstance(inputs, Tensor) else inputs[0]
        root = opts.rootRank if isinstance(opts, Options) else root
        self._root("gather", root)
        if self._check("gather", [given]):
            return Work(outputs=outputs)
        whole = torch.empty((self._size, *given.shape), dtype=given.dtype, device=given.device)
        self.all_gather_single(whole, given)
        if root == self._rank:
            taken = list(outputs if isinstance(inputs, Tensor) else outputs[0])
            self._alike("gather", taken, given)
            _spread(taken, whole)
        return Work(outputs=outputs)

    def scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int = 0, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets its part of the root's list."""
        taken = outputs if isinstance(outputs, Tensor) else outputs[0]
        root = opts.rootRank if isinstance(opts, Options) else root
        self._root("scatter", root)
        if self._check("scatter", [taken]):
            return Work(outputs=[taken])
        flat, whole = _flat(taken), _flat(taken)
        if root == self._rank:
            given = list(inputs if isinstance(outputs, Tensor) else inputs[0])
            if len(given) != self._size:
                raise RuntimeError(f"ProcessGroupHCCL::scatter: expected {self._size} tensors, got {len(given)}")
            self._alike("scatter", given, taken)
            whole = _flat(torch.stack([tensor.detach() for tensor in given]))
        if flat.numel():
            self._call("HcclScatter", flat.device, whole, flat, flat.numel(), _DTYPES[flat.dtype], root)
        _written(taken, flat)
        return Work(outputs=[taken])

    def reduce_scatter_single(
        self, output: Tensor, input: Tensor, opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets its part, in the first dimension, of the reduction of all ranks' tensors."""
        if output.dtype is not input.dtype:
            raise RuntimeError(f"reduce_scatter_single: output has dtype {output.dtype}, input {input.dtype}")
        if output.numel() * self._size != input.numel():
            raise RuntimeError("input tensor must be the same size as output size times world size")
        op = opts.reduceOp if isinstance(opts, Options) else (opts or ReduceOp.SUM)
        if self._check("reduce_scatter", [output, input]):
            return Work(outputs=[output])
        reduction, after = self._reduce_op(op, [output], "ReduceScatterOptions")
        given, taken = _flat(input), _flat(output)
        if taken.numel():
            self._call("HcclReduceScatter", taken.device, given, taken, taken.numel(), _DTYPES[taken.dtype], reduction)
            if after is not None:
                after(taken)
        _written(output, taken)
        return Work(outputs=[output])

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Every rank gets the reduction of what all ranks have for it."""
        taken = outputs if isinstance(outputs, Tensor) else outputs[0]
        given = list(inputs if isinstance(outputs, Tensor) else inputs[0])
        if len(given) != self._size:
            raise RuntimeError("invalid input tensor list size, must be world size")
        self._alike("reduce_scatter", given, taken)
        if self._check("reduce_scatter", [taken, *given]):
            return Work(outputs=[taken])
        return self.reduce_scatter_single(taken, torch.stack([tensor.detach() for tensor in given]), opts)

    def all_to_all_single(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Any = (),
        input_split_sizes: Any = (),
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Every rank gets from each rank its rows: equally many, or as many as the sizes say."""
        counts, parts = self._split(output, output_split_sizes), self._split(input, input_split_sizes)
        if self._check("alltoall", [output, input]):
            return Work(outputs=[output])
        given, taken = _flat(input), _flat(output)
        self._exchange(given, parts, taken, counts)
        _written(output, taken)
        return Work(outputs=[output])

    alltoall_base = all_to_all_single

    def alltoall(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets from each rank the tensor that this has for it."""
        for what, tensors in (("input", inputs), ("output", outputs)):
            if len(tensors) != self._size:
                raise RuntimeError(
                    f"ProcessGroupHCCL::alltoall: {what} tensor list size {len(tensors)} does not match world size {self._size}"
                )
        if self._check("alltoall", [*outputs, *inputs]):
            return Work(outputs=outputs)
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

    # Messages

    def send(self, tensors: list[Tensor], rank: int, tag: int = 0) -> Work:
        """Send a tensor to a rank. HCCL has no tags: messages between two ranks arrive in their order."""
        self._peer("send", rank)
        if not self._check("send", tensors):
            flat = _flat(tensors[0])
            self._call("HcclSend", flat.device, flat, flat.numel(), _DTYPES[flat.dtype], rank)
        return Work(outputs=tensors)

    def recv(self, tensors: list[Tensor], rank: int, tag: int = 0) -> Work:
        """Receive a tensor from a rank."""
        self._peer("recv", rank)
        if not self._check("recv", tensors):
            flat = _flat(tensors[0])
            self._call("HcclRecv", flat.device, flat, flat.numel(), _DTYPES[flat.dtype], rank)
            _written(tensors[0], flat)
        return Work(outputs=tensors)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        """RuntimeError: HCCL takes messages from named ranks."""
        raise RuntimeError("ProcessGroupHCCL does not support recv from any source")


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


def _spread(taken: Sequence[Tensor], whole: Tensor) -> None:
    for tensor, part in zip(taken, whole, strict=True):
        tensor.detach().copy_(part)
        bump_version(tensor)


def make(store: Store, rank: int, size: int, timeout: timedelta) -> HcclProcessGroup:
    """A group by HCCL. RuntimeError, with the reason, where there is no NPU."""
    if not torch.npu.is_available():
        from .._backends.npu import unavailable_reason

        raise RuntimeError(f"the backend hccl is of NPUs: {unavailable_reason()}")
    return HcclProcessGroup(store, rank, size, timeout)


__all__ = ["HcclProcessGroup", "make"]
