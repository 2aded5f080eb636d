"""TCPStore: the keys lie in the process that is the master, whose server all others ask.

Note [The protocol]
A request is one line and its fields. The line is the name of a method of `Table`, then the length of each field in bytes, in decimal, separated
by blanks, and a line feed; the fields follow without anything between them. Numbers are fields in decimal, keys are in UTF-8.

    set 3 5\nkeyvalue

The answer has the same form; its first word is `ok`, `error` (fields: what kind, and the sentence). A connection carries one request after the other. A method that waits answers when
what it waits for is there, or when the seconds that it was given are over.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
import weakref
from datetime import timedelta
from typing import Any

from ._errors import DistNetworkError, DistStoreError, QueueEmptyError
from ._stores import DEFAULT_TIMEOUT, Store, TableStore
from ._table import Table

_KINDS = {kind.__name__: kind for kind in (DistStoreError, QueueEmptyError, ValueError)}
_CLOSED = "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"


def _send(connection: socket.socket, word: str, fields: list[bytes]) -> None:
    head = " ".join([word, *(str(len(field)) for field in fields)]).encode() + b"\n"
    connection.sendall(b"".join([head, *fields]))


def _receive(stream: Any) -> tuple[str, list[bytes]] | None:
    """A request or an answer; None when the other side has gone."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    word, *lengths = line.decode().split()
    fields = [stream.read(int(length)) for length in lengths]
    if any(len(field) != int(length) for field, length in zip(fields, lengths)):
        return None
    return word, fields


def _answer(table: Table, word: str, fields: list[bytes]) -> list[bytes]:
    """Run a request."""
    if word in ("check", "wait"):
        keys = [field.decode() for field in fields[word == "wait" :]]
        if word == "wait":
            table.wait(keys, float(fields[0]))
            return []
        return [b"1" if table.check(keys) else b""]
    if word == "keys":
        return [key.encode() for key in table.keys()]
    key, rest = fields[0].decode(), fields[1:]
    if word == "get":
        return [table.get(key, float(rest[0]))]
    if word == "add":
        return [b"%d" % table.add(key, int(rest[0]))]
    if word == "compare_set":
        return [table.compare_set(key, *rest)]
    if word == "delete":
        return [b"1" if table.delete(key) else b""]
    if word == "pop":
        return [table.pop(key, float(rest[0]) if rest else None)]
    if word == "length":
        return [b"%d" % table.length(key)]
    if word not in ("set", "append", "push"):
        raise ValueError(f"a store has no request {word!r}")
    getattr(table, word)(key, *rest)
    return []


class _Server:
    """Serves a table, by a thread for each connection."""

    def __init__(self, port: int) -> None:
        self.table = Table()
        self.users = 0
        self._socket = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._socket.family == socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            self._socket.bind(("", port))
            self._socket.listen(1024)
        except OSError as error:
            self._socket.close()
            name = errno.errorcode.get(error.errno or 0, "")
            raise DistNetworkError(
                "The server socket has failed to listen on any local network address. "
                f"port: {port}, useIpv6: false, code: -{error.errno}, name: {name}, message: {(error.strerror or '').lower()}"
            ) from None
        self.port: int = self._socket.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._process = os.getpid()
        threading.Thread(target=self._accept, daemon=True, name="store").start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return  # it was closed
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="store client").start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while (request := _receive(stream)) is not None:
                    try:
                        fields = _answer(self.table, *request)
                    except (DistStoreError, ValueError) as error:
                        _send(connection, "error", [type(error).__name__.encode(), str(error).encode()])
                    else:
                        _send(connection, "ok", fields)
        except OSError:
            pass  # the client has gone, and nobody is there to be told
        finally:
            self._open.discard(connection)

    def close(self) -> None:
        """Answer nobody any more."""
        for connection in (self._socket, *self._open):
            try:
                if self._process == os.getpid():  # not in a forked child, which would end it for the parent
                    connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was not connected
            connection.close()


