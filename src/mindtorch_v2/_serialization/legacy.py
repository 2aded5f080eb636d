"""The form of saved files before PyTorch 1.6: pickles one after the other, then the bytes of the storages.

A magic number, a protocol version, facts about the system, the object, and the list of storage keys are a pickle each. The storages follow in
the order of the list: the number of elements (8 bytes), then the elements.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from pickle import UnpicklingError
from typing import IO, Any

import numpy as np

from .. import _dtype
from .._storage import MetaStorage, UntypedStorage, storage_from_root
from .._typed_storage import LEGACY_STORAGES, TypedStorage, legacy_name
from .locations import location_tag
from .rebuild import UNREAD, elements_were_missing
from .records import _fill
from .shown import shown

SEVERAL_DTYPES = "Cannot save multiple tensors or storages that view the same data as different types"
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def with_hook(cls: type, name: str, function: Callable[[Any], Any]) -> Any:
    """A subclass of a pickler or unpickler with `persistent_id` or `persistent_load`."""
    return type(cls.__name__, (cls,), {name: staticmethod(function)})


def legacy_save(obj: object, file: IO[bytes], pickler_class: type, protocol: int) -> None:
    """Write an object in the old form."""
    storages: dict[str, tuple[UntypedStorage, int]] = {}
    keys_by_identity: dict[int, str] = {}
    kinds: dict[int, Any] = {}

    def persistent_id(value: Any) -> tuple[Any, ...] | None:
        if not isinstance(value, (TypedStorage, UntypedStorage)):
            return None
        untyped = value.untyped()
        name = legacy_name(value.dtype) if isinstance(value, TypedStorage) else "ByteStorage"
        if name is None:
            raise RuntimeError(f"a storage of {value.dtype} has no name in files of the old form")
        kind = LEGACY_STORAGES[name]
        # The file has one count of elements for a storage, and so one dtype.
        if untyped.data_ptr() and kinds.setdefault(untyped.data_ptr(), kind) is not kind:
            raise RuntimeError(SEVERAL_DTYPES)
        key = keys_by_identity.setdefault(untyped._cdata, str(len(keys_by_identity)))
        storages.setdefault(key, (untyped, kind.dtype.itemsize))
        return "storage", kind, key, location_tag(untyped), untyped.nbytes() // kind.dtype.itemsize, None

    hooked = with_hook(pickler_class, "persistent_id", persistent_id)

    def dump(value: object) -> None:
        hooked(file, protocol=protocol).dump(value)

    dump(MAGIC_NUMBER)
    dump(PROTOCOL_VERSION)
    dump(
        {
            "protocol_version": PROTOCOL_VERSION,
            "little_endian": sys.byteorder == "little",
            "type_sizes": {"short": 2, "int": 4, "long": 4},
        }
    )
    dump(obj)
    keys = sorted(storages)
    dump(keys)
    for key in keys:
        untyped, itemsize = storages[key]
        file.write(struct.pack("<q", untyped.nbytes() // itemsize))
        if untyped.device.type != "meta":
            file.write(memoryview(untyped.cpu()._root))


def legacy_load(
    file: IO[bytes],
    restore: Callable[[Any, str], Any],
    unpickler_class: type,
    pickle_load_args: dict[str, Any],
) -> Any:
    """Read the old form. RuntimeError for files that are no such thing or are damaged."""
    start = file.tell()
    available = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    blank: dict[str, tuple[UntypedStorage, _dtype.dtype]] = {}
    placed: dict[str, Any] = {}
    claimed = 0

    def persistent_load(pid: Any) -> TypedStorage:
        nonlocal claimed
        if isinstance(pid, tuple) and pid and _text(pid[0]) == "module":
            return pid[1]  # a class with its source, of which the class is what counts
        dtype, key, location, count, view = _parse(pid)
        if key not in placed:
            nbytes = count * dtype.itemsize
            claimed += nbytes
            if claimed > available:
                raise RuntimeError(
                    f"the file is too short for its storages: {claimed} bytes are claimed, {available} are there"
                )
            untyped = MetaStorage(nbytes) if location == "meta" else storage_from_root(np.zeros((nbytes,), np.uint8))
            blank[key] = untyped, dtype
            placed[key] = restore(untyped, location)
            UNREAD.update((untyped, placed[key].untyped()))
        untyped = placed[key].untyped()
        if view is not None:
            untyped = untyped[view[0] * dtype.itemsize : (view[0] + view[1]) * dtype.itemsize]
        return TypedStorage(wrap_storage=untyped, dtype=dtype)

    hooked = with_hook(unpickler_class, "persistent_load", persistent_load)

    def next_pickle() -> Any:
        return hooked(file, **pickle_load_args).load()

    if next_pickle() != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = next_pickle()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    system = next_pickle()
    foreign = isinstance(system, dict) and system.get("little_endian", True) != (sys.byteorder == "little")
    elements_were_missing()
    begin = file.tell()
    try:
        result = next_pickle()
    finally:
        for key, (untyped, _) in blank.items():
            UNREAD.discard(untyped)
            if key in placed:  # unless its place was refused
                UNREAD.discard(placed[key].untyped())
    keys = next_pickle()
    if not isinstance(keys, list):
        raise RuntimeError("the list of storages is missing; corrupt file?")
    for key in map(_text, keys):
        if key not in blank:
            raise RuntimeError(f"storage {key!r} is in the file, but nothing uses it; corrupt file?")
        untyped, dtype = blank[key]
        head = file.read(8)
        expected = untyped.nbytes() // dtype.itemsize
        if len(head) < 8 or struct.unpack("<q", head)[0] != expected:
            raise RuntimeError(f"storage has wrong byte size: expected {expected} elements of {dtype}")
        if untyped.device.type == "meta":
            continue
        content = untyped._root
        if not _fill(file, content):
            raise RuntimeError(f"unexpected EOF, expected {content.nbytes} more bytes. The file might be corrupted.")
        if foreign and dtype.itemsize > 1:
            untyped.byteswap(dtype)
        if placed[key].untyped() is not untyped and placed[key].device.type != "meta":
            placed[key].untyped().copy_(untyped)  # it went to a device before its bytes were known
    if elements_were_missing():
        end = file.tell()
        file.seek(begin)
        result = next_pickle()
        file.seek(end)
    return result


def _text(value: Any) -> Any:
    return value.decode("ascii") if isinstance(value, bytes) else value


def _parse(pid: Any) -> tuple[_dtype.dtype, str, str, int, tuple[int, int] | None]:
    if not isinstance(pid, tuple) or len(pid) != 6 or _text(pid[0]) != "storage":
        raise UnpicklingError(f"a storage's persistent id is malformed: {shown(pid)}")
    dtype = _dtype.DTYPES["uint8"] if pid[1] is UntypedStorage else getattr(pid[1], "dtype", None)
    key, location, count, view = _text(pid[2]), _text(pid[3]), pid[4], pid[5]
    if not (
        isinstance(dtype, _dtype.dtype)
        and isinstance(key, (str, int))
        and isinstance(location, str)
        and type(count) is int
        and count >= 0
    ):
        raise UnpicklingError(f"a storage's persistent id is malformed: {shown(pid)}")
    if view is not None:
        if not isinstance(view, tuple) or len(view) != 3 or not all(type(n) is int and n >= 0 for n in view[1:]):
            raise UnpicklingError(f"the view of a storage is malformed: {shown(view)}")
        if view[1] + view[2] > count:
            raise UnpicklingError("the view of a storage leads out of it")
        view = view[1:]
    return dtype, str(key), location, count, view
