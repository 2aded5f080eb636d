"""The launcher of several ranks: it starts them, by mpiexec where MPI is installed, shows what they print, ends all when one fails, and starts them anew.

Each rank is a process of `rank.py`, see Note [The launcher's connections]. The store in which the ranks find each other is kept here, so it outlives every one of them.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from .mpiexec import find_mpiexec, mpi_command

_STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rank.py")
_LAST_WORDS = 400  # lines of each rank's errors that are kept for the end
_TRACEBACK = b"Traceback (most recent call last)"
_CHAINED = (b"The above exception was the direct cause", b"During handling of the above exception")
_LOOK = 0.1  # seconds between two looks at what says nothing by itself
_DRAIN = 1.0  # seconds for what a rank has printed, when its children still have its streams
_MEETING = timedelta(minutes=10)


@dataclass
class Settings:
    """What is started, and how.

    command: of one rank. processes: how many here. nodes, node: how many machines, and which of them this is. engine: "mpi" or "store". streams: of a local rank and "out" or "err", whether it is shown,
    and whether it goes into a file of `log_dir`.
    """

    command: list[str]
    processes: int
    nodes: int = 1
    node: int = 0
    host: str = "localhost"
    port: int = 0
    role: str = "default"
    run_id: str = "none"
    engine: str = "mpi"
    max_restarts: int = 0
    patience: float = 5.0
    log_dir: str | None = None
    redirected: dict[int, set[str]] = field(default_factory=dict)
    copied: dict[int, set[str]] = field(default_factory=dict)
    shown: set[int] | None = None
    virtual_local_rank: bool = False


class _Rank:
    """What is known of a rank."""

    def __init__(self, local: int) -> None:
        self.local = local
        self.pid: int | None = None
        self.code: int | None = None
        self.ended = False
        self.streams = 0
        self.says: socket.socket | None = None
        self.words: deque[bytes] = deque(maxlen=_LAST_WORDS)

    def how(self) -> str:
        """How it ended."""
        if self.code is None:
            return "was ended by MPI"
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit code {self.code}"

    def last_words(self) -> list[bytes]:
        """The traceback at the end of its errors, with those that it follows from; the last lines where there is none."""
        lines = list(self.words)
        starts = [index for index, line in enumerate(lines) if _TRACEBACK in line]
        if not starts:
            return lines[-10:]
        first = starts.pop()
        while starts and any(mark in line for line in lines[starts[-1] : first] for mark in _CHAINED):
            first = starts.pop()
        return lines[first:]


class _Stream:
    """A rank's output or errors: whole lines, with the rank before each."""

    def __init__(
        self, connection: socket.socket, rank: _Rank, name: str, number: int, settings: Settings, attempt: str
    ) -> None:
        self.connection, self.rank, self.name = connection, rank, name
        self._mark = f"[rank{number}]: ".encode()
        self._rest = b""
        both = settings.redirected.get(rank.local, set()), settings.copied.get(rank.local, set())
        here = name not in both[0] or name in both[1]
        self._shown = here and (settings.shown is None or rank.local in settings.shown)
        self._into: Any = sys.stdout if name == "out" else sys.stderr
        self._file: Any = None
        if any(name in one for one in both):
            folder = os.path.join(str(settings.log_dir), f"attempt_{attempt}")
            os.makedirs(os.path.join(folder, str(rank.local)), exist_ok=True)
            self._file = open(os.path.join(folder, str(rank.local), f"std{name}.log"), "wb")

    def feed(self, data: bytes) -> None:
        """Show what has come, as far as lines are whole; progress bars end theirs by carriage returns."""
        if self._file is not None:
            self._file.write(data)
            self._file.flush()
        lines = (self._rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\r\0").replace(b"\n", b"\n\0").split(b"\0")
        self._rest = lines.pop()
        self._show(lines)

    def _show(self, lines: list[bytes]) -> None:
        marked = [line if line.startswith(self._mark) or not line.strip() else self._mark + line for line in lines]
        if self.name == "err":
            self.rank.words.extend(line for line in marked if line.endswith(b"\n"))
        if self._shown and marked:
            write(self._into, b"".join(marked))

    def close(self) -> None:
        """Show what is left."""
        if self._rest:
            self._show([self._rest + b"\n"])
            self._rest = b""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.connection.close()


def write(into: Any, data: bytes) -> None:
    """Write to a text stream as it is, or as text where there is nothing below it."""
    below = getattr(into, "buffer", None)
    into.flush()
    if below is None:
        into.write(data.decode(errors="replace"))
    else:
        below.write(data)
        below.flush()
    into.flush()


class Attempt:
    """All ranks of this machine, from their start to their end."""

    def __init__(self, settings: Settings, environment: dict[str, str], store: Any) -> None:
        self.settings, self.environment, self.store = settings, environment, store
        self.ranks = [_Rank(local) for local in range(settings.processes)]
        self.failed: _Rank | None = None
        self.elsewhere = False
        self.signal = 0
        self._folder = tempfile.mkdtemp(prefix="torchrun-")
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.path.join(self._folder, "s"))
        self._listener.listen(4 * settings.processes + 4)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._said = tempfile.TemporaryFile()
        self._ending = 0.0
        self._killed = False
        self._looked = 0.0

    # ------------------------------------------------------------------ starting

    def start(self) -> None:
        """Start the processes. RuntimeError where mpiexec is asked for and is not there."""
        settings = self.settings
        environment = os.environ | self.environment
        count = settings.processes
        if settings.engine == "mpi":
            from ..distributed._mpi_engine import LAUNCHERS

            mpiexec = find_mpiexec()
            if mpiexec is None:
                raise RuntimeError(
                    "torch.distributed.run --engine mpi: mpi4py or mpiexec is missing; pip install mindtorch_v2[distributed] brings both"
                )
            command, own = mpi_command(mpiexec, count, environment)
            names = ",".join(launcher[0] for launcher in LAUNCHERS[:3])
            self._open([*command, *self._stand_in(0, names)], own)
            return
        for local in range(count):
            self._open(self._stand_in(local, ""), environment)

    def _stand_in(self, local: int, names: str) -> list[str]:
        path = os.path.join(self._folder, "s")
        return [sys.executable, "-S", "-E", _STAND_IN, path, str(local), names, *self.settings.command]

    def _open(self, command: list[str], environment: dict[str, str]) -> None:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            env=environment,
            start_new_session=True,
        )
        self._processes.append(started)

    # ------------------------------------------------------------------ listening

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        head = b""
        while not head.endswith(b"\n"):
            more = connection.recv(1)
            if not more:
                connection.close()
                return
            head += more
        local, what = head.decode().split()
        rank = self.ranks[int(local)]
        connection.setblocking(False)
        if what == "says":
            rank.says = connection
            rest = bytearray()
            self._selector.register(connection, selectors.EVENT_READ, lambda one: self._hear(rank, one, rest))
            return
        number = int(self.environment["MINDTORCH_FIRST_RANK"]) + rank.local
        attempt = self.environment["TORCHELASTIC_RESTART_COUNT"]
        stream = _Stream(connection, rank, what, number, self.settings, attempt)
        rank.streams += 1
        self._selector.register(connection, selectors.EVENT_READ, lambda one: self._pass_on(stream))

    def _pass_on(self, stream: _Stream) -> None:
        try:
            data = stream.connection.recv(1 << 16)
        except ConnectionError:
            data = b""
        if data:
            stream.feed(data)
            return
        self._selector.unregister(stream.connection)
        stream.rank.streams -= 1
        stream.close()

    def _hear(self, rank: _Rank, connection: socket.socket, rest: bytearray) -> None:
        try:
            data = connection.recv(1 << 12)
        except ConnectionError:
            data = b""
        rest += data
        *lines, left = bytes(rest).split(b"\n")
        rest[:] = left
        for line in lines:
            said = json.loads(line)
            rank.pid = said.get("pid", rank.pid)
            if "code" in said:
                rank.code = said["code"]
                self._end_of(rank)
                if self._ending and not rank.ended:
                    self._signal(rank, signal.SIGTERM)
        if not data:
            self._selector.unregister(connection)
            self._end_of(rank)

    def _end_of(self, rank: _Rank) -> None:
        if rank.ended:
            return
        rank.ended = True
        if rank.code != 0 and not self._ending:
            self.failed = rank
            self.end()
            if self.settings.nodes > 1:
                self.store.set(self._key("failed"), self.environment["GROUP_RANK"])

    # ------------------------------------------------------------------ ending

    def end(self) -> None:
        """Ask all ranks to end; those that do not are killed when their time is over."""
        if not self._ending:
            self._ending = time.monotonic() + self.settings.patience
            for rank in self.ranks:
                self._signal(rank, signal.SIGTERM)

    def _signal(self, rank: _Rank, number: int) -> None:
        if rank.pid is not None and not rank.ended:
            try:
                os.kill(rank.pid, number)
            except ProcessLookupError:
                pass  # it has ended, and will say so

    def _look(self) -> None:
        """Look at what says nothing by itself: time, signals, other machines, processes that have gone without a word."""
        now = time.monotonic()
        if self.signal:
            self.end()
        if self._ending and now > self._ending and not self._killed:
            self._killed = True
            for rank in self.ranks:
                self._signal(rank, signal.SIGKILL)
            self._ending = now + 2.0
        elif self._killed and now > self._ending:
            for rank in self.ranks:
                rank.ended = True
        if all(process.poll() is not None for process in self._processes):
            for rank in self.ranks:
                if rank.says is None:
                    self._end_of(rank)
        if self.settings.nodes > 1 and now > self._looked + 1.0:
            self._looked = now
            if not self._ending and self.store.check([self._key("failed")]):
                self.elsewhere = True
                self.end()

    def _key(self, what: str) -> str:
        return f"agents/{self.environment['TORCHELASTIC_RESTART_COUNT']}/{what}"

    def watch(self) -> bool:
        """Return when all ranks have ended; whether all have ended well."""
        try:
            while not all(rank.ended for rank in self.ranks):
                self._turn()
            end = time.monotonic() + _DRAIN
            while any(rank.streams for rank in self.ranks) and time.monotonic() < end:
                self._turn()
        finally:
            self._close()
        return self.failed is None and not self.elsewhere and not self.signal

    def _turn(self) -> None:
        for key, _ in self._selector.select(_LOOK):
            key.data(key.fileobj)
        self._look()

    def _close(self) -> None:
        for rank in self.ranks:
            self._signal(rank, signal.SIGKILL)
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        for rank in self.ranks:
            if rank.says is not None:
                rank.says.close()
        end = time.monotonic() + 3.0
        for process in self._processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self.settings.engine == "store":
            from ..distributed._store_engine import forget_files

            for rank in self.ranks:
                if rank.pid is not None:
                    forget_files(rank.pid)

    def words(self) -> bytes:
        """What the processes that started the ranks have said themselves."""
        self._said.seek(0)
        return self._said.read()


