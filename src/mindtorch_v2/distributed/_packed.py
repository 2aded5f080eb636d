"""Small calls between ranks, in one message with the check that the calls fit each other.

Note [Packed calls]
In a group of at most MOST ranks the hash of a call's text goes round by an allgather of a fixed number of bytes, whatever the call is, and what is behind the hash has room for the elements of a small
one. Then this allgather is all that the call needs: each rank has what every rank handed in, and reduces it itself, in the order of ranks, so that all have the same bits. Whether a call is packed follows
from its text, so ranks whose hashes agree agree on that too. Roots that need not wait for others (broadcast, scatter) do not wait, so these calls are not packed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._engines import Call
from ._reduction import FUNCTIONS, RedOpType

MOST = 16
"""Ranks of a group up to which calls are packed: each gets the bytes of all."""
BYTES = 256
_HEAD = 8
ROOM = BYTES - _HEAD
"""Bytes of elements."""
_PACKED = frozenset(("allreduce", "reduce", "allgather", "gather", "reduce_scatter", "barrier"))


def fits(call: Call) -> bool:
    """Whether a call is packed."""
    if call.name not in _PACKED:
        return False
    array = _handed_in(call)
    return array is None or array.nbytes <= ROOM


def _handed_in(call: Call) -> Any:
    return call.taken if call.name in ("allreduce", "reduce") else call.given


class Exchange:
    """The hash of a call, with its elements where it is packed, on their way to all ranks."""

    __slots__ = ("number", "size", "taken", "test")

    def __init__(self, comm: Any, size: int, number: int, call: Call | None, byte: Any) -> None:
        sent, self.taken = np.zeros(BYTES, np.uint8), np.empty(BYTES * size, np.uint8)
        self.number, self.size = number, size
        sent[:_HEAD].view(np.int64)[0] = number
        array = None if call is None else _handed_in(call)
        if array is not None:
            sent[_HEAD : _HEAD + array.nbytes] = array.view(np.uint8)
        request = comm.Iallgather((sent, BYTES, byte), (self.taken, BYTES, byte))
        self.test: Callable[[], bool] = request.Test

    def agrees(self) -> bool:
        """Whether all ranks' hashes are this one's."""
        heads = self.taken.view(np.int64)[:: BYTES // 8]
        return bool((heads == self.number).all())

    def finish(self, call: Call, rank: int) -> None:
        """Write the results of a packed call."""
        array = _handed_in(call)
        if array is None or (call.name in ("reduce", "gather") and call.root != rank):
            return
        parts = [_part(self.taken, each, array.dtype, array.size) for each in range(self.size)]
        if call.name in ("allgather", "gather"):
            np.concatenate(parts, out=call.taken)
            return
        if call.name == "reduce_scatter":
            mine = slice(rank * call.taken.size, (rank + 1) * call.taken.size)
            parts = [part[mine] for part in parts]
        _reduce(parts, FUNCTIONS[call.op], call.taken)


def _part(taken: np.ndarray, rank: int, dtype: np.dtype, count: int) -> np.ndarray:
    start = rank * BYTES + _HEAD
    return taken[start : start + count * dtype.itemsize].view(dtype)


def _reduce(parts: list[np.ndarray], function: Any, out: np.ndarray) -> None:
    if len(parts) == 1:
        out[...] = parts[0]
        return
    function(parts[0], parts[1], out=out)
    for part in parts[2:]:
        function(out, part, out=out)


class Quick:
    """What is the same for every all_reduce of a shape, dtype and reduction of a group, which waits for each: views of one pair of buffers."""

    __slots__ = ("divisor", "function", "mine", "number", "others", "parts", "text")

    def __init__(self, buffers: Buffers, shape: tuple, dtype: np.dtype, op: RedOpType, text: str, number: int) -> None:
        count = int(np.prod(shape))
        self.text, self.number = text, number
        self.mine = _part(buffers.sent, 0, dtype, count).reshape(shape)
        self.parts = [_part(buffers.taken, rank, dtype, count).reshape(shape) for rank in range(buffers.size)]
        self.others = self.parts[2:]
        self.function = FUNCTIONS[RedOpType.SUM if op is RedOpType.AVG else op]
        self.divisor = dtype.type(buffers.size) if op is RedOpType.AVG else None

    def reduce(self, out: np.ndarray) -> None:
        """The reduction of what has arrived."""
        if len(self.parts) == 1:
            out[...] = self.parts[0]
        else:
            self.function(self.parts[0], self.parts[1], out)
            for part in self.others:
                self.function(out, part, out)
        if self.divisor is not None:
            out /= self.divisor


class Buffers:
    """What the quick calls of an engine send and take, one after the other. known: by shape, dtype and reduction."""

    def __init__(self, size: int, byte: Any) -> None:
        self.size = size
        self.sent, self.taken = np.zeros(BYTES, np.uint8), np.zeros(BYTES * size, np.uint8)
        self.head = memoryview(self.sent).cast("q")  # type: ignore[arg-type]
        self.heads = memoryview(self.taken).cast("q")[:: BYTES // 8]  # type: ignore[arg-type]
        self.sends, self.takes = (self.sent, BYTES, byte), (self.taken, BYTES, byte)
        self.known: dict[tuple, Quick] = {}
