"""One MPI world for processes of one machine that mpiexec has not started: those of `mp.spawn`, or of a shell.

Note [Places of mpiexec]
Processes that meet at a store take places that mpiexec makes. Each listens at a socket, whose path the store has; rank 0 starts an mpiexec with as many stand-ins (`_place.py`), and each of these hands its
connection to MPI's process manager over to the rank whose place it has. With that the ranks start MPI as if mpiexec had started them, in one world, and exchange tensors through shared memory. Then the stand-ins
and mpiexec end: MPI asks them for nothing any more, but when it ends itself, so these processes do not end it. Where a rank is elsewhere, has MPI already or gets no connection (an mpiexec that
has none of that kind), all ranks alike leave the exchange to the store.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path
from typing import Any

from .._launching.mpiexec import FOREIGN, find_mpiexec, mpi_command
from ._mpi_engine import mpi, world
from ._store_engine import machine
from ._stores import PrefixStore, Store

_STAND_IN = str(Path(__file__).with_name("_place.py"))
_PATIENCE = 30.0  # seconds for mpiexec to start the stand-ins
_taken: list[str] = []  # the world of this process: its name, rank and size


def taken() -> bool:
    """Whether this process's world of MPI is one of these."""
    return bool(_taken)


def may_take() -> bool:
    """Whether a process looks for a place: not the ranks of torchrun, which has started them with MPI or is told not to, and not where MINDTORCH_V2_MPI is 0."""
    if os.environ.get("MINDTORCH_V2_MPI") == "0":
        return False
    return multiprocessing.parent_process() is not None or "TORCHELASTIC_RUN_ID" not in os.environ


def take(store: Store, rank: int, size: int) -> Any:
    """A communicator of all ranks, which all of them ask for; None where they cannot have one."""
    store = PrefixStore("places", store)
    said = _agreed(store, "ready", _ready(rank, size), rank, size)
    if not said or said[0].startswith("none") or len(set(said)) > 1:
        return None
    if not said[0].startswith("new"):
        return world()
    with tempfile.TemporaryDirectory(prefix="mindtorch-place-") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "s")
        listener.bind(path)
        listener.listen(1)
        listener.settimeout(_PATIENCE)
        paths = _agreed(store, "paths", path, rank, size)
        if rank == 0:
            store.set("name", uuid.uuid4().hex)
            started = _start(paths)
            threading.Thread(target=started.wait, daemon=True).start()
        connection, variables = _handed_over(listener)
    if any(not one for one in _agreed(store, "got", "1" if variables else "", rank, size)):
        if connection is not None:
            connection.close()
        return None
    found = _begin(variables)
    if connection is not None:
        connection.close()
    if (found.Get_rank(), found.Get_size()) != (rank, size):
        raise RuntimeError(f"rank {rank} of {size} is {found.Get_rank()} of {found.Get_size()} in its world of MPI")
    _taken[:] = [store.get("name").decode(), str(rank), str(size), str(os.getpid())]
    return found


def _agreed(store: Store, key: str, text: str, rank: int, size: int) -> list[str]:
    """What every rank says."""
    keys = [f"{key}/{each}" for each in range(size)]
    store.set(keys[rank], text)
    store.wait(keys)
    return [store.get(each).decode() for each in keys]


def _ready(rank: int, size: int) -> str:
    """What ranks that can take places say alike."""
    if _taken and _taken[1:] == [str(rank), str(size), str(os.getpid())]:
        return f"world {_taken[0]}"
    if "mpi4py.MPI" in sys.modules or find_mpiexec() is None:
        return f"none {rank}"
    return f"new {machine()} {sys.executable}"


def _start(paths: list[str]) -> subprocess.Popen:
    mpiexec = find_mpiexec()
    assert mpiexec is not None
    command, environment = mpi_command(mpiexec, len(paths), os.environ)
    return subprocess.Popen(
        [*command, sys.executable, "-S", "-E", _STAND_IN, *paths],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def _handed_over(listener: socket.socket) -> tuple[socket.socket | None, dict[str, str]]:
    """The stand-in's connection, and the variables that name the process manager's; none where nobody comes, or with nothing."""
    try:
        connection, _ = listener.accept()
        said, numbers, _, _ = socket.recv_fds(connection, 1 << 16, 1)
    except OSError:
        return None, {}
    if not numbers:
        return connection, {}
    return connection, json.loads(said) | {"PMI_FD": str(numbers[0])}


def _begin(variables: dict[str, str]) -> Any:
    """Start MPI with these variables, which this process's own children do not get. mpi4py would keep other threads from running, of which one may serve the store that the others ask."""
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(FOREIGN)}
    os.environ.update(variables)
    try:
        settings = importlib.import_module("mpi4py").rc
        settings.initialize = settings.finalize = False  # the process manager has gone by the end
        MPI = mpi()
        level = ctypes.c_int()
        failed = ctypes.CDLL(MPI.__file__).MPI_Init_thread(None, None, MPI.THREAD_MULTIPLE, ctypes.byref(level))
        if failed:
            raise RuntimeError(f"MPI does not start: error {failed}")
        MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)
        return MPI.COMM_WORLD
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)