def _is_here(host: str) -> bool:
    """Whether a name is one of this machine."""
    try:
        address = socket.getaddrinfo(host, None)[0]
        with socket.socket(address[0], socket.SOCK_STREAM) as probe:
            probe.bind((address[4][0], 0))
    except OSError:
        return False
    return True


class Launcher:
    """A job of one machine, or the part of it that is here: attempts, until one ends well or none is left."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._attempt: Attempt | None = None
        self._signal = 0
        self.store: Any = None

    def _environment(self, attempt: int) -> dict[str, str]:
        settings = self.settings
        total = settings.nodes * settings.processes
        values = {
            "LOCAL_WORLD_SIZE": settings.processes,
            "WORLD_SIZE": total,
            "ROLE_WORLD_SIZE": total,
            "GROUP_RANK": settings.node,
            "GROUP_WORLD_SIZE": settings.nodes,
            "ROLE_NAME": settings.role,
            "MASTER_ADDR": settings.host,
            "MASTER_PORT": self.store.port,
            "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_MAX_RESTARTS": settings.max_restarts,
            "TORCHELASTIC_RUN_ID": settings.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": True,
            "MINDTORCH_FIRST_RANK": settings.node * settings.processes,
            "MINDTORCH_VIRTUAL_LOCAL_RANK": "1" if settings.virtual_local_rank else "",
        }
        if total > 1:
            from .. import npu

            values["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
            if not npu.is_available():  # accelerate joins ranks without devices where it is told to use none
                values["ACCELERATE_USE_CPU"] = os.environ.get("ACCELERATE_USE_CPU", "true")
        return {name: str(value) for name, value in values.items()}

    def run(self) -> int:
        """Run it; the exit code: 0, 1 where a rank failed, and 128 and its number for a signal."""
        self._meet()
        settings = self.settings
        before = self._take_signals()
        try:
            for attempt in range(settings.max_restarts + 1):
                environment = self._environment(attempt)
                self._attempt = running = Attempt(settings, environment, self.store)
                running.start()
                well = running.watch()
                if well:
                    self._leave()
                    return 0
                if self._signal:
                    return 128 + self._signal
                self._tell(running, attempt)
            return 1
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _meet(self) -> None:
        """Make the store, or find that of the first machine; machines that have no number get one. DistNetworkError where that cannot be."""
        from ..distributed import DistNetworkError, TCPStore

        settings = self.settings
        counted = settings.node < 0
        here = _is_here(settings.host) if counted else settings.node == 0
        try:
            self.store = TCPStore(settings.host, settings.port, None, here, _MEETING)
        except DistNetworkError:
            if not (counted and here):
                raise
            self.store = TCPStore(settings.host, settings.port, None, False, _MEETING)
        if counted:
            settings.node = self.store.add("agents/count", 1) - 1

    def _take_signals(self) -> dict[int, Any]:
        import threading

        if threading.current_thread() is not threading.main_thread():
            return {}

        def handle(number: int, frame: Any) -> None:
            self._signal = number
            if self._attempt is not None:
                self._attempt.signal = number

        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
        return {int(number): signal.signal(number, handle) for number in numbers}

    def _tell(self, running: Attempt, attempt: int) -> None:
        """Say which rank failed, with its traceback last."""
        left = self.settings.max_restarts - attempt
        next_step = (
            f"all ranks are started anew ({left} more time{'s' if left > 1 else ''})"
            if left
            else "all ranks were ended"
        )
        failed = running.failed
        if failed is None:
            text = f"torch.distributed.run: a rank of another machine failed; {next_step}\n"
            write(sys.stderr, text.encode())
            return
        number = failed.local + self.settings.node * self.settings.processes
        words = failed.last_words()
        if failed.says is None:
            words = running.words().splitlines(keepends=True)
        text = f"torch.distributed.run: rank {number} (local rank {failed.local}, process {failed.pid}) {failed.how()}; {next_step}"
        write(sys.stderr, b"".join([text.encode(), b". It said last:\n" if words else b"\n", *words]))

    def _leave(self) -> None:
        """The machine that has the store leaves last."""
        if self.settings.nodes == 1:
            return
        from ..distributed import DistError

        end = time.monotonic() + 300.0
        try:
            count = self.store.add("agents/done", 1)  # whose answer may be lost with the store, once all have said so
            while self.settings.node == 0 and count < self.settings.nodes and time.monotonic() < end:
                time.sleep(0.1)
                count = self.store.add("agents/done", 0)
        except DistError:
            pass  # the others are done
