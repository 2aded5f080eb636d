"""Process groups: what tensors are to engines that know flat arrays alone, and what is checked before ranks meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

import mindtorch_v2 as torch

from .._pending import exposed
from .._state import TLS
from .._tensor import Tensor, bump_version
from ._engines import Call, Engine, Request, place_of_call
from ._options import Options, operation_of, timeout_of
from ._reduction import OF_BOOL, RedOpType, ReduceOp, kind_of
from ._stores import Store
from ._watching import WATCHERS, watched
from ._work import Work
from .constants import default_pg_timeout


class _Written:
    """A tensor that a call writes, as a flat array; `finish` brings it back where the tensor's memory is no flat one."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.payload = exposed(tensor)
        self.array = _flat(self.payload)

    def finish(self) -> None:
        """The tensor has what the array has."""
        if not np.shares_memory(self.array, self.payload) and self.array.size:
            self.payload[...] = self.array.reshape(self.payload.shape)
        bump_version(self.tensor)


_QUICK = frozenset(
    map(id, (RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX))
)  # hashes of members take long


def _flat(payload: Any) -> np.ndarray:
    return payload.reshape(-1) if payload.flags.c_contiguous else np.ascontiguousarray(payload).reshape(-1)


def _read(tensor: Tensor) -> np.ndarray:
    return _flat(exposed(tensor))


def _text(name: str, tensor: Tensor | None, op: RedOpType | None = None, root: int | None = None) -> str:
    """What all ranks must say alike."""
    shape = "" if tensor is None else f" of {str(tensor.dtype)[6:]}{list(tensor.shape)}"
    return f"{name}{'' if op is None else ' ' + op.name}{shape}{'' if root is None else f' root {root}'}"


