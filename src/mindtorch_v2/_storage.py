"""Untyped storages: PyTorch's objects for the bytes behind tensors.

The memory itself is found and viewed by `_memory`, whose functions are offered here too.
"""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from . import _device, _dtype, _state
from ._above import above
from ._memory import (
    address,
    check_bounds,
    empty_strided,
    owner,
    root_address,
    root_bytes,
    storage_offset,
    strided_view,
    view_of_root,
)
from ._pending import PendingPayload
from ._pinned import is_pinned
from ._tensor import Tensor

__all__ = [
    "MetaStorage",
    "StorageBase",
    "UntypedStorage",
    "address",
    "check_bounds",
    "empty_strided",
    "owner",
    "root_address",
    "root_bytes",
    "storage_from_root",
    "storage_of",
    "storage_offset",
    "strided_view",
    "view_of_root",
]

_U8 = np.dtype(np.uint8)


class StorageBase:
    """What storages are: to be subclassed, not to be made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return object.__new__(cls)


class UntypedStorage(StorageBase):
    """The bytes behind tensors: `UntypedStorage(nbytes)`, `UntypedStorage([1, 2, 3])`, `tensor.untyped_storage()`.

    `_root` is the 1-D uint8 array of the bytes. While somebody holds a tensor's storage, asking for it again gives the same object.
    """

    _root: ndarray

    is_cuda = is_xpu = is_hpu = is_sparse = is_sparse_csr = False

    def __new__(cls, *args: Any, device: Any = None) -> UntypedStorage:
        device = _device.CPU if device is None else _device.placed(device)
        if len(args) > 1:
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(f"torch.UntypedStorage() received an invalid combination of arguments - got ({kinds})")
        content = args[0] if args else 0
        if device.type not in ("cpu", "meta", "npu"):
            raise RuntimeError(f"torch.UntypedStorage(): Storage device not recognized: {device.type}")
        if isinstance(content, (int, np.integer)):
            if content < 0:
                raise RuntimeError(f"Storage size must not be negative, but got {content}")
            if device.type == "meta":
                return MetaStorage(int(content))
            if device.type == "npu":
                return above("npu_storage")(int(content), device)
            return storage_from_root(np.empty((content,), _U8), cls)
        if device.type == "meta":
            return MetaStorage(len(content))
        made = storage_from_root(np.array(_byte_values(content), _U8), cls)
        return made if device.type == "cpu" else made.to(device=device)

    @classmethod
    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0, *, size: int | None = None
    ) -> UntypedStorage:
        """The first `nbytes` bytes of a file, mapped into memory.

        shared: changes go to the file, which is made or lengthened when it is too small; otherwise they stay in this storage, and the
        file must hold `nbytes` bytes (RuntimeError).
        """
        from ._storage_reading import map_file

        return storage_from_root(map_file(os.fspath(filename), shared, nbytes if size is None else size), cls)

    @classmethod
    def from_buffer(cls, *args: Any, **named: Any) -> UntypedStorage:
        """The bytes of elements in a buffer, copied: of `buffer`, `byte_order`, `count`, `offset` and `dtype`; see `bytes_of_buffer`."""
        from ._storage_reading import bytes_of_buffer

        return storage_from_root(bytes_of_buffer(args, named), cls)

    # what it is

    @property
    def device(self) -> _device.device:
        return _device.CPU

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._root.nbytes

    def size(self) -> int:
        """Size in bytes."""
        return self.nbytes()

    def __len__(self) -> int:
        return self.nbytes()

    def data_ptr(self) -> int:
        """Address of the first byte; 0 when there is none."""
        return address(self._root) if self._root.nbytes else 0

    def element_size(self) -> int:
        """Bytes of an element: 1."""
        return 1

    def type(self) -> str:
        """The name of the class."""
        return "torch.storage.UntypedStorage"

    def untyped(self) -> UntypedStorage:
        """This storage."""
        return self

    def _share_fd_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        """A file descriptor of shared memory: storages of one process have none. RuntimeError for other devices than the CPU."""
        if self.device.type != "cpu":
            raise RuntimeError("_share_fd_: only available on CPU")
        raise NotImplementedError(
            "storages are shared with forked processes alone, so that they need no file descriptor"
        )

    def _share_filename_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        """A file of shared memory: storages of one process have none. RuntimeError for other devices than the CPU."""
        if self.device.type != "cpu":
            raise RuntimeError("_share_filename_: only available on CPU")
        raise NotImplementedError("storages are shared with forked processes alone, so that they need no file")

    def resizable(self) -> bool:
        """Whether `resize_` can work: true of a storage that owns its memory and that nothing else looks into."""
        return self._root.base is None

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to an open file, behind their number of elements if `save_size` says so."""
        if self.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if save_size:
            file.write((self.nbytes() // element_size).to_bytes(8, "little"))
        file.write(self._root.tobytes())

    def _fix_weakref(self) -> None:
        """Nothing: weak references see this object as long as it lives."""

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned for copies to a device."""
        return self.device.type == "cpu" and is_pinned(self._root)

    def get_device(self) -> int:
        """-1: the index that storages without a device index have."""
        return -1

    def is_shared(self) -> bool:
        """Whether other processes may see the memory: it is a mapping."""
        mapping = sys.modules.get("mmap")  # without the module there is no mapping either
        return mapping is not None and isinstance(_foundation(self._root), mapping.mmap)

    @property
    def filename(self) -> str | None:
        """The file whose bytes these are, if changes go there."""
        last = owner(self._root)
        return last.filename and str(last.filename) if isinstance(last, np.memmap) and last.mode != "c" else None

    @property
    def _cdata(self) -> int:
        # Equal for storages of one root, and of that root alone while it lives.
        return id(owner(self._root))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    # its bytes

    def __getitem__(self, index: int | slice) -> Any:
        """A byte, or a storage that looks into this one. IndexError out of range, RuntimeError for a step other than 1."""
        if isinstance(index, slice):
            start, stop = self._range(index)
            # A memoryview between the two makes the part a storage of its own, with its own address and size.
            return storage_from_root(np.asarray(memoryview(self._root)[start:stop]), UntypedStorage)
        return int(self._root[self._index(index)])

    def __setitem__(self, index: int | slice, value: int) -> None:
        if type(value) is not int:
            raise RuntimeError(f"can only set storage content with a int types, but got {_full_name(value)} instead")
        if isinstance(index, slice):
            start, stop = self._range(index)
            self._root[start:stop] = value & 0xFF
        else:
            if hasattr(index, "__index__") and not -self.nbytes() <= index.__index__() < self.nbytes():
                raise RuntimeError("out of bounds")
            self._root[self._index(index)] = value & 0xFF

    def _index(self, index: int) -> int:
        if isinstance(index, bool) or not hasattr(index, "__index__"):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        size = self.nbytes()
        index = index.__index__()
        wrapped = index + size if index < 0 else index
        if not 0 <= wrapped < size:
            raise IndexError(f"index {wrapped} out of range for storage of size {size}")
        return wrapped

    def _range(self, index: slice) -> tuple[int, int]:
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        return start, max(start, stop)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def tolist(self) -> list[int]:
        """The bytes as a list of ints."""
        return self._root.tolist()

    def __bytes__(self) -> bytes:
        return self._root.tobytes()

    def __repr__(self) -> str:
        rows = "\n ".join(map(str, self.tolist()))
        return f" {rows}\n[{self.type()}(device={self.device}) of size {len(self)}]"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte to `value` (modulo 256)."""
        if type(value) is not int:
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        self._root.fill(value & 0xFF)
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> UntypedStorage:
        """Take over the bytes of `source`, a storage of the same size (RuntimeError)."""
        if not hasattr(source, "untyped"):
            raise TypeError(f"copy_(): argument 'src' (position 1) must be torch.Storage, not {type(source).__name__}")
        source = source.untyped()
        if source.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self._root[:] = source._root
        return self

    def clone(self) -> UntypedStorage:
        """A copy with memory of its own."""
        return storage_from_root(self._root.copy(), UntypedStorage)

    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return UntypedStorage(device=self.device)

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Change the size in place, keeping the bytes that fit.

        Under tensors and storages that look into the memory numpy cannot move it: it stays where it is and is said to be smaller, as tensors of a freed storage are kept in PyTorch, and may become as large
        as it was again. For more than that the tensors are moved (`grow`). RuntimeError for memory that is somebody else's.
        """
        if nbytes < 0:
            raise RuntimeError(f"Storage size must not be negative, but got {nbytes}")
        if nbytes != self.nbytes():
            try:
                self._root.resize((nbytes,))
            except ValueError as error:
                last = owner(self._root)
                if not last.flags.owndata:
                    raise RuntimeError("Trying to resize storage that is not resizable") from error
                if nbytes > last.nbytes:
                    self.grow(nbytes)
                    return self
                if id(last) not in _resized:
                    weakref.finalize(last, _resized.pop, id(last)).atexit = False
                _resized[id(last)] = nbytes
                self._root = root_bytes(last)[:nbytes]
        return self

    def grow(self, nbytes: int, tensor: Tensor | None = None) -> None:
        """Move the bytes to a larger memory, and with them the tensors that look into the former one; arrays of numpy stay there.

        tensor: one that looks there now and whose caller says anew where it looks; until then it holds the bytes. MemoryError leaves all as it was.
        """
        root = np.empty((nbytes,), _U8)
        held = self.nbytes()
        root[:held] = self._root
        if tensor is not None:
            tensor._payload = root
        if held:
            _move_tensors(self, root)
        self._root = root
        _held[id(root)] = self

    def byteswap(self, dtype: _dtype.dtype) -> None:
        """Reverse the byte order of every element of `dtype` in place."""
        if not isinstance(dtype, _dtype.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        self._root.reshape(-1, size)[:] = self._root.reshape(-1, size)[:, ::-1].copy()

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to memory that forked processes share. RuntimeError when a tensor looks into them already."""
        if self.is_shared():
            return self
        if self._root.base is not None:
            raise RuntimeError("share_memory_: the memory belongs to a tensor or buffer and cannot be moved")
        shared = self._new_shared(self.nbytes())
        shared._root[:] = self._root
        self._root = shared._root
        return self

    @classmethod
    def _new_shared(cls, nbytes: int, *, device: Any = "cpu") -> UntypedStorage:
        """A storage of `nbytes` zeros in memory that forked processes share."""
        import mmap

        return storage_from_root(np.frombuffer(mmap.mmap(-1, max(nbytes, 1)), _U8)[:nbytes], cls)

    # devices

    def cpu(self) -> UntypedStorage:
        """This storage: it is on the CPU."""
        return self

    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """A storage of these bytes on another device: the CPU, an NPU, or meta."""
        device = _device.placed(device)
        if device.type == "cpu":
            return self.cpu()
        if device.type == "meta":
            return MetaStorage(self.nbytes())
        if device.type == "npu":
            return above("npu_storage")(self.nbytes(), device).copy_(self)
        raise RuntimeError(f"torch.UntypedStorage: no storage on the device type {device.type}")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """A copy on the device that stands for CUDA's. AssertionError where none does: there is no CUDA."""
        where = _device.placed("cuda" if device is None else device)
        if where.type == "cuda":
            raise AssertionError("Torch not compiled with CUDA enabled")
        return self.to(device=where)

    def pin_memory(self, device: Any = None) -> UntypedStorage:
        """The storage in pinned memory: itself, or a copy. TypeError for a storage that is not on the CPU."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        if self.is_pinned():
            return self
        return storage_from_root(above("pin_array")(self._root), UntypedStorage)

    # copies and pickles

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        # PyTorch's own place in the memo, keyed by storage, so that tensors of one storage go on to share one.
        known = memo.setdefault("torch", {})
        if self._cdata not in known:
            known[self._cdata] = self.clone()
            memo[id(self._root)] = self._root  # keeps the root alive, and with it its identity
        return known[self._cdata]

    def __reduce__(self) -> tuple:
        return above("pickled_storage")(self) if _state.serves_torch else (_untyped_from_bytes, (bytes(self),))


class _OnDevice(type):
    """To PyTorch's programs a storage's class says nothing of its device: every storage is an instance of all of them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, UntypedStorage)


class DeviceStorage(UntypedStorage, metaclass=_OnDevice):
    """A storage whose bytes the host does not see; it knows their number. Each is its own identity."""

    _nbytes: int
    filename = None

    @property
    def _cdata(self) -> int:
        return id(self)

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._nbytes

    def resizable(self) -> bool:
        """True."""
        return True

    def is_shared(self) -> bool:
        """False."""
        return False

    def __sizeof__(self) -> int:
        return object.__sizeof__(self)


class MetaStorage(DeviceStorage):
    """A storage without memory, of the meta device: it knows its size."""

    elements: ndarray | None = None  # bytes, where a plan computes them: see Note [Elements of a meta storage]

    def __new__(cls, nbytes: int = 0) -> MetaStorage:
        made = object.__new__(cls)
        made._nbytes = nbytes
        return made

    @property
    def device(self) -> _device.device:
        return _device.META

    @property
    def _root(self) -> ndarray:
        raise NotImplementedError("Not available for 'meta' device type")

    def data_ptr(self) -> int:
        """0: there is no memory."""
        return 0

    def share_memory_(self) -> MetaStorage:
        """RuntimeError: there is no memory."""
        raise RuntimeError("_share_filename_: only available on CPU")

    def _share_fd_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        """RuntimeError: there is no memory."""
        raise RuntimeError("_share_fd_: only available on CPU")

    def _share_filename_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        """RuntimeError: there is no memory."""
        raise RuntimeError("_share_filename_: only available on CPU")

    def resize_(self, nbytes: int) -> MetaStorage:
        """Set the size."""
        self._nbytes = nbytes
        return self

    def clone(self) -> MetaStorage:
        """Another one of this size."""
        return MetaStorage(self._nbytes)

    def copy_(self, source: Any, non_blocking: bool = False) -> MetaStorage:
        """Nothing: there are no bytes."""
        return self

    def fill_(self, value: int) -> MetaStorage:
        """Nothing: there are no bytes."""
        return self

    def cpu(self) -> UntypedStorage:
        """NotImplementedError: there are no bytes to bring."""
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def __repr__(self) -> str:
        return f"...\n[{self.type()}(device=meta) of size {len(self)}]"

    def __deepcopy__(self, memo: dict) -> MetaStorage:
        known = memo.setdefault("torch", {})
        if self._cdata not in known:
            known[self._cdata] = self.clone()
            memo[id(self)] = known[self._cdata]
        return known[self._cdata]

    def __reduce__(self) -> tuple:
        return above("pickled_storage")(self) if _state.serves_torch else (MetaStorage, (self._nbytes,))


StorageBase.__module__ = UntypedStorage.__module__ = "torch.storage"

_held: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()
"""The storages that somebody holds, by the identity of the array that owns their memory, which each of them keeps alive."""

_resized: dict[int, int] = {}
"""The sizes of storages that were made smaller under tensors, by the identity of the array that owns their memory."""


def storage_from_root(root: ndarray, cls: type = UntypedStorage) -> UntypedStorage:
    """The storage of a 1-D uint8 array."""
    made = object.__new__(cls)
    made._root = root
    _held[id(owner(root))] = made
    return made


def storage_of(payload: Any) -> UntypedStorage:
    """The storage behind a payload: of an ndarray, its root; otherwise what the payload carries."""
    if payload.__class__ is PendingPayload:
        payload = payload.settle()
    if not isinstance(payload, ndarray):
        return payload.storage
    last = owner(payload)
    found = _held.get(id(last))
    if found is None or owner(found._root) is not last:  # which `share_memory_` may have moved
        root = root_bytes(last)
        found = storage_from_root(root[: _resized[id(last)]] if id(last) in _resized else root)
    return found


def _move_tensors(storage: UntypedStorage, root: ndarray) -> None:
    """Let the tensors that look into the memory of a storage look at the same places of `root`.

    Nobody keeps a list of them, as each new tensor would pay for it. Most memory that grows is looked into by nobody else, which the references to
    its array tell: there is the storage's beside those that a local variable has. Otherwise all objects are asked.
    """
    last, local = owner(storage._root), object()
    if sys.getrefcount(last) - sys.getrefcount(local) == 1:
        return
    start, classes = address(last), {id(cls) for cls in _tensor_classes(Tensor)}
    for thing in [thing for thing in gc.get_objects() if id(type(thing)) in classes]:
        data = thing._payload
        if data.__class__ is PendingPayload:  # what has not run yet has no memory
            if data.storage.is_pending or data.storage.value.error is not None:
                continue
            data = data.settle()
        if data.__class__ is ndarray and owner(data) is last:
            size = data.itemsize
            strides = tuple(step // size for step in data.strides)
            thing._payload = view_of_root(root, data.shape, strides, (address(data) - start) // size, data.dtype)


def _tensor_classes(cls: type) -> Iterator[type]:
    yield cls
    for below in type.__subclasses__(cls):
        yield from _tensor_classes(below)


def _untyped_from_bytes(content: bytes) -> UntypedStorage:
    return storage_from_root(np.frombuffer(bytearray(content), _U8))


def _foundation(array: ndarray) -> Any:
    """What lies below the last ndarray of a chain: a mapping, a bytes object, or None."""
    base: Any = owner(array).base
    while isinstance(base, memoryview):
        base = base.obj
        if isinstance(base, ndarray):
            base = owner(base).base
    return base


def _byte_values(content: Any) -> list[int]:
    if not hasattr(content, "__len__") or not hasattr(content, "__getitem__"):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {_full_name(content)}")
    for item in content:
        if not isinstance(item, int):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({_full_name(content)}), "
                f"but one of the items was of type {_full_name(item)} instead of int"
            )
    return [item & 0xFF for item in content]


def _full_name(value: object) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
