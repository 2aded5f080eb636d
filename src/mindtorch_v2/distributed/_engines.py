"""What moves bytes between ranks: the interface, and the engine of a group of one rank.

A process group hands an engine calls over flat arrays, and gets a request for each: something that is done at some time. Engines are `_mpi_engine` (ranks that
mpiexec or a scheduler started), `_store_engine` (processes of one machine that found each other by a store), and the two here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._reduction import RedOpType

_HERE = __file__.rpartition("distributed")[0]


def place_of_call() -> str:
    """The line of the program, outside of this library, that is running."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@dataclass(slots=True)
class Call:
    """One collective of one rank.

    name: allreduce, broadcast, reduce, allgather, gather, scatter, reduce_scatter, alltoall or barrier.
    text: what must be the same on all ranks: name, reduction, dtype, shapes, root.
    given: the array that this rank hands in, flat; None where it hands in nothing.
    taken: the array where the results go, flat; None where it gets none. An allreduce, a reduce and a broadcast work in it alone.
    parts, counts: of alltoall, how many elements go to each rank and come from it.
    """

    name: str
    text: str
    given: Any
    taken: Any
    op: RedOpType = RedOpType.SUM
    root: int = 0
    parts: list[int] | None = None
    counts: list[int] | None = None
    place: str = ""


class Request:
    """A call that has begun. This one is done."""

    source = -1  # the rank that a message came from

    def poll(self) -> bool:
        """Go on with it; whether it is done. Raises what went wrong."""
        return True

    def wait(self, seconds: float) -> None:
        """Return once it is done. DistBackendError when it is not done in time."""


DONE = Request()


class Engine:
    """Moves bytes between the ranks of a group."""

    rank: int
    size: int

    def start(self, call: Call) -> Request:
        """Begin a collective."""
        raise NotImplementedError

    def quick_allreduce(self, array: np.ndarray, op: RedOpType, text: Callable[[], str], seconds: float) -> bool:
        """An allreduce in place that is waited for, where the engine has a shorter way for this one; False declines, on all ranks alike. text: as `Call` has it."""
        return False

    def send(self, array: np.ndarray, rank: int, tag: int) -> Request:
        """Begin to send a flat array to a rank of the group."""
        raise NotImplementedError

    def receive(self, array: np.ndarray, rank: int | None, tag: int) -> Request:
        """Begin to receive into a flat array from a rank, or from any."""
        raise NotImplementedError

    def late(self, seconds: float) -> list[int]:
        """The ranks that do not come to a common point in time, as rank 0 and those that came see it."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what it has."""


class LocalEngine(Engine):
    """The engine of a group of one rank: results are copies."""

    rank = 0
    size = 1

    def __init__(self) -> None:
        self._sent: dict[int, list[np.ndarray]] = {}

    def start(self, call: Call) -> Request:
        if call.given is not None and call.taken is not None:
            np.copyto(call.taken, call.given)
        return DONE

    def quick_allreduce(self, array: np.ndarray, op: RedOpType, text: Callable[[], str], seconds: float) -> bool:
        return self.size == 1

    def send(self, array: np.ndarray, rank: int, tag: int) -> Request:
        self._sent.setdefault(tag, []).append(array.copy())
        return DONE

    def receive(self, array: np.ndarray, rank: int | None, tag: int) -> Request:
        return _FromSelf(self._sent.setdefault(tag, []), array)

    def late(self, seconds: float) -> list[int]:
        return []


class _FromSelf(Request):
    source = 0

    def __init__(self, sent: list[np.ndarray], array: np.ndarray) -> None:
        self._sent, self._array = sent, array
        self._done = False

    def poll(self) -> bool:
        if not self._done and self._sent:
            self._array[...] = self._sent.pop(0)
            self._done = True
        return self._done

    def wait(self, seconds: float) -> None:
        if not self.poll():
            raise RuntimeError("the only rank of a group receives what it has not sent")


class FakeEngine(LocalEngine):
    """The engine of a fake group of any size: nothing is sent, results are what this rank handed in."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size

    def start(self, call: Call) -> Request:
        if call.given is not None and call.taken is not None and call.taken.size:
            np.copyto(call.taken, np.resize(call.given, call.taken.shape))
        return DONE

    def send(self, array: np.ndarray, rank: int, tag: int) -> Request:
        return DONE

    def receive(self, array: np.ndarray, rank: int | None, tag: int) -> Request:
        return DONE
