"""The engine on MPI: ranks that mpiexec, torchrun or a scheduler started.

Note [Calls that fit each other]
MPI does not say what happens when ranks call different collectives, or with different shapes. So each call begins two collectives that do not block: one of a hash of the call's text, and the
call itself, but where the first has room for its elements (Note [Packed calls] in `_packed.py`). Where the hashes differ, every rank tells the others by the store what it called, and raises. The same store says who is missing when time is over.

Note [Waiting]
Requests are asked again and again, with pauses that grow, so that ranks that share a core do not take it from those they wait for, and so that a timeout is one.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import re
import sys
import time
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from . import _packed
from ._engines import Call, Engine, Request, place_of_call
from ._errors import DistBackendError, DistError
from ._reduction import FUNCTIONS, RedOpType
from ._store_engine import mismatch
from ._stores import PrefixStore, Store, late_ranks

_NAMED = re.compile(r"/dev/shm/mpich_shm_\w+$", re.MULTILINE)  # not what is "(deleted)"
_LOOKS = 20  # before the first pause
_QUICK_LOOKS = 400  # of calls that are a message alone: some tens of microseconds, while a pause and what it has the others wait take longer
LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
)
"""What launchers say in the environment: rank, size, rank on the machine, ranks on the machine."""


def launched() -> dict[str, int] | None:
    """What mpiexec or a scheduler says of this process: rank, size, local_rank, local_size. None where none started it."""
    import multiprocessing

    if multiprocessing.parent_process() is not None:
        return None  # a process of a rank's own, which has the rank's environment
    for rank, size, local_rank, local_size in LAUNCHERS:
        if rank in os.environ and size in os.environ:
            number = int(os.environ[rank])
            return {
                "rank": number,
                "size": int(os.environ[size]),
                "local_rank": int(os.environ.get(local_rank, number)),
                "local_size": int(os.environ.get(local_size, os.environ[size]).split("(")[0]),
            }
    return None


@functools.cache
def mpi() -> Any:
    """mpi4py's module, imported with the first group that needs it, since importing it starts MPI."""
    return importlib.import_module("mpi4py.MPI")


def world() -> Any:
    """mpi4py's COMM_WORLD. ImportError where there is no mpi4py or no MPI."""
    return mpi().COMM_WORLD


def unname_memory() -> None:
    """Remove the names of the memory that the ranks of a machine share, which all of them have mapped once they have made a communicator. MPI does it with its end, to which a rank that is killed does not come."""
    maps = Path("/proc/self/maps")
    if maps.exists():
        for path in set(_NAMED.findall(maps.read_text())):
            Path(path).unlink(missing_ok=True)


def leave(code: int) -> None:
    """End this process, which has failed: MPI's own end would wait for the others. They are ended too, by the launcher that waits for that, or else by MPI where it has started them."""
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is None or not MPI.Is_initialized() or MPI.Is_finalized() or MPI.COMM_WORLD.Get_size() == 1:
        return
    if "TORCHELASTIC_RUN_ID" not in os.environ and launched() is not None:
        MPI.COMM_WORLD.Abort(code)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


_datatypes: dict[np.dtype, Any] = {}
_operations: dict[tuple[np.dtype, RedOpType], Any] = {}


def _known(dtype: np.dtype) -> bool:
    """Whether MPI has numbers of this dtype."""
    return dtype.kind in "iufc" and dtype.isbuiltin == 1 and dtype.char != "e"


def _datatype(dtype: np.dtype) -> Any:
    """MPI's type of an element; integers of the same size for those that MPI has not."""
    found = _datatypes.get(dtype)
    if found is None:
        MPI = mpi()

        if dtype.kind == "b":
            found = MPI.UINT8_T
        elif _known(dtype):
            found = MPI.Datatype.fromcode(dtype.char)
        else:
            found = {1: MPI.UINT8_T, 2: MPI.UINT16_T, 4: MPI.UINT32_T, 8: MPI.UINT64_T}[dtype.itemsize]
        _datatypes[dtype] = found
    return found


