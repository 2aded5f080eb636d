"""What storages are read of: elements of one dtype in an object with Python's buffer protocol (`from_buffer`), and files (`from_file`)."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from numpy import ndarray

from . import _dtype

_NAMES = ("buffer", "byte_order", "count", "offset", "dtype")
_WITHOUT_ORDER = {
    _dtype.uint8,
    _dtype.int8,
    _dtype.float8_e5m2,
    _dtype.float8_e4m3fn,
    _dtype.float8_e5m2fnuz,
    _dtype.float8_e4m3fnuz,
}
"""Types of one byte, of which nothing is turned; bool is not among them in PyTorch."""
_READ = _WITHOUT_ORDER | {
    _dtype.bool,
    _dtype.int16,
    _dtype.int32,
    _dtype.int64,
    _dtype.float16,
    _dtype.bfloat16,
    _dtype.float32,
    _dtype.float64,
    _dtype.complex64,
    _dtype.complex128,
}


def _arguments(args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The arguments by place; None where one was not given. TypeError in the words of a function in C."""
    if len(args) + len(named) > len(_NAMES):
        kind = "" if args else "keyword "
        raise TypeError(f"function takes at most {len(_NAMES)} {kind}arguments ({len(args) + len(named)} given)")
    given = [*args, *[None] * (len(_NAMES) - len(args))]
    for place, name in enumerate(_NAMES):
        if name in named:
            if place < len(args):
                raise TypeError(f"argument for function given by name ('{name}') and position ({place + 1})")
            given[place] = named[name]
        elif place == 0 and not args:
            raise TypeError("function missing required argument 'buffer' (pos 1)")
    for name in named:
        if name not in _NAMES:
            raise TypeError(f"'{name}' is an invalid keyword argument for this function")
    if given[1] is None and (len(args) > 1 or "byte_order" in named):
        raise TypeError("argument 2 must be str, not None")
    if given[1] is not None and not isinstance(given[1], str):
        raise TypeError(f"argument 2 must be str, not {type(given[1]).__name__}")
    for place, otherwise in ((2, -1), (3, 0)):
        value = given[place]
        if value is not None and not hasattr(value, "__index__"):
            raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")
        given[place] = otherwise if value is None else value.__index__()
    return given


def bytes_of_buffer(args: tuple[Any, ...], named: dict[str, Any]) -> ndarray:
    """The bytes of `count` elements of `dtype` behind `offset` bytes of a buffer, copied, and turned if `byte_order` is not this machine's.

    `args` and `named` are buffer, byte_order ("big", "little" or "native"), count (all that are there when it is negative), offset, and dtype, as
    the caller gave them. RuntimeError for a dtype that storages are not read of, and when an order is needed and missing; ValueError when it is
    another word, or the buffer has no such place.
    """
    buffer, order, count, offset, dtype = _arguments(args, named)
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    if not isinstance(dtype, _dtype.dtype):
        raise RuntimeError("argument 'dtype' must be of type torch.dtype")
    if dtype not in _WITHOUT_ORDER:
        if order is None:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if order not in ("big", "little", "native"):
            raise ValueError(f"invalid byte_order '{order}' (expected 'big', 'little', or 'native')")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise TypeError(f"a bytes-like object is required, not '{type(buffer).__name__}'") from None
    if not view.c_contiguous:
        raise ValueError("ndarray is not C-contiguous" if isinstance(buffer, ndarray) else "buffer is not C-contiguous")
    width, size = dtype.itemsize, view.nbytes
    if offset < 0 or offset > size:
        # the numbers stand in PyTorch's order, which is the wrong one
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({offset}) , but got {size}")
    if count < 0:
        if (size - offset) % width:
            raise ValueError(f"buffer size ({size}) must be a multiple of element size ({width})")
        count = (size - offset) // width
    elif count * width > size - offset:
        raise ValueError(
            f"buffer has only {size - offset} elements after offset {offset}, but specified a size of {count}"
        )
    if dtype not in _READ:
        raise RuntimeError(f"Unknown type: {dtype.cpp}")
    part = np.frombuffer(view, np.uint8, count * width, offset).copy()
    if width > 1 and order not in ("native", sys.byteorder):
        unit = width // 2 if dtype.is_complex else width
        part = part.reshape(-1, unit)[:, ::-1].reshape(-1).copy()
    if dtype is _dtype.bool:
        part = (part != 0).view(np.uint8)
    return part


def map_file(filename: str, shared: bool, nbytes: int) -> ndarray:
    """The first bytes of a file, mapped into memory; see `UntypedStorage.from_file`."""
    if shared and not os.path.exists(filename):
        with open(filename, "wb"):
            pass
    try:
        available = os.path.getsize(filename)
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{filename}> in read-only mode: {error.strerror} ({error.errno})"
        ) from None
    if not shared and available < nbytes:
        raise RuntimeError(f"file <{filename}> size <{available}> is smaller than the required mapping size <{nbytes}>")
    if nbytes == 0:  # nothing can be mapped
        return np.empty((0,), np.uint8)
    if shared and available < nbytes:
        os.truncate(filename, nbytes)
    if not shared and not _can_map():  # a private mapping is a copy for all who look at it, but for its memory
        return np.fromfile(filename, np.uint8, nbytes)
    return np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(nbytes,))


def _can_map() -> bool:
    """Whether this Python has mmap, which hosts like WebAssembly's may lack."""
    try:
        import mmap  # noqa: F401
    except ImportError:
        return False
    return True