class _Connection:
    """The methods of a Table, by a server."""

    def __init__(self, host: str, port: int, timeout: timedelta) -> None:
        self._place = host, port, timeout.total_seconds()
        self._begin()

    def _begin(self) -> None:
        self._socket = self._connect(*self._place)
        self._stream = self._socket.makefile("rb")
        self._lock = threading.Lock()
        self._process = os.getpid()

    @staticmethod
    def _connect(host: str, port: int, timeout: float) -> socket.socket:
        end = time.monotonic() + timeout
        pause = 0.01
        while True:
            try:
                made = socket.create_connection((host, port), max(0.01, end - time.monotonic()))
            except OSError:
                if time.monotonic() + pause > end:
                    raise DistNetworkError(
                        f"The client socket has timed out after {int(timeout * 1000)}ms while trying to connect to ({host}, {port})."
                    ) from None
                time.sleep(pause)
                pause = min(1.0, pause * 1.5)
                continue
            made.settimeout(None)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made

    def _ask(self, word: str, *fields: bytes) -> list[bytes]:
        if self._process != os.getpid():
            self._begin()  # a forked child; the parent's connection is the parent's
        with self._lock:
            try:
                _send(self._socket, word, list(fields))
                answer = _receive(self._stream)
            except (OSError, ValueError) as error:
                raise DistNetworkError(getattr(error, "strerror", None) or _CLOSED) from None
        if answer is None:
            raise DistNetworkError(_CLOSED)
        kind, given = answer
        if kind == "ok":
            return given
        raise _KINDS.get(given[0].decode(), DistStoreError)(given[1].decode())

    def _in_time(self, keys: list[str], timeout: float, word: str, *fields: bytes) -> list[bytes]:
        try:
            return self._ask(word, *fields)
        except QueueEmptyError:
            raise
        except DistStoreError:
            wanted = ", ".join(f"/{key}" for key in keys)
            raise DistStoreError(f"wait timeout after {round(timeout * 1000)}ms, keys: {wanted}") from None

    def set(self, key: str, value: bytes) -> None:
        self._ask("set", key.encode(), value)

    def get(self, key: str, timeout: float) -> bytes:
        return self._in_time([key], timeout, "get", key.encode(), b"%f" % timeout)[0]

    def add(self, key: str, number: int) -> int:
        return int(self._ask("add", key.encode(), b"%d" % number)[0])

    def append(self, key: str, value: bytes) -> None:
        self._ask("append", key.encode(), value)

    def compare_set(self, key: str, expected: bytes, desired: bytes) -> bytes:
        return self._ask("compare_set", key.encode(), expected, desired)[0]

    def delete(self, key: str) -> bool:
        return bool(self._ask("delete", key.encode())[0])

    def keys(self) -> list[str]:
        return [key.decode() for key in self._ask("keys")]

    def check(self, keys: list[str]) -> bool:
        return bool(self._ask("check", *(key.encode() for key in keys))[0])

    def wait(self, keys: list[str], timeout: float) -> None:
        self._in_time(keys, timeout, "wait", b"%f" % timeout, *(key.encode() for key in keys))

    def push(self, key: str, value: bytes) -> None:
        self._ask("push", key.encode(), value)

    def pop(self, key: str, timeout: float | None) -> bytes:
        if timeout is None:
            return self._ask("pop", key.encode())[0]
        return self._in_time([key], timeout, "pop", key.encode(), b"%f" % timeout)[0]

    def length(self, key: str) -> int:
        return int(self._ask("length", key.encode())[0])

    def close(self) -> None:
        try:
            if self._process == os.getpid():
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server has gone before
        self._stream.close()
        self._socket.close()


_shared: dict[int, _Server] = {}
"""Servers that several stores of this process may have, by port."""


class TCPStore(TableStore):
    """A store whose keys lie in the process with `is_master`, at a port of its machine (0: a free one).

    With `wait_for_workers` the constructor of the master returns once `world_size` stores have been made.

    Raises:
        DistNetworkError: if the port is taken, or no server answers in time.
        DistStoreError: if not all others come in time.
    """

    _JOINED = "init/"

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout = timeout
        self.host = host_name
        self.libuvBackend = use_libuv
        self._server: _Server | None = None
        if is_master:
            self._server = _shared.get(port) if multi_tenant and port else None
            if self._server is None:
                self._server = _Server(port)
                if multi_tenant:
                    _shared[self._server.port] = self._server
            self._server.users += 1
            port = self._server.port
        self.port = port
        self._table = _Connection("localhost" if is_master else host_name, port, timeout)
        weakref.finalize(self, _leave, self._table, self._server)
        joined = self._table.add(self._JOINED, 1)
        if is_master and wait_for_workers and world_size is not None:
            self._await(world_size, joined)

    def _await(self, world_size: int, joined: int) -> None:
        end = time.monotonic() + self._timeout.total_seconds()
        while joined < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {int(self._timeout.total_seconds()) + 1} seconds waiting for clients. {joined}/{world_size} clients joined."
                )
            time.sleep(0.01)
            joined = self._table.add(self._JOINED, 0)

    def clone(self) -> Store:
        return TCPStore(self.host, self.port, timeout=self._timeout)

    def __repr__(self) -> str:
        server = "<nullptr>" if self._server is None else f"TCPServer(port={self.port})"
        return f"TCPStore(client=TCPClient({self.host}:{self.port}), server={server})"


def _leave(connection: _Connection, server: _Server | None) -> None:
    connection.close()
    if server is not None:
        server.users -= 1
        if not server.users:
            if _shared.get(server.port) is server:
                del _shared[server.port]
            server.close()