def _operation(dtype: np.dtype, op: RedOpType) -> Any:
    """MPI's operation; a user-defined one of elements that MPI has not."""
    found = _operations.get((dtype, op))
    if found is None:
        MPI = mpi()

        if dtype.kind == "b" or _known(dtype):
            names = {"PRODUCT": "PROD"}
            found = getattr(MPI, names.get(op.name, op.name))
        else:
            found = MPI.Op.Create(_reducer(dtype, FUNCTIONS[op]), commute=True)
        _operations[dtype, op] = found
    return found


def _reducer(dtype: np.dtype, function: Callable[..., Any]) -> Callable[..., None]:
    def reduce(given: Any, total: Any, datatype: Any) -> None:
        into = np.frombuffer(total, dtype)
        function(np.frombuffer(given, dtype), into, out=into)

    return reduce


def _spec(array: np.ndarray, *more: Any) -> list[Any]:
    return [
        array.view(np.uint8) if array.dtype.isbuiltin != 1 else array,
        *(more or (array.size,)),
        _datatype(array.dtype),
    ]


class MpiEngine(Engine):
    """Exchanges arrays by a communicator of MPI. store: where ranks say what they called, when something is wrong. meets: whether closing waits for the others."""

    def __init__(self, comm: Any, store: Store, meets: bool = False) -> None:
        self.comm, self.meets = comm, meets
        self.store = PrefixStore("engine", store)
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._number = 0
        self._keep: list[Any] = []
        self._checks: list[Any] = []
        self._packs = self.size <= _packed.MOST
        self._buffers: Any = None

    def group(self, ranks: list[int], number: int, store: Store) -> MpiEngine:
        """The engine of some of its ranks, who alone call it."""
        mine = self.comm.Get_group()
        chosen = mine.Incl(ranks)
        try:
            return MpiEngine(self.comm.Create_group(chosen, number % 30000), store)
        finally:
            chosen.Free()
            mine.Free()

    def start(self, call: Call) -> Request:
        MPI = mpi()

        self._number += 1
        number = zlib.crc32(call.text.encode())
        if self._packs:
            packed = _packed.fits(call)
            check = _packed.Exchange(self.comm, self.size, number, call if packed else None, MPI.BYTE)
            if packed:
                return _Collective(self, call, self._number, check, None, packed)
        else:
            check = _Hashes(self.comm, number, MPI)
        try:
            request = self._begin(call, MPI)
        except MPI.Exception as error:
            request, failed = None, error
        else:
            failed = None
        made = _Collective(self, call, self._number, check, request)
        made.failed = failed
        return made

    def quick_allreduce(self, array: np.ndarray, op: RedOpType, text: Callable[[], str], seconds: float) -> bool:
        """An allreduce that is waited for, of a few numbers in an array without gaps; False declines. text: what `Call` has. See Note [Packed calls]."""
        buffers = self._buffers
        if buffers is None:
            if not self._packs:
                return False
            buffers = self._buffers = _packed.Buffers(self.size, mpi().BYTE)
        key = array.shape, array.dtype.num, id(op)
        about = buffers.known.get(key)
        if about is None:
            if array.nbytes > _packed.ROOM:
                return False
            said = text()
            about = _packed.Quick(buffers, array.shape, array.dtype, op, said, zlib.crc32(said.encode()))
            buffers.known[key] = about
        self._number += 1
        buffers.head[0] = number = about.number
        about.mine[...] = array
        request = self.comm.Iallgather(buffers.sends, buffers.takes)
        if not _until(request.Test, seconds, _QUICK_LOOKS):
            self._buffers = None  # MPI may still write to these
            self.keep(buffers, request)
            raise self.missed(self._number, f"{about.text} at {place_of_call()}", seconds)
        for head in buffers.heads:
            if head != number:
                raise mismatch(self.others(self._number, f"{about.text} at {place_of_call()}", 5.0))
        about.reduce(array)
        return True

    def _begin(self, call: Call, MPI: Any) -> Any:
        comm, given, taken = self.comm, call.given, call.taken
        if call.name == "barrier":
            return comm.Ibarrier()
        if call.name == "alltoall":
            return self._alltoall(call)
        if call.name in ("allreduce", "reduce", "reduce_scatter"):
            array = given if call.name == "reduce_scatter" else taken
            assert array is not None
            op = _operation(array.dtype, call.op)
            if call.name == "allreduce":
                return comm.Iallreduce(MPI.IN_PLACE, _spec(array), op)
            if call.name == "reduce":
                if call.root == self.rank:
                    return comm.Ireduce(MPI.IN_PLACE, _spec(array), op, call.root)
                return comm.Ireduce(_spec(array), None, op, call.root)
            return comm.Ireduce_scatter_block(_spec(array, taken.size), _spec(taken), op)
        if call.name == "broadcast":
            return comm.Ibcast(_spec(taken), call.root)
        if call.name == "allgather":
            return comm.Iallgather(_spec(given), _spec(taken, given.size))
        if call.name == "gather":
            return comm.Igather(_spec(given), None if taken is None else _spec(taken, given.size), call.root)
        return comm.Iscatter(None if given is None else _spec(given, taken.size), _spec(taken), call.root)

    def _alltoall(self, call: Call) -> Any:
        parts, counts = np.array(call.parts, np.int64), np.empty(self.size, np.int64)
        self._sync(self.comm.Ialltoall(parts, counts))
        if counts.tolist() != call.counts:
            other = next(rank for rank in range(self.size) if counts[rank] != (call.counts or ())[rank])
            raise mismatch(
                {
                    self.rank: f"{call.text} takes {(call.counts or ())[other]} elements of rank {other} at {call.place}",
                    other: f"{call.text} gives {counts[other]} elements to rank {self.rank}",
                }
            )
        given, taken = call.given, call.taken
        offsets = [sum(call.parts[:rank]) for rank in range(self.size)]  # type: ignore[index]
        starts = [sum(call.counts[:rank]) for rank in range(self.size)]  # type: ignore[index]
        return self.comm.Ialltoallv(_spec(given, (call.parts, offsets)), _spec(taken, (call.counts, starts)))

    def _sync(self, request: Any, seconds: float = 1800.0) -> None:
        _until(request.Test, seconds)

    def send(self, array: np.ndarray, rank: int, tag: int) -> Request:
        return _Message(
            self,
            self.comm.Isend(_spec(array), rank, tag),
            array,
            f"sent {array.nbytes} bytes of tag {tag} to rank {rank}",
        )

    def receive(self, array: np.ndarray, rank: int | None, tag: int) -> Request:
        MPI = mpi()

        request = self.comm.Irecv(_spec(array), MPI.ANY_SOURCE if rank is None else rank, tag)
        source = "any rank" if rank is None else f"rank {rank}"
        return _Message(self, request, array, f"takes {array.nbytes} bytes of tag {tag} from {source}")

    def late(self, seconds: float) -> list[int]:
        self._number += 1
        return late_ranks(self.store, self._number, self.rank, self.size, seconds)

    def keep(self, *things: Any) -> None:
        """Hold what MPI may still write to after an error."""
        self._keep.append(things)

    def others(self, number: int, text: str, seconds: float) -> dict[int, str]:
        """Tell the others about call `number`, and what those tell that do so in time."""
        keys = [f"wrong/{number}/{rank}" for rank in range(self.size)]
        self.store.set(keys[self.rank], text)
        try:
            self.store.wait(keys, timedelta(seconds=seconds))
        except DistError:
            pass  # those that told nothing are what the caller wants to know
        return {rank: self.store.get(key).decode() for rank, key in enumerate(keys) if self.store.check([key])}

    def missed(self, number: int, text: str, seconds: float) -> DistBackendError:
        """The error of a rank that has waited in vain."""
        came = self.others(number, text, 2.0)
        missing = [rank for rank in range(self.size) if rank not in came]
        return DistBackendError(f"rank {self.rank} waited {seconds:g} s in {text}; ranks {missing} did not come")

    def later(self, check: Any) -> None:
        """Go on with the check of a call that its root has done with before the others came."""
        self._checks = [other for other in self._checks if not other.test()]
        self._checks.append(check)

    def close(self) -> None:
        """Free the communicator, once what others wait for has been checked. Where nobody ends MPI the ranks meet, if they come soon: what is on its way stays with its sender until then."""
        if not self._keep:
            for check in self._checks:
                _until(check.test, 30.0)
            if self.meets:
                _until(self.comm.Ibarrier().Test, 2.0)
            self.comm.Free()


