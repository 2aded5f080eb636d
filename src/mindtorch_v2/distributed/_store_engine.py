"""The engine of processes that found each other by a store, without MPI: what they exchange goes through the store.

Note [Messages in a store]
Collective number n of a group is what each rank puts under `n/RANK` (a `_Letter`): the call's text, its line, and the elements that others need. A rank takes what it needs of the others, counts itself in
`n/taken`, and the last one forgets the keys. Large arrays go by a file, in memory where there is a folder for that; the message has its path then. Ranks of several machines have no such folder together, so
there all elements go through the store's server, which is slow and is said once. Message number n of a rank to another one
is `SOURCE>TARGET/TAG/n`. Nothing is answered, so a rank that is ahead never waits for one that is behind, and calls that have begun need nobody to go on with them.
"""

from __future__ import annotations

import atexit
import glob
import os
import socket
import tempfile
import time
import uuid
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from ._engines import DONE, Call, Engine, Request
from ._errors import DistBackendError, DistError
from ._reduction import FUNCTIONS
from ._stores import PrefixStore, Store, late_ranks, served_by_launcher

_LARGE = 1 << 16
_PATIENCE = 10.0  # seconds that rank 0 waits for the others to leave
_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass(slots=True)
class _Letter:
    """What one rank says in one call: the call, its line, how many elements are for each rank (of alltoall alone), and where the elements are."""

    text: str
    place: str
    parts: list[int]
    kind: str  # d: the elements follow; f: the path of a file; empty: there are none
    data: bytes

    @staticmethod
    def of(message: bytes) -> _Letter:
        text, place, parts, kind, data = message.split(b"\0", 4)
        return _Letter(text.decode(), place.decode(), [int(part) for part in parts.split()], kind.decode(), data)

    def elements(self) -> np.ndarray:
        """The elements' bytes."""
        return np.frombuffer(self.data, np.uint8) if self.kind == "d" else np.fromfile(self.data.decode(), np.uint8)

    def forget(self) -> None:
        """Remove the file, if there is one."""
        if self.kind == "f":
            os.remove(self.data.decode())


def machine() -> str:
    """What processes that see the same files in memory say alike."""
    boot = "/proc/sys/kernel/random/boot_id"
    where = os.stat(_FOLDER or tempfile.gettempdir()).st_dev
    started = Path(boot).read_text().strip() if os.path.exists(boot) else ""
    return f"{socket.gethostname()} {started} {where}"


def _files_of(pid: int) -> str:
    """How the paths of a process's files begin."""
    return os.path.join(_FOLDER or tempfile.gettempdir(), f"mindtorch-{pid}-")


def forget_files(pid: int) -> None:
    """Remove the files of a process that has ended before others took them."""
    for path in glob.glob(glob.escape(_files_of(pid)) + "*"):
        try:
            os.remove(path)
        except FileNotFoundError:
            pass  # a process that still runs has taken it


def _message(
    text: str, place: str, parts: list[int] | None, array: np.ndarray | None, files: Callable[[], bool]
) -> bytes:
    kind, data = "", b""
    if array is not None:
        raw = array.view(np.uint8)
        if raw.nbytes < _LARGE or not files():
            kind, data = "d", raw.tobytes()
        else:
            path = f"{_files_of(os.getpid())}{uuid.uuid4().hex}"
            raw.tofile(path)
            kind, data = "f", path.encode()
    head = [text, place, " ".join(map(str, parts or ())), kind]
    return b"\0".join([*(field.encode() for field in head), data])


