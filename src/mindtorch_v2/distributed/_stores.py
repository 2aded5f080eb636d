"""Stores: keys and values by which processes find each other.

Values are bytes; a text that is given is kept in UTF-8. A key that is not there is waited for, at most the store's timeout (5 minutes, unless it was set).
"""

from __future__ import annotations

import operator
import os
import struct
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ._errors import DistNetworkError, DistStoreError
from ._table import Table, added

DEFAULT_TIMEOUT = timedelta(minutes=5)


def served_by_launcher() -> bool:
    """Whether the store of the job is one that `torchrun` keeps, which outlives all ranks."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)


_SIGNATURES = {
    "set": "arg0: str, arg1: str) -> None",
    "get": "arg0: str) -> bytes",
    "add": "arg0: str, arg1: typing.SupportsInt | typing.SupportsIndex) -> int",
    "append": "arg0: str, arg1: str) -> None",
    "compare_set": "arg0: str, arg1: str, arg2: str) -> bytes",
    "delete_key": "arg0: str) -> bool",
    "check": "arg0: collections.abc.Sequence[str]) -> bool",
    "wait": "arg0: collections.abc.Sequence[str]) -> None",
    "multi_get": "arg0: collections.abc.Sequence[str]) -> list[bytes]",
    "multi_set": "arg0: collections.abc.Sequence[str], arg1: collections.abc.Sequence[str]) -> None",
    "set_timeout": "arg0: datetime.timedelta) -> None",
    "queue_push": "arg0: str, arg1: str) -> None",
    "queue_pop": "key: str, block: bool = True) -> bytes",
    "queue_len": "arg0: str) -> int",
}


def _refuse(store: Any, name: str, *given: Any) -> TypeError:
    return TypeError(
        f"{name}(): incompatible function arguments. The following argument types are supported:\n"
        f"    1. (self: torch._C._distributed_c10d.Store, {_SIGNATURES[name]}\n\n"
        f"Invoked with: {', '.join(map(repr, (store, *given)))}"
    )


def encoded(store: Any, name: str, value: Any, *given: Any) -> bytes:
    """A value as it is kept. TypeError if it is neither text nor bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise _refuse(store, name, *given)


def key_of(store: Any, name: str, key: Any, *given: Any) -> str:
    """A key. TypeError if it is no text."""
    if isinstance(key, bytes):
        return key.decode()
    if not isinstance(key, str):
        raise _refuse(store, name, key, *given)
    return key


def keys_of(store: Any, name: str, keys: Any, *given: Any) -> list[str]:
    """A sequence of keys. TypeError for anything else."""
    if not isinstance(keys, (list, tuple)) or not all(isinstance(key, str) for key in keys):
        raise _refuse(store, name, keys, *given)
    return list(keys)