def _until(test: Callable[[], bool], seconds: float, looks: int = _LOOKS) -> bool:
    """Ask until it is so; see Note [Waiting]."""
    for _ in range(looks):
        if test():
            return True
    end = time.monotonic() + seconds
    pause = 0.0
    while not test():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(pause + 2e-6, 5e-4)
    return True


class _Hashes:
    """The hash of a call's text on its way, where groups are too large for all ranks' bytes: its least and its greatest value."""

    def __init__(self, comm: Any, number: int, MPI: Any) -> None:
        self._values = np.array([number, -number], np.int64)
        self.test = comm.Iallreduce(MPI.IN_PLACE, self._values, MPI.MIN).Test

    def agrees(self) -> bool:
        """Whether all ranks' hashes are this one's."""
        return bool(self._values[0] == -self._values[1])


class _Collective(Request):
    """request: MPI's, which there is none of where the check has the elements."""

    failed: BaseException | None = None

    def __init__(
        self, engine: MpiEngine, call: Call, number: int, check: Any, request: Any, packed: bool = False
    ) -> None:
        self._engine, self._call, self._number = engine, call, number
        self._check, self._request = check, request
        self._packed = packed
        self._alone = call.name in ("broadcast", "scatter") and call.root == engine.rank
        self._agreed = self._done = False

    def _step(self) -> bool:
        if not self._agreed:
            self._agreed = self._check.test()
            if self._agreed and not self._check.agrees():
                self._engine.keep(self._call, self._check, self._request)
                raise mismatch(self._engine.others(self._number, f"{self._call.text} at {self._call.place}", 5.0))
        if self.failed is not None:
            if self._agreed:
                raise self.failed
            return False
        if self._packed:
            if self._agreed and not self._done:
                self._done = True
                self._check.finish(self._call, self._engine.rank)
            return self._done
        if not self._done:
            try:
                self._done = self._request.Test()
            except Exception as error:  # noqa: BLE001  (of MPI; it is raised when the calls are known to fit each other)
                self.failed = error
                return False
        if self._done and self._alone and not self._agreed:
            self._engine.later(self._check)
            self._agreed = True  # as far as this rank is concerned
        return self._done and self._agreed

    def poll(self) -> bool:
        return self._step()

    def wait(self, seconds: float) -> None:
        if _until(self._step, seconds):
            return
        engine, call = self._engine, self._call
        engine.keep(call, self._request, self._check)
        raise engine.missed(self._number, f"{call.text} at {call.place}", seconds)


class _Message(Request):
    def __init__(self, engine: MpiEngine, request: Any, array: np.ndarray, text: str) -> None:
        self._engine, self._request, self._array, self._text = engine, request, array, text
        self._done = False

    def poll(self) -> bool:
        MPI = mpi()

        if not self._done:
            status = MPI.Status()
            try:
                self._done = self._request.Test(status)
            except MPI.Exception as error:
                raise DistBackendError(f"rank {self._engine.rank} {self._text}: {error}") from None
            if self._done and self._text.startswith("takes"):
                self.source = status.Get_source()
                count = status.Get_count(MPI.BYTE)
                if count != self._array.nbytes:
                    raise DistBackendError(
                        f"rank {self._engine.rank} {self._text}; rank {self.source} has sent {count} bytes"
                    )
        return self._done

    def wait(self, seconds: float) -> None:
        if not _until(self.poll, seconds):
            self._engine.keep(self._request, self._array)
            raise DistBackendError(
                f"rank {self._engine.rank} {self._text}: the other side did not come in {seconds:g} s"
            )


__all__ = ["MpiEngine", "launched", "leave", "world"]
