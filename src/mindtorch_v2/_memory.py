"""Root memory of arrays, and strided views of it: what lies under a storage.

numpy keeps no storage object, but every view knows its base. The last ndarray of that chain is the owner; its whole allocation,
seen as bytes, is the root. Two arrays share a storage exactly when their roots begin at the same address.

Note [Address of an array]: ``array.ctypes.data`` and ``__array_interface__`` build objects and take a microsecond. The address is the
first field of numpy's C struct (public ABI) right behind the object header, so it is read from there; an import-time probe falls back to
the slow way where that does not hold.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy import ndarray

_U8 = np.dtype(np.uint8)
_HEADER = object.__basicsize__
_INT64_MAX = 2**63 - 1


# ---------------------------------------------------------------------------------------------------------------- addresses


def _address_by_interface(array: ndarray) -> int:
    return array.__array_interface__["data"][0]


def _address_by_struct() -> Callable[[ndarray], int] | None:
    """A function that reads the address, or None where it does not lie there or nothing can read it (WebAssembly has no ctypes)."""
    if sys.implementation.name != "cpython":
        return None
    try:
        from ctypes import c_size_t
    except ImportError:
        return None

    def read_address(array: ndarray, read=c_size_t.from_address, header: int = _HEADER) -> int:
        return read(id(array) + header).value

    whole = np.zeros((3, 4), np.int16)
    there = all(read_address(a) == _address_by_interface(a) for a in (whole, whole[1:], whole.T[2:, 1]))
    return read_address if there else None


address = _address_by_struct() or _address_by_interface
"""``address(array) -> int``: where the first element lies. See Note [Address of an array]."""


# --------------------------------------------------------------------------------------------------------------------- root


class _Extent:
    """The bytes from the lowest to the highest element of an array that is not dense, lent to numpy by its array interface."""

    def __init__(self, owner: ndarray) -> None:
        spans = [(n - 1) * s for n, s in zip(owner.shape, owner.strides, strict=True)] if owner.size else []
        low = sum(s for s in spans if s < 0)
        high = sum(s for s in spans if s > 0) + (owner.itemsize if owner.size else 0)
        self.base = owner
        self.__array_interface__ = {
            "data": (address(owner) + low, not owner.flags.writeable),
            "shape": (high - low,),
            "typestr": "|u1",
            "version": 3,
        }


def owner(array: ndarray) -> ndarray:
    """The last ndarray along ``.base``; buffers and memory maps behind it are its business."""
    base = array.base
    while base is not None:
        if not isinstance(base, ndarray):
            # as_strided and friends of numpy put a small object between view and base.
            base = getattr(base, "base", None)
            if not isinstance(base, ndarray):
                break
        array = base
        base = array.base
    return array


def root_bytes(array: ndarray) -> ndarray:
    """The whole allocation that `array` looks into, as a 1-D uint8 array (read-only where the owner is)."""
    last = owner(array)
    if last.__class__ is ndarray and last.dtype is _U8 and last.ndim == 1 and last.flags.c_contiguous:
        return last
    if last.flags.c_contiguous:
        return ndarray((last.nbytes,), _U8, last)
    strides = last.strides
    dense = last.transpose(sorted(range(last.ndim), key=lambda d: -strides[d]))
    if dense.flags.c_contiguous:
        return ndarray((last.nbytes,), _U8, dense)
    return np.asarray(_Extent(last))


def root_address(array: ndarray) -> int:
    """Address of the first byte of the root: equal for all arrays that share a storage."""
    last = owner(array)
    if min(last.strides, default=0) < 0:
        return address(root_bytes(last))
    return address(last)


def storage_offset(array: ndarray) -> int:
    """Distance of the first element of `array` from the start of its root, in elements."""
    if array.base is None:
        return 0
    return (address(array) - root_address(array)) // array.itemsize


# -------------------------------------------------------------------------------------------------------------------- views


def strided_view(array: ndarray, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> ndarray:
    """A view of `array`'s root with `shape` and `strides` (in elements); `offset` counts elements from the first one of `array`.

    The view has array's dtype, and writes through unless the memory is read-only. RuntimeError when a stride is negative or the view
    leaves the root.
    """
    itemsize = array.itemsize
    if array.flags.forc and not (strides and min(strides) < 0):
        # The array itself serves as the buffer, without a look at addresses.
        try:
            return ndarray(shape, array.dtype, array, offset * itemsize, [s * itemsize for s in strides])
        except (ValueError, TypeError, OverflowError):
            pass  # reaches beyond `array`, though perhaps not beyond its root
    root = root_bytes(array)
    return _view_at(root, array.dtype, shape, strides, address(array) - address(root) + offset * itemsize)


def view_of_root(root: ndarray, shape: Sequence[int], strides: Sequence[int], offset: int, dtype: np.dtype) -> ndarray:
    """A view of the 1-D uint8 array `root`; `strides` and `offset` in elements of `dtype`. Errors as in `strided_view`."""
    return _view_at(root, dtype, shape, strides, offset * dtype.itemsize)


def _view_at(root: ndarray, dtype: np.dtype, shape: Sequence[int], strides: Sequence[int], byte_offset: int) -> ndarray:
    itemsize = dtype.itemsize
    if min(strides, default=0) >= 0:
        try:
            return ndarray(shape, dtype, root, byte_offset, [s * itemsize for s in strides])
        except (ValueError, TypeError, OverflowError):
            pass  # the check below says what is wrong, in PyTorch's words
    check_bounds(root.nbytes, itemsize, shape, strides, byte_offset)
    # Only views without elements come here: PyTorch allows them any offset and stride, numpy wants them inside the buffer.
    strides = [s if s * itemsize <= _INT64_MAX else 1 for s in strides]
    try:
        return ndarray(shape, dtype, root, min(byte_offset, root.nbytes), [s * itemsize for s in strides])
    except ValueError as error:
        raise refusal(error, shape, itemsize) or error from error


def check_bounds(nbytes: int, itemsize: int, shape: Sequence[int], strides: Sequence[int], byte_offset: int) -> None:
    """Raise PyTorch's RuntimeError unless a view with these numbers lies within a storage of `nbytes` bytes."""
    offset = byte_offset // itemsize
    shape, strides = list(shape), list(strides)
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if min(strides, default=0) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: [{_join(strides)}]"
        )
    if byte_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if min(shape, default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes=[{_join(shape)}] and strides=[{_join(strides)}]"
        )
    if 0 in shape:
        return
    needed = byte_offset + itemsize * (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
    if needed > _INT64_MAX:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes=[{_join(shape)}] and strides=[{_join(strides)}]"
        )
    if needed > nbytes:
        raise RuntimeError(
            f"setStorage: sizes [{_join(shape)}], strides [{_join(strides)}], storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {nbytes}"
        )


