"""How the processes of a job find each other: handlers by the scheme of a URL, each of which gives a store, a rank and a number of ranks."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlparse, urlunparse

from ._mpi_engine import launched, world
from ._stores import FileStore, PrefixStore, Store, served_by_launcher
from ._tcp_store import TCPStore
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

Found = Iterator[tuple[Store, int, int]]
_handlers: dict[str, Callable[..., Found]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Found]) -> None:
    """Serve a scheme by a generator function of the URL that yields (store, rank, number of ranks). RuntimeError if it is served."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Found:
    """What the handler of the URL's scheme yields. RuntimeError for an unknown scheme."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, numbers.Integral):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, numbers.Integral):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlparse(str(url))
    said = {name: str(value) for name, value in (("rank", rank), ("world_size", world_size)) if value != -1}
    if said:
        query = dict(parse_qsl(parts.query))
        if "rank" in query or "world_size" in query:
            raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
        parts = parts._replace(query=urlencode(query | said))
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](urlunparse(parts), **kwargs)


def _numbers(scheme: str, url: str) -> tuple[int, int]:
    query = dict(parse_qsl(urlparse(url).query))
    for name, text in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            raise _error(scheme, f"{text} parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _error(scheme: str, text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {text}")


def _by_file(url: str, **kwargs: Any) -> Found:
    path = urlparse(url).path
    if not path:
        raise _error("file", "path missing")
    rank, size = _numbers("file", url)
    yield FileStore(path, size), rank, size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def store_at(host: str, port: int, rank: int, size: int, timeout: timedelta) -> Store:
    """The store that rank 0 keeps at a port, or the one that the launcher keeps there. ValueError for a number that is no port."""
    if not 0 <= port < 1 << 16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if served_by_launcher():  # it has the keys of former attempts too
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"attempt/{attempt}", TCPStore(host, port, size, False, timeout))
    return TCPStore(host, port, size, rank == 0, timeout, multi_tenant=True)


def _by_tcp(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Found:
    parts = urlparse(url)
    if parts.port is None:
        raise _error("tcp", "port number missing")
    rank, size = _numbers("tcp", url)
    yield store_at(parts.hostname or "localhost", parts.port, rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def say_launcher() -> None:
    """Put what mpiexec or a scheduler says into the environment variables that `torchrun` would set, where they are not set."""
    found = launched()
    if found is None:
        return
    names = {"RANK": "rank", "WORLD_SIZE": "size", "LOCAL_RANK": "local_rank", "LOCAL_WORLD_SIZE": "local_size"}
    if "RANK" in os.environ:
        return  # a launcher has said it in PyTorch's words
    for name, what in names.items():
        os.environ[name] = str(found[what])


def _by_environment(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Found:
    query = dict(parse_qsl(urlparse(url).query))
    say_launcher()

    def value(name: str, key: str = "") -> str:
        found = query.get(key) or os.environ.get(name)
        if not found:
            raise _error("env", f"environment variable {name} expected, but not set")
        return found

    rank, size = int(value("RANK", "rank")), int(value("WORLD_SIZE", "world_size"))
    if launched() is not None and "MASTER_PORT" not in os.environ:
        yield store_by_mpi(timeout), rank, size
    else:
        host = value("MASTER_ADDR")
        yield store_at(host, int(value("MASTER_PORT")), rank, size, timeout), rank, size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def store_by_mpi(timeout: timedelta) -> TCPStore:
    """A store in rank 0 of MPI's world, which tells all others where it is."""
    import socket

    comm = world()
    hosts = set(comm.allgather(socket.gethostname()))
    if comm.Get_rank():
        host, port = comm.bcast(None)
        return TCPStore(host, port, timeout=timeout)
    store = TCPStore("localhost", 0, is_master=True, timeout=timeout)
    comm.bcast((socket.gethostname() if len(hosts) > 1 else "localhost", store.port))
    return store


register_rendezvous_handler("tcp", _by_tcp)
register_rendezvous_handler("env", _by_environment)
register_rendezvous_handler("file", _by_file)