class Store:
    """The interface of all stores. A class of a program's own overrides `set`, `get`, `add` and what else it needs."""

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long a key is waited for."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long a key is waited for."""
        if not isinstance(timeout, timedelta):
            raise _refuse(self, "set_timeout", timeout)
        self._timeout = timeout

    def _missing(self, what: str) -> RuntimeError:
        return RuntimeError(f"{type(self).__name__}.{what}: Not implemented.")

    def set(self, key: str, value: str | bytes) -> None:
        """Give a key a value."""
        raise self._missing("set")

    def get(self, key: str) -> bytes:
        """The value of a key, once it is there. DistStoreError when it is not there in time."""
        raise self._missing("get")

    def add(self, key: str, amount: int) -> int:
        """Add to a key's number, which is 0 at first, and give the sum. ValueError if the key has something else."""
        raise self._missing("add")

    def check(self, keys: list[str]) -> bool:
        """Whether all keys are there."""
        raise self._missing("check")

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Return once all keys are there. DistStoreError when they are not there in time."""
        raise self._missing("wait")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Give a key a value if it has the expected one, or nothing where nothing is expected. What it has then."""
        raise self._missing("compare_set")

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        raise self._missing("delete_key")

    def num_keys(self) -> int:
        """How many keys there are."""
        raise self._missing("num_keys")

    def list_keys(self) -> list[str]:
        """All keys."""
        raise self._missing("list_keys")

    def append(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of what the key has."""
        raise self._missing("append")

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """`get` of several keys."""
        return [self.get(key) for key in keys_of(self, "multi_get", keys)]

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        """`set` of several keys. ValueError where there is not one value for each."""
        if len(keys_of(self, "multi_set", keys, values)) != len(values):
            raise ValueError(f"multi_set: {len(keys)} keys, but {len(values)} values")
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are single steps."""
        return False

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take a queue's first value; QueueEmptyError if there is none and it is not waited for."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        """How many values a queue has."""
        raise NotImplementedError("queue support is not implemented.")

    def clone(self) -> Store:
        """A store of the same keys, for another thread."""
        return self

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Return once so many callers have come."""
        if self.add(f"{key}/count", 1) == world_size:
            self.set(f"{key}/done", "1")
        self.wait([f"{key}/done"], timeout or self.timeout)


class TableStore(Store):
    """A store over what has the methods of a Table."""

    if TYPE_CHECKING:
        _table: Any

    def _seconds(self, timeout: timedelta | None = None) -> float:
        return (timeout or self._timeout).total_seconds()

    def set(self, key: str, value: str | bytes) -> None:
        self._table.set(key_of(self, "set", key, value), encoded(self, "set", value, key, value))

    def get(self, key: str) -> bytes:
        return self._table.get(key_of(self, "get", key), self._seconds())

    def add(self, key: str, amount: int) -> int:
        try:
            number = operator.index(amount)
        except TypeError:
            raise _refuse(self, "add", key, amount) from None
        return self._table.add(key_of(self, "add", key, amount), number)

    def append(self, key: str, value: str | bytes) -> None:
        self._table.append(key_of(self, "append", key, value), encoded(self, "append", value, key, value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        given = (key, expected_value, desired_value)
        values = [encoded(self, "compare_set", value, *given) for value in given[1:]]
        return self._table.compare_set(key_of(self, "compare_set", *given), *values)

    def delete_key(self, key: str) -> bool:
        return self._table.delete(key_of(self, "delete_key", key))

    def num_keys(self) -> int:
        return len(self._table.keys())

    def list_keys(self) -> list[str]:
        return self._table.keys()

    def check(self, keys: list[str]) -> bool:
        return self._table.check(keys_of(self, "check", keys))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        self._table.wait(keys_of(self, "wait", keys), self._seconds(timeout))

    def has_extended_api(self) -> bool:
        return True

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._table.push(key_of(self, "queue_push", key, value), encoded(self, "queue_push", value, key, value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._table.pop(key_of(self, "queue_pop", key), self._seconds() if block else None)

    def queue_len(self, key: str) -> int:
        return self._table.length(key_of(self, "queue_len", key))


class HashStore(TableStore):
    """A store for the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()


class PrefixStore(Store):
    """A store whose keys are those of another one that begin with `prefix/`."""

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(prefix, str) or not isinstance(store, Store):
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
                "    1. torch._C._distributed_c10d.PrefixStore(prefix: str, store: torch._C._distributed_c10d.Store)\n\n"
                f"Invoked with: {prefix!r}, {store!r}"
            )
        super().__init__()
        self._prefix = prefix
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The store that has the keys."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _key(self, name: str, key: Any, *given: Any) -> str:
        return f"{self._prefix}/{key_of(self, name, key, *given)}"

    def _keys(self, name: str, keys: Any, *given: Any) -> list[str]:
        return [f"{self._prefix}/{key}" for key in keys_of(self, name, keys, *given)]

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._key("set", key, value), value)

    def get(self, key: str) -> bytes:
        return self._store.get(self._key("get", key))

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._key("add", key, amount), amount)

    def check(self, keys: list[str]) -> bool:
        return self._store.check(self._keys("check", keys))

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        keys = self._keys("wait", keys)
        if timeout is None:
            self._store.wait(keys)
        else:
            self._store.wait(keys, timeout)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        key = self._key("compare_set", key, expected_value, desired_value)
        return self._store.compare_set(key, expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._key("delete_key", key))

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        before = f"{self._prefix}/"
        return [key.removeprefix(before) for key in self._store.list_keys() if key.startswith(before)]

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._key("append", key, value), value)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        return self._store.multi_get(self._keys("multi_get", keys))

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        self._store.multi_set(self._keys("multi_set", keys, values), values)

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._key("queue_push", key, value), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._key("queue_pop", key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._key("queue_len", key))

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self._store.clone())


_RECORD = struct.Struct("<QQ")
_PAUSE = 0.002  # seconds between two looks at a file that others may have written