allocate: Callable[[Sequence[int], np.dtype], ndarray] = ndarray
"""``allocate(shape, dtype)``: an uninitialised contiguous array. The C extension puts its own here, which keeps the memory of large arrays."""


def empty_strided(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> ndarray:
    """An uninitialised array with `shape` and `strides` (in elements) over a fresh allocation that just holds it."""
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    dtype = np.dtype(dtype)
    itemsize = dtype.itemsize
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if s != expected:
            break
        expected *= n or 1
    else:
        if 0 not in shape:  # then numpy's strides differ
            return allocate(shape, dtype)
    elements = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    root = allocate((elements * itemsize,), _U8)
    return ndarray(shape, dtype, root, 0, [s * itemsize for s in strides])


def allocator(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype) -> Callable[[], ndarray]:
    """A function that makes uninitialised arrays like `empty_strided`."""
    shape, strides = tuple(shape), tuple(strides)
    bytes_ = tuple([s * dtype.itemsize for s in strides])
    for order in ("C", "F"):
        if ndarray(shape, dtype, order=order).strides == bytes_:
            return lambda: ndarray(shape, dtype, order=order)
    if 0 in shape:
        return lambda: empty_strided(shape, strides, dtype)
    nbytes = dtype.itemsize * (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
    return lambda: ndarray(shape, dtype, ndarray((nbytes,), _U8), 0, bytes_)


MOST_DIMENSIONS = 64
"""Of numpy's arrays."""
FAR = 1 << 31
"""Steps below this numpy's strides, which count bytes, hold for certain."""


def refusal(error: Exception, shape: Sequence[int], itemsize: int) -> RuntimeError | None:
    """PyTorch's error for memory that cannot be had, or None for an error of numpy's that says something else."""
    if isinstance(error, MemoryError):
        told = error.args if len(error.args) == 2 and isinstance(error.args[0], tuple) else (shape, None)
        size = math.prod(told[0]) * (itemsize if told[1] is None else told[1].itemsize)
        return RuntimeError(
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {size} bytes. Error code 12 (Cannot allocate memory)"
        )
    if len(shape) > MOST_DIMENSIONS:
        return RuntimeError(
            f"a tensor of {len(shape)} dimensions is not supported on CPU: there are at most {MOST_DIMENSIONS}"
        )
    if math.prod(shape) * itemsize > _INT64_MAX:
        return RuntimeError(f"Storage size calculation overflowed with sizes=[{_join(shape)}]")
    if math.prod(n for n in shape if n) * itemsize > _INT64_MAX:  # without elements, but numpy multiplies what is left
        return RuntimeError("Stride calculation overflowed")
    return None


def _join(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