class StoreEngine(Engine):
    """Exchanges arrays by a store that all ranks of the group have."""

    def __init__(self, store: Store, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.store = PrefixStore("engine", store)
        self._number = 0
        self._sent: dict[tuple[int, int], int] = defaultdict(int)
        self._got: dict[tuple[int, int], int] = defaultdict(int)
        self._left = False
        self._together: bool | None = None
        atexit.register(self.close)
        self.store.set(f"machine/{rank}", machine())

    def shares_files(self) -> bool:
        """Whether all ranks are on one machine, which each has said when its engine was made. Says once that it is slow where they are not."""
        if self._together is None:
            said = [self.store.get(f"machine/{rank}") for rank in range(self.size)]
            self._together = len(set(said)) == 1
            if not self._together and self.rank == 0:
                warnings.warn(
                    f"ranks on {len(set(said))} machines exchange tensors through the store's server, which is slow: start them by srun or mpiexec, with "
                    "mindtorch_v2[distributed] installed, to exchange them by MPI"
                )
        return self._together

    def close(self) -> None:
        """Rank 0, whose process may have the store's server, leaves last."""
        if self._left:
            return
        self._left = True
        atexit.unregister(self.close)
        try:
            here = self.store.add("left", 1)
            end = time.monotonic() + (0.0 if served_by_launcher() else _PATIENCE)
            while self.rank == 0 and here < self.size and time.monotonic() < end:
                time.sleep(0.005)
                here = self.store.add("left", 0)
        except DistError:
            pass  # the server has gone, so nobody is left who would need it

    def start(self, call: Call) -> Request:
        self._number += 1
        prefix = f"{self._number}/"
        given = call.given if call.name not in ("allreduce", "reduce", "broadcast") else call.taken
        if call.name == "broadcast" and call.root != self.rank:
            given = None
        message = _message(call.text, call.place, call.parts, given, self.shares_files)
        self.store.set(f"{prefix}{self.rank}", message)
        return _Collective(self, call, prefix, message)

    def send(self, array: np.ndarray, rank: int, tag: int) -> Request:
        number = self._sent[rank, tag]
        self._sent[rank, tag] += 1
        self.store.set(f"{self.rank}>{rank}/{tag}/{number}", _message("", "", None, array, self.shares_files))
        return DONE

    def receive(self, array: np.ndarray, rank: int | None, tag: int) -> Request:
        return _Message(self, array, rank, tag)

    def next_key(self, rank: int, tag: int) -> str:
        """The key of the next message from a rank."""
        return f"{rank}>{self.rank}/{tag}/{self._got[rank, tag]}"

    def took(self, rank: int, tag: int) -> None:
        """Count a message that has been taken."""
        self._got[rank, tag] += 1

    def late(self, seconds: float) -> list[int]:
        self._number += 1
        return late_ranks(self.store, self._number, self.rank, self.size, seconds)


class _Collective(Request):
    def __init__(self, engine: StoreEngine, call: Call, prefix: str, own: bytes) -> None:
        self._engine, self._call, self._prefix, self._own = engine, call, prefix, own
        self._done = False
        alone = call.name in ("broadcast", "scatter")
        if alone or call.name in ("gather", "reduce"):
            self._needed = [call.root] if alone or engine.rank != call.root else list(range(engine.size))
        else:
            self._needed = list(range(engine.size))

    def poll(self) -> bool:
        if not self._done and self._engine.store.check([f"{self._prefix}{rank}" for rank in self._needed]):
            self._finish()
        return self._done

    def wait(self, seconds: float) -> None:
        if self._done:
            return
        keys = [f"{self._prefix}{rank}" for rank in self._needed]
        store = self._engine.store
        try:
            store.wait(keys, timedelta(seconds=seconds))
        except DistError:
            missing = [rank for rank, key in zip(self._needed, keys) if not store.check([key])]
            raise DistBackendError(
                f"rank {self._engine.rank} waited {seconds:g} s in {self._call.text}, called at {self._call.place}; ranks {missing} did not come"
            ) from None
        self._finish()

    def _finish(self) -> None:
        engine, call = self._engine, self._call
        letters = {engine.rank: _Letter.of(self._own)}
        for rank in self._needed:
            if rank != engine.rank:
                letters[rank] = _Letter.of(engine.store.get(f"{self._prefix}{rank}"))
        if any(letter.text != call.text for letter in letters.values()):
            said = {rank: f"{letter.text} at {letter.place}" for rank, letter in letters.items()}
            raise mismatch(said)
        self._take(letters)
        self._done = True
        if engine.store.add(f"{self._prefix}taken", 1) == engine.size:
            for rank in range(engine.size):
                key = f"{self._prefix}{rank}"
                (letters.get(rank) or _Letter.of(engine.store.get(key))).forget()
                engine.store.delete_key(key)
            engine.store.delete_key(f"{self._prefix}taken")

    def _take(self, letters: dict[int, _Letter]) -> None:
        call, rank, size = self._call, self._engine.rank, self._engine.size
        taken = call.taken
        if taken is None or call.name == "barrier" or (call.name in ("gather", "reduce") and rank != call.root):
            return
        arrays = {other: letter.elements().view(taken.dtype) for other, letter in letters.items() if letter.kind}
        if call.name in ("allreduce", "reduce", "reduce_scatter"):
            parts = [arrays[other] for other in range(size)]
            if call.name == "reduce_scatter":
                parts = [part.reshape(size, -1)[rank] for part in parts]
            total = parts[0].copy()
            for part in parts[1:]:
                FUNCTIONS[call.op](total, part, out=total)
            taken[...] = total
        elif call.name == "broadcast":
            taken[...] = arrays[call.root]
        elif call.name == "scatter":
            taken[...] = arrays[call.root].reshape(size, -1)[rank]
        elif call.name == "alltoall":
            at = 0
            for other, count in enumerate(call.counts or ()):
                sent = letters[other].parts
                if sent[rank] != count:
                    takes, gives = (
                        f"takes {count} elements of rank {other}",
                        f"gives {sent[rank]} elements to rank {rank}",
                    )
                    raise mismatch({rank: f"{call.text} {takes}", other: f"{call.text} {gives}"})
                start = sum(sent[:rank])
                taken[at : at + count] = arrays[other][start : start + count]
                at += count
        else:
            taken[...] = np.concatenate([arrays[other] for other in range(size)])


class _Message(Request):
    def __init__(self, engine: StoreEngine, array: np.ndarray, rank: int | None, tag: int) -> None:
        self._engine, self._array, self._rank, self._tag = engine, array, rank, tag
        self._done = False

    def _from(self) -> list[int]:
        return list(range(self._engine.size)) if self._rank is None else [self._rank]

    def poll(self) -> bool:
        if not self._done:
            for rank in self._from():
                key = self._engine.next_key(rank, self._tag)
                if self._engine.store.check([key]):
                    self._take(rank, key)
                    break
        return self._done

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.poll():
            if time.monotonic() > end:
                source = "any rank" if self._rank is None else f"rank {self._rank}"
                raise DistBackendError(
                    f"rank {self._engine.rank} waited {seconds:g} s for a message of tag {self._tag} from {source}, which did not come"
                )
            if self._rank is None:
                time.sleep(0.001)
            else:
                self._sleep(end)

    def _sleep(self, end: float) -> None:
        assert self._rank is not None
        try:
            self._engine.store.wait(
                [self._engine.next_key(self._rank, self._tag)], timedelta(seconds=max(0.001, end - time.monotonic()))
            )
        except DistError:
            pass  # `wait` says so, when it is time

    def _take(self, rank: int, key: str) -> None:
        letter = _Letter.of(self._engine.store.get(key))
        raw = letter.elements()
        self._engine.took(rank, self._tag)
        self._engine.store.delete_key(key)
        letter.forget()
        if raw.nbytes != self._array.nbytes:
            raise DistBackendError(
                f"rank {self._engine.rank} takes a message of {self._array.nbytes} bytes from rank {rank}, which has sent {raw.nbytes} bytes"
            )
        self._array.view(np.uint8)[...] = raw
        self.source = rank
        self._done = True


def mismatch(calls: dict[Any, str]) -> DistBackendError:
    """The error of calls that do not fit each other."""
    lines = "".join(f"\n  rank {rank}: {call}" for rank, call in calls.items())
    return DistBackendError(f"the ranks' calls do not fit each other:{lines}")