class FileStore(Store):
    """A store in a file that all processes see, each change at its end; the last of `world_size` users removes it.

    A record is two lengths (64 bits, little end first), a key and a value; a key of no value is one that was forgotten.
    Whoever reads or writes holds the file's lock.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = file_name
        self._values: dict[str, bytes] = {}
        self._read = 0
        self._add("refcount/", 1)
        self._finalizer = weakref.finalize(self, FileStore._leave, file_name, world_size)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        """The file, locked, once everything in it has been read."""
        import fcntl

        with open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(self._read)
            rest = file.read()
            at = 0
            while at + _RECORD.size <= len(rest):
                key, value = _RECORD.unpack_from(rest, at)
                middle = at + _RECORD.size + key
                name = rest[at + _RECORD.size : middle].decode()
                if value:
                    self._values[name] = rest[middle : middle + value - 1]
                    at = middle + value - 1
                else:
                    self._values.pop(name, None)
                    at = middle
            self._read += at
            yield file

    def _write(self, file: Any, key: str, value: bytes | None) -> None:
        name = key.encode()
        file.write(_RECORD.pack(len(name), 0 if value is None else len(value) + 1) + name + (value or b""))

    def _change(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Give a key what `change` makes of what it has, in one step; None changes nothing."""
        with self._file() as file:
            value = change(self._values.get(key))
            if value is not None:
                self._write(file, key, value)
            return value

    def _add(self, key: str, number: int) -> int:
        return int(self._change(key, lambda before: b"%d" % added(before or b"", number)) or 0)

    @staticmethod
    def _leave(path: str, world_size: int) -> None:
        """What the last user of a file does: remove it."""
        if not os.path.exists(path):
            return
        store = FileStore.__new__(FileStore)
        store.path, store._values, store._read = path, {}, 0
        finished, users = store._add("cleanup/", 1), store._add("refcount/", -1)
        if users == 0 and 0 <= world_size <= finished and os.path.exists(path):
            os.remove(path)

    def _in_time(self, keys: list[str], timeout: timedelta) -> bool:
        end = time.monotonic() + timeout.total_seconds()
        while not self.check(keys):
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE)
        return True

    def set(self, key: str, value: str | bytes) -> None:
        encoded_value = encoded(self, "set", value, key, value)
        self._change(key_of(self, "set", key, value), lambda before: encoded_value)

    def get(self, key: str) -> bytes:
        key = key_of(self, "get", key)
        if not self._in_time([key], self._timeout):
            wanted = int(self._timeout.total_seconds() * 1000)
            raise DistStoreError(f"Timeout waiting for key: {key} after {wanted} ms")
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        try:
            number = operator.index(amount)
        except TypeError:
            raise _refuse(self, "add", key, amount) from None
        return self._add(key_of(self, "add", key, amount), number)

    def append(self, key: str, value: str | bytes) -> None:
        more = encoded(self, "append", value, key, value)
        self._change(key_of(self, "append", key, value), lambda before: (before or b"") + more)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        given = (key, expected_value, desired_value)
        expected, desired = (encoded(self, "compare_set", value, *given) for value in given[1:])
        key = key_of(self, "compare_set", *given)
        made = self._change(key, lambda before: desired if (before or b"") == expected else None)
        return made if made is not None else self._values.get(key, expected)

    def delete_key(self, key: str) -> bool:
        key = key_of(self, "delete_key", key)
        with self._file() as file:
            self._write(file, key, None)
        return True  # PyTorch's says so too of a key that was never there

    def list_keys(self) -> list[str]:
        with self._file():
            return list(self._values)

    def num_keys(self) -> int:
        return len(self.list_keys())

    def check(self, keys: list[str]) -> bool:
        keys = keys_of(self, "check", keys)
        with self._file():
            return all(key in self._values for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        if not self._in_time(keys_of(self, "wait", keys), timeout or self._timeout):
            raise DistStoreError("Wait timeout")

    def clone(self) -> Store:
        return FileStore(self.path)


def late_ranks(store: Store, number: int, rank: int, size: int, seconds: float) -> list[int]:
    """The ranks that do not come to point `number` in time.

    Where all come, none leaves before the others have asked the store for the last time: the process that serves it may end next.
    """
    here, left = ([f"{number}/{word}/{one}" for one in range(size)] for word in ("here", "left"))
    store.set(here[rank], "1")
    end = time.monotonic() + seconds
    while not store.check(here) and time.monotonic() < end:
        time.sleep(0.005)
    late = [one for one, key in enumerate(here) if not store.check([key])]
    if not late:
        try:
            store.set(left[rank], "1")
            while not store.check(left) and time.monotonic() < end:
                time.sleep(0.005)
        except DistNetworkError:
            pass  # whoever serves it has seen all of them leave
    return late