def _of_sizes(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"


class ProcessGroup:
    """Some ranks that call collectives together. Its methods are PyTorch's in C++; each gives a Work.

    Tensors are strided ones of the CPU, of any dtype and layout, or on the meta device, where a call is done at once. Ranks are those of the group.

    The public methods read and check what they are given; what moves elements are the methods after them, which a subclass for another device has in place of these, with its names.
    """

    TITLE = "ProcessGroupGloo"  # as errors name the class
    DEVICE = "cpu"  # where tensors are, but for those on the meta device

    class BackendType:
        """The kinds of backends, by the names that are here."""

        UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = range(7)

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        engine: Engine | None = None,
        timeout: timedelta = default_pg_timeout,
        name: str = "undefined",
    ) -> None:
        self.store = store
        self.engine = engine
        self.group_name = ""
        self.group_desc = "undefined"
        self.bound_device_id: Any = None
        self._rank, self._size, self._name = rank, size, name
        self._timeout = timeout
        self._open: dict[Work, Any] = {}  # what has begun, and the memory that it reads or writes

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks the group has."""
        return self._size

    def name(self) -> str:
        """The backend's name."""
        return self._name

    getBackendName = name

    def boxed(self) -> ProcessGroup:
        """The group itself, as operators take it."""
        return self

    @staticmethod
    def unbox(group: ProcessGroup) -> ProcessGroup:
        """The group itself."""
        return group

    def get_group_store(self) -> Store:
        """The store whose keys are the group's alone."""
        return self.store

    def _get_backend(self, device: Any) -> ProcessGroup:
        return self

    @property
    def supports_splitting(self) -> bool:
        """Groups are made of ranks, not by splitting."""
        return False

    supports_coalescing = supports_splitting

    def _set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    _set_default_timeout = _set_timeout

    @property
    def timeout(self) -> timedelta:
        """How long a call waits for the other ranks."""
        return self._timeout

    def shutdown(self) -> None:
        """Wait for what has begun, and free the engine."""
        for work in list(self._open):
            work.wait()
        self._open.clear()
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def abort(self) -> None:
        """Forget what has begun."""
        self._open.clear()
        self.engine = None

    # ------------------------------------------------------------------ calls

    def _running(self) -> Engine:
        if self.engine is None:
            raise RuntimeError("the process group has been destroyed")
        return self.engine

    def _work(
        self, request: Request, outputs: Any, finish: Callable[[], None] | None, timeout: timedelta | None, hold: Any
    ) -> Work:
        seconds = (timeout or self._timeout).total_seconds()
        made = Work(request, outputs, finish, seconds)
        made._keep(self._open, hold)
        return made

    def _collective(
        self,
        call: Call,
        outputs: Any,
        written: Sequence[_Written],
        timeout: timedelta | None = None,
        after: Callable[[], None] | None = None,
    ) -> Work:
        call.place = place_of_call()
        request = self._running().start(call)

        def finish() -> None:
            if after is not None:
                after()
            for item in written:
                item.finish()

        return self._work(request, outputs, finish, timeout, call)

    def _check(self, name: str, tensors: Sequence[Tensor]) -> bool:
        """Refuse what no engine takes; whether there is nothing to exchange, as on the meta device."""
        for tensor in tensors:
            if tensor.layout is not torch.strided:
                raise RuntimeError(f"{self.TITLE}::{name}: unsupported layout")
        kinds = {tensor.device.type for tensor in tensors}
        if kinds - {self.DEVICE, "meta"}:
            others = ", ".join(sorted(kinds - {self.DEVICE}))
            raise RuntimeError(f"{self.TITLE}::{name}: unsupported device type {others}")
        return "meta" in kinds

    def _root(self, name: str, root: int) -> None:
        if not 0 <= root < self._size:
            raise RuntimeError(f"{self.TITLE}::{name}: invalid root rank: {root}")

    def _alike(self, name: str, tensors: Sequence[Tensor], like: Tensor) -> None:
        for index, tensor in enumerate(tensors):
            if tensor.dtype is not like.dtype:
                raise RuntimeError(
                    f"{self.TITLE}::{name}: invalid tensor type at index {index} (expected {_type(like)}, got {_type(tensor)})"
                )
            if tensor.shape != like.shape:
                expected, got = _of_sizes(like.shape), _of_sizes(tensor.shape)
                raise RuntimeError(
                    f"{self.TITLE}::{name}: invalid tensor size at index {index} (expected {expected}, got {got})"
                )

    def _reduction(self, op: Any, dtype: Any, options: str) -> RedOpType:
        kind = kind_of(op, options)
        if kind in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
        if kind is RedOpType.AVG and not (dtype.is_floating_point or dtype.is_complex):
            short = str(torch.empty(0, dtype=dtype).type()).rpartition(".")[2].removesuffix("Tensor")
            raise RuntimeError(f"result type Float can't be cast to the desired output type {short}")
        return kind

    def _reducing(
        self, arrays: Sequence[np.ndarray], op: Any, kind: RedOpType, divided: Sequence[np.ndarray]
    ) -> tuple[RedOpType, Callable[[], None] | None]:
        """The operation between ranks, once this rank's factor is in, and what follows it."""
        if kind is RedOpType.PREMUL_SUM:
            factor = op.factor
            for array in arrays:
                array *= array.dtype.type(factor.item() if isinstance(factor, Tensor) else factor)
            return RedOpType.SUM, None
        if kind is RedOpType.AVG:

            def divide() -> None:
                for array in divided:
                    array /= array.dtype.type(self._size)

            return RedOpType.SUM, divide
        if arrays and arrays[0].dtype == bool:
            return OF_BOOL.get(kind, kind), None
        return kind, None

    def quick_allreduce(self, tensor: Tensor, op: Any) -> bool:
        """`allreduce` of a plain tensor of few elements, which is waited for; False where that needs the general way."""
        data, engine = tensor._payload, self.engine
        if data.__class__ is not np.ndarray or engine is None or id(op) not in _QUICK or not data.flags.c_contiguous:
            return False
        if data.dtype.kind not in ("f" if op is RedOpType.AVG else "fiu") or TLS.pipeline is not None or WATCHERS:
            return False
        if not engine.quick_allreduce(data, op, lambda: _text("all_reduce", tensor, op), self._timeout.total_seconds()):
            return False
        bump_version(tensor)
        return True

    @watched("allreduce_")
    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Every rank gets the reduction of all ranks' tensors, in place."""
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        op = operation_of(opts)
        if not tensors:
            raise RuntimeError(f"{self.TITLE}::allreduce: requires non-empty tensor list")
        kind = self._reduction(op, tensors[0].dtype, "AllreduceOptions")
        if self._check("allreduce", tensors):
            return Work(outputs=tensors)
        return self._allreduce(tensors, op, kind, timeout_of(opts, timeout))

    allreduce_coalesced = allreduce

    @watched("broadcast_")
    def broadcast(self, tensors: Any, opts: Any = None, root: int = 0, timeout: timedelta | None = None) -> Work:
        """Every rank gets the root's tensor."""
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        root = opts.rootRank if isinstance(opts, Options) else (root if opts is None else opts)
        self._root("broadcast", root)
        if self._check("broadcast", tensors):
            return Work(outputs=tensors)
        return self._broadcast(tensors, root, timeout_of(opts, timeout))

    @watched("reduce_")
    def reduce(self, tensors: Any, opts: Any = None, op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The root gets the reduction of all ranks' tensors, in place."""
        tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
        options = isinstance(opts, Options)
        root, op = (opts.rootRank, opts.reduceOp) if options else (opts or 0, op)
        self._root("reduce", root)
        kind = self._reduction(op, tensors[0].dtype, "ReduceOptions")
        if self._check("reduce", tensors):
            return Work(outputs=tensors)
        return self._reduce(tensors, op, kind, root, timeout_of(opts, timeout))

    @watched("allgather_")
    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Every rank gets all ranks' tensors, in the order of ranks."""
        given = inputs if isinstance(inputs, Tensor) else inputs[0]
        taken = list(outputs if isinstance(inputs, Tensor) else outputs[0])
        if len(taken) != self._size:
            raise RuntimeError(
                f"{self.TITLE}::allgather: invalid output tensor list at index 0 (expected length {self._size}, got {len(taken)})"
            )
        self._alike("allgather", taken, given)
        if self._check("allgather", [given, *taken]):
            return Work(outputs=[taken])
        return self._gathered(given, taken, None, timeout_of(opts, timeout), [taken])

    @watched("allgather_coalesced_")
    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """`allgather` of several tensors."""
        works = [
            self.allgather([[row[index] for row in outputs]], [tensor], opts) for index, tensor in enumerate(inputs)
        ]
        for work in works[:-1]:
            work.wait()
        return works[-1]

    @watched("_allgather_base_")
    def all_gather_single(
        self, output: Tensor, input: Tensor, opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets all ranks' tensors, joined in the first dimension or stacked."""
        if output.dtype is not input.dtype:
            raise RuntimeError(
                f"{self.TITLE}::allgather: invalid tensor type at index 0 (expected {_type(input)}, got {_type(output)})"
            )
        if output.numel() != input.numel() * self._size:
            raise RuntimeError("output tensor size must be equal to world_size times input tensor size")
        if self._check("allgather", [output, input]):
            return Work(outputs=[output])
        return self._all_gather_single(output, input, timeout_of(opts, timeout))

    _allgather_base = all_gather_single

    @watched("gather_")
    def gather(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int = 0, timeout: timedelta | None = None
    ) -> Work:
        """The root gets all ranks' tensors."""
        given = inputs if isinstance(inputs, Tensor) else inputs[0]
        root = opts.rootRank if isinstance(opts, Options) else root
        self._root("gather", root)
        taken: list[Tensor] = []
        if root == self._rank:
            taken = list(outputs if isinstance(inputs, Tensor) else outputs[0])
            if len(taken) != self._size:
                raise RuntimeError(
                    f"{self.TITLE}::gather: Incorrect output list size {len(taken)}. Output list size should be {self._size}, same as size of the process group."
                )
            self._alike("gather", taken, given)
        if self._check("gather", [given, *taken]):
            return Work(outputs=outputs)
        return self._gathered(given, taken, root, timeout_of(opts, timeout), outputs)

    @watched("scatter_")
    def scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, root: int = 0, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets its part of the root's list."""
        taken = outputs if isinstance(outputs, Tensor) else outputs[0]
        root = opts.rootRank if isinstance(opts, Options) else root
        self._root("scatter", root)
        given: list[Tensor] = []
        if root == self._rank:
            given = list(inputs if isinstance(outputs, Tensor) else inputs[0])
            if len(given) != self._size:
                raise RuntimeError(
                    f"{self.TITLE}::scatter: Incorrect input list size {len(given)}. Input list size should be {self._size}, same as size of the process group."
                )
            self._alike("scatter", given, taken)
        if self._check("scatter", [taken, *given]):
            return Work(outputs=[taken])
        return self._scatter(taken, given, root, timeout_of(opts, timeout))

    @watched("reduce_scatter_")
    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Every rank gets the reduction of what all ranks have for it."""
        taken = outputs if isinstance(outputs, Tensor) else outputs[0]
        given = list(inputs if isinstance(outputs, Tensor) else inputs[0])
        if len(given) != self._size:
            raise RuntimeError("invalid input tensor list size, must be world size")
        self._alike("reduce_scatter", given, taken)
        return self._part("reduce_scatter", taken, given, opts, timeout)

    @watched("_reduce_scatter_base_")
    def reduce_scatter_single(
        self, output: Tensor, input: Tensor, opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets its part, in the first dimension, of the reduction of all ranks' tensors."""
        if output.dtype is not input.dtype:
            raise RuntimeError(f"reduce_scatter_single: output has dtype {output.dtype}, input {input.dtype}")
        if output.numel() * self._size != input.numel():
            raise RuntimeError("input tensor must be the same size as output size times world size")
        return self._part("reduce_scatter_single", output, [input], opts, timeout)

    _reduce_scatter_base = reduce_scatter_single

    def _part(self, name: str, taken: Tensor, given: list[Tensor], opts: Any, timeout: timedelta | None) -> Work:
        none = self._check("reduce_scatter", [taken, *given])
        op = operation_of(opts)
        kind = self._reduction(op, taken.dtype, "ReduceScatterOptions")
        if none:
            return Work(outputs=[taken])
        return self._reduced_part(name, taken, given, op, kind, timeout_of(opts, timeout))

    @watched("alltoall_")
    def alltoall(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        """Every rank gets from each rank the tensor that this has for it."""
        for what, tensors in (("input", inputs), ("output", outputs)):
            if len(tensors) != self._size:
                raise RuntimeError(
                    f"{self.TITLE}::alltoall: {what} tensor list size {len(tensors)} does not match world size {self._size}"
                )
        if self._check("alltoall", [*outputs, *inputs]):
            return Work(outputs=outputs)
        return self._alltoall(outputs, inputs, timeout_of(opts, timeout))

    @watched("alltoall_base_")
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
        return self._all_to_all_single(output, input, counts, parts, timeout_of(opts, timeout))

    alltoall_base = all_to_all_single

    def _split(self, tensor: Tensor, sizes: Any) -> list[int]:
        rows = tensor.shape[0] if tensor.dim() else 1
        row = tensor.numel() // rows if rows else 0
        if not sizes:
            if rows % self._size:
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            return [rows // self._size * row] * self._size
        if len(sizes) != self._size:
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != rows:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        return [size * row for size in sizes]

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Work:
        """Done once all ranks have called it."""
        return self._collective(Call("barrier", "barrier", None, None), None, [], timeout_of(opts, timeout))

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Return once all ranks have called it. RuntimeError that names those that have not come in time."""
        wanted = timeout or self._timeout
        late = self._running().late(wanted.total_seconds())
        if late:
            who = ", ".join(map(str, late if wait_all_ranks else late[:1]))
            raise RuntimeError(
                f"[Rank {self._rank}]: Rank{'s' if wait_all_ranks else ''} {who} failed to pass monitoredBarrier in {int(wanted.total_seconds() * 1000)} ms"
            )

    def send(self, tensors: list[Tensor], rank: int, tag: int = 0) -> Work:
        """Send a tensor to a rank."""
        self._peer("send", rank)
        return Work(outputs=tensors) if self._check("send", tensors) else self._send(tensors, rank, tag)

    def recv(self, tensors: list[Tensor], rank: int, tag: int = 0) -> Work:
        """Receive a tensor from a rank."""
        self._peer("recv", rank)
        return Work(outputs=tensors) if self._check("recv", tensors) else self._receive(tensors, rank, tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        """Receive a tensor from any rank."""
        return Work(outputs=tensors) if self._check("recv", tensors) else self._receive(tensors, None, tag)

    def _peer(self, name: str, rank: int) -> None:
        if not 0 <= rank < self._size:
            raise RuntimeError(f"{self.TITLE}::{name}: invalid rank {rank} of a group of {self._size}")

    # ------------------------------------------------------------------ what moves elements

    def _allreduce(self, tensors: list[Tensor], op: Any, kind: RedOpType, timeout: timedelta | None) -> Work:
        written = [_Written(tensor) for tensor in tensors]
        if len(written) == 1:
            array = written[0].array
        else:
            array = np.concatenate([item.array for item in written])
        between, after = self._reducing([array], op, kind, [array])
        shapes = "".join(f", {list(tensor.shape)}" for tensor in tensors[1:])
        call = Call("allreduce", _text("all_reduce", tensors[0], kind) + shapes, None, array, between)

        def spread() -> None:
            if after is not None:
                after()
            _spread(written, array)

        return self._collective(call, tensors, written, timeout, after if len(written) == 1 else spread)

    def _broadcast(self, tensors: list[Tensor], root: int, timeout: timedelta | None) -> Work:
        written = _Written(tensors[0])
        call = Call("broadcast", _text("broadcast", tensors[0], root=root), None, written.array, root=root)
        return self._collective(call, tensors, [written], timeout)

    def _reduce(self, tensors: list[Tensor], op: Any, kind: RedOpType, root: int, timeout: timedelta | None) -> Work:
        here = root == self._rank
        written = _Written(tensors[0])
        array = written.array if here or kind is not RedOpType.PREMUL_SUM else written.array.copy()
        between, after = self._reducing([array], op, kind, [array])
        call = Call("reduce", _text("reduce", tensors[0], kind, root), None, array, between, root)
        return self._collective(call, tensors, [written] if here else [], timeout, after if here else None)

    def _gathered(
        self, given: Tensor, taken: list[Tensor], root: int | None, timeout: timedelta | None, outputs: Any
    ) -> Work:
        """Of all ranks where there is no root; without `taken` this rank is not the root."""
        array = _read(given)
        name = "allgather" if root is None else "gather"
        text = _text("all_gather" if root is None else "gather", given, root=root)
        if not taken:
            return self._collective(Call(name, text, array, None, root=root or 0), outputs, [], timeout)
        written = [_Written(tensor) for tensor in taken]
        whole = np.empty(array.size * self._size, array.dtype)
        call = Call(name, text, array, whole, root=root or 0)
        return self._collective(call, outputs, written, timeout, lambda: _spread(written, whole))

    def _all_gather_single(self, output: Tensor, input: Tensor, timeout: timedelta | None) -> Work:
        array = _read(input)
        written = _Written(output)
        if np.shares_memory(array, written.array):
            array = array.copy()
        call = Call("allgather", _text("all_gather_single", input), array, written.array)
        return self._collective(call, [output], [written], timeout)

    def _scatter(self, taken: Tensor, given: list[Tensor], root: int, timeout: timedelta | None) -> Work:
        whole = np.concatenate([_read(tensor) for tensor in given]) if given else None
        written = _Written(taken)
        call = Call("scatter", _text("scatter", taken, root=root), whole, written.array, root=root)
        return self._collective(call, [taken], [written], timeout)

    def _reduced_part(
        self, name: str, taken: Tensor, given: list[Tensor], op: Any, kind: RedOpType, timeout: timedelta | None
    ) -> Work:
        """Of the tensors for each rank, or of one with all of these."""
        written = _Written(taken)
        whole = _read(given[0]) if len(given) == 1 else np.concatenate([_read(tensor) for tensor in given])
        if kind is RedOpType.PREMUL_SUM or np.shares_memory(whole, written.array):
            whole = whole.copy()
        between, after = self._reducing([whole], op, kind, [written.array])
        call = Call("reduce_scatter", _text(name, taken, kind), whole, written.array, between)
        return self._collective(call, [taken], [written], timeout, after)

    def _alltoall(self, outputs: list[Tensor], inputs: list[Tensor], timeout: timedelta | None) -> Work:
        written = [_Written(tensor) for tensor in outputs]
        given = np.concatenate([_read(tensor) for tensor in inputs])
        taken = np.empty(sum(item.array.size for item in written), given.dtype)
        parts, counts = [tensor.numel() for tensor in inputs], [item.array.size for item in written]
        text = f"all_to_all of {str(inputs[0].dtype)[6:]}"
        call = Call("alltoall", text, given, taken, parts=parts, counts=counts)
        return self._collective(call, outputs, written, timeout, lambda: _spread(written, taken))

    def _all_to_all_single(
        self, output: Tensor, input: Tensor, counts: list[int], parts: list[int], timeout: timedelta | None
    ) -> Work:
        written = _Written(output)
        given = _read(input)
        if np.shares_memory(given, written.array):
            given = given.copy()
        text = f"all_to_all_single of {str(input.dtype)[6:]}{list(input.shape[1:])}"
        call = Call("alltoall", text, given, written.array, parts=parts, counts=counts)
        return self._collective(call, [output], [written], timeout)

    def _send(self, tensors: list[Tensor], rank: int, tag: int) -> Work:
        array = _read(tensors[0])
        return self._work(self._running().send(array, rank, tag), tensors, None, None, array)

    def _receive(self, tensors: list[Tensor], rank: int | None, tag: int) -> Work:
        """From any rank where none is named."""
        written = _Written(tensors[0])
        return self._work(self._running().receive(written.array, rank, tag), tensors, written.finish, None, written)


def _spread(written: Sequence[_Written], whole: np.ndarray) -> None:
    """The arrays have their parts of the whole, one after the other."""
    start = 0
    for item in written:
        item.array[...] = whole[start : start + item.array.size]
        start += item.array.size


def _type(tensor: Tensor) -> str:
    name = str(torch.empty(0, dtype=tensor.dtype).type()).rpartition(".")[2].removesuffix("Tensor").lower()
    return (
        f"TensorOptions(dtype={name}, device={tensor.device}, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )
