"""Typed storages: the elements behind a tensor under one dtype, and the names by which old files call them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from . import _device, _dtype, _state
from ._above import above
from ._storage import MetaStorage, UntypedStorage, storage_from_root

__all__ = ["LEGACY_STORAGES", "TypedStorage", "dtype_of_legacy", "legacy_name"]

_LEGACY_NAMES = {
    _dtype.float64: "DoubleStorage",
    _dtype.float32: "FloatStorage",
    _dtype.float16: "HalfStorage",
    _dtype.bfloat16: "BFloat16Storage",
    _dtype.int64: "LongStorage",
    _dtype.int32: "IntStorage",
    _dtype.int16: "ShortStorage",
    _dtype.int8: "CharStorage",
    _dtype.uint8: "ByteStorage",
    _dtype.bool: "BoolStorage",
    _dtype.complex128: "ComplexDoubleStorage",
    _dtype.complex64: "ComplexFloatStorage",
    _dtype.quint8: "QUInt8Storage",
    _dtype.qint8: "QInt8Storage",
    _dtype.qint32: "QInt32Storage",
    _dtype.quint4x2: "QUInt4x2Storage",
    _dtype.quint2x4: "QUInt2x4Storage",
}


def legacy_name(dtype: _dtype.dtype) -> str | None:
    """`FloatStorage` for float32; None for the dtypes that came after these names."""
    return _LEGACY_NAMES.get(dtype)


_INIT = """TypedStorage.__init__ received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
"""
_NEW = """.__new__ received an invalid combination of arguments. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
"""
_ONLY_UNTYPED = "from_buffer: '{}' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer"


class TypedStorage:
    """A storage seen as elements of one dtype: `TypedStorage(3, dtype=torch.int8)`, `tensor.storage()`.

    Calling it gives itself, so that `tensor.storage` works as an attribute and as a method.
    """

    is_sparse = is_cuda = is_xpu = is_hpu = False

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: _dtype.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if wrap_storage is not None:
            if args:
                raise RuntimeError(f"{_INIT}No positional arguments should be given when using 'wrap_storage'")
            if dtype is None:
                raise RuntimeError(f"{_INIT}Argument 'dtype' must be specified")
            if not isinstance(dtype, _dtype.dtype):
                raise TypeError(f"{_INIT}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                raise RuntimeError(f"{_INIT}Argument 'device' should not be specified when 'wrap_storage' is given")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"{_INIT}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
            self.dtype = dtype
            self._untyped_storage = wrap_storage
            return
        self.dtype = _dtype.get_default_dtype() if dtype is None else dtype
        if not isinstance(self.dtype, _dtype.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        if len(args) > 1:
            raise RuntimeError(f"{_INIT}Too many positional arguments")
        content = args[0] if args else 0
        if isinstance(content, (int, np.integer)):
            self._untyped_storage = UntypedStorage(int(content) * self.dtype.itemsize, device=device)
        elif isinstance(content, str):
            raise TypeError("new(): invalid data type 'str'")
        elif isinstance(content, Sequence):
            elements = np.array(content).astype(_numpy_dtype(self.dtype))
            self._untyped_storage = storage_from_root(elements.view(np.uint8))
            if device is not None:
                self._untyped_storage = self._untyped_storage.to(device=device)
        else:
            raise TypeError(f"{_INIT}Argument type not recognized: {type(content)}")

    def __call__(self) -> TypedStorage:
        return self

    # what it is

    @property
    def data(self) -> ndarray:
        """The elements as an array that shares the memory; of an NPU a copy."""
        untyped = self._untyped_storage
        return ndarray(
            (self.size(),), _numpy_dtype(self.dtype), (untyped.cpu() if untyped.device.type == "npu" else untyped)._root
        )

    @property
    def device(self) -> _device.device:
        return self._untyped_storage.device

    @property
    def filename(self) -> str | None:
        """See `UntypedStorage.filename`."""
        return self._untyped_storage.filename

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        return self._untyped_storage

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first element; 0 when there is none."""
        return self._untyped_storage.data_ptr()

    # The names by which PyTorch's own code calls the members, for which it does not warn.
    _data_ptr, _size, _nbytes, _element_size = data_ptr, size, nbytes, element_size

    def pickle_storage_type(self) -> str:
        """The name in files: `FloatStorage`. KeyError for a dtype that has none."""
        name = legacy_name(self.dtype)
        if name is None:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return name

    def type(self, dtype: Any = None) -> Any:
        """The name of the class of old, or a storage converted to `dtype` (a dtype, a class or its name)."""
        if dtype is None:
            name = legacy_name(self.dtype)
            return "torch.storage.TypedStorage" if name is None else f"torch.{name}"
        if isinstance(dtype, str):
            dtype = dtype_of_legacy(dtype.removeprefix("torch."))
        elif isinstance(dtype, _LegacyStorageMeta):
            dtype = dtype.dtype
        return self._as(dtype)

    def resizable(self) -> bool:
        """See `UntypedStorage.resizable`."""
        return self._untyped_storage.resizable()

    def is_shared(self) -> bool:
        """See `UntypedStorage.is_shared`."""
        return self._untyped_storage.is_shared()

    def _write_file(self, *args: Any, **kwargs: Any) -> None:
        """See `UntypedStorage._write_file`."""
        self._untyped_storage._write_file(*args, **kwargs)

    def is_pinned(self, device: Any = None) -> bool:
        """See `UntypedStorage.is_pinned`."""
        return self._untyped_storage.is_pinned(device)

    def get_device(self) -> int:
        """The index of the device; -1 of the CPU and others without one."""
        index = self.device.index
        return -1 if index is None else index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedStorage):
            return NotImplemented
        return self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    # its elements

    def __getitem__(self, index: int) -> Any:
        """An element as a Python number. IndexError out of range, RuntimeError for anything but an int."""
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        size = self.size()
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return _dtype.known_to_numpy(self.data[index % size : index % size + 1]).tolist()[0]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        size = self.size()
        if isinstance(index, int) and not -size <= index < size:
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {size}")
        data = self.data
        data[index] = value
        self._put(data)

    def _put(self, data: ndarray) -> None:
        """Elements that were changed on the host, where the storage has them."""
        if self.device.type != "cpu":
            self._untyped_storage.copy_(storage_from_root(data.view(np.uint8)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return _dtype.known_to_numpy(self.data).tolist()

    def __repr__(self) -> str:
        rows = "..." if self.device.type == "meta" else " " + "\n ".join(map(str, self.tolist()))
        return f"{rows}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    def fill_(self, value: Any) -> TypedStorage:
        """Set every element."""
        data = self.data
        data[:] = value
        self._put(data)
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Take over the bytes of a storage of the same size (RuntimeError)."""
        self._untyped_storage.copy_(source)
        return self

    def clone(self) -> TypedStorage:
        """A copy with memory of its own."""
        return self._wrap(self._untyped_storage.clone())

    def resize_(self, size: int) -> None:
        """Change the number of elements; see `UntypedStorage.resize_`."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def share_memory_(self) -> TypedStorage:
        """See `UntypedStorage.share_memory_`."""
        self._untyped_storage.share_memory_()
        return self

    def _share_fd_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        """A file descriptor of shared memory: storages of one process have none. RuntimeError for other devices than the CPU."""
        return self._untyped_storage._share_fd_cpu_(*args, **kwargs)

    def _share_filename_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        """A file of shared memory: storages of one process have none. RuntimeError for other devices than the CPU."""
        return self._untyped_storage._share_filename_cpu_(*args, **kwargs)

    def _new_shared(self, size: int, device: Any = None) -> TypedStorage:
        """A storage of `size` zeros of this dtype in memory that forked processes share."""
        return self._wrap(UntypedStorage._new_shared(size * self.dtype.itemsize))

    def _wrap(self, untyped: UntypedStorage, dtype: _dtype.dtype | None = None) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype if dtype is None else dtype)

    def _as(self, dtype: _dtype.dtype) -> TypedStorage:
        if self.dtype is dtype:
            return self
        if self._untyped_storage.device.type == "meta":
            return self._wrap(MetaStorage(self.size() * dtype.itemsize), dtype)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)  # the real part is what is asked for
            elements = self.data.astype(_numpy_dtype(dtype))
        return self._wrap(storage_from_root(elements.view(np.uint8)), dtype)

    # devices

    def cpu(self) -> TypedStorage:
        """The elements on the CPU."""
        return self._wrap(self._untyped_storage.cpu())

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """The elements on another device."""
        return self._wrap(self._untyped_storage.to(device=device))

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """AssertionError: there is no CUDA."""
        return self._wrap(self._untyped_storage.cuda(device))

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """See `UntypedStorage.pin_memory`."""
        return self._wrap(self._untyped_storage.pin_memory(device))

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, device: Any = None, **named: Any) -> TypedStorage:
        """The elements in a buffer, copied; see `UntypedStorage.from_buffer`, whose `dtype` is the class's where that has one (RuntimeError if both name one)."""
        if cls is TypedStorage:
            dtype = _dtype.get_default_dtype() if dtype is None else dtype
            if (where := _device.device("cpu" if device is None else device)).type != "cpu":
                raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {where.type}")
        elif dtype is not None or len(args) == 5:
            raise RuntimeError(_ONLY_UNTYPED.format("dtype"))
        elif device is not None:
            raise RuntimeError(_ONLY_UNTYPED.format("device"))
        else:
            dtype = getattr(cls, "_dtype", None)
        return TypedStorage(wrap_storage=UntypedStorage.from_buffer(*args, dtype=dtype, **named), dtype=dtype)

    _from_buffer = from_buffer

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """`size` elements of a file, mapped into memory; see `UntypedStorage.from_file`. Of the named classes (`FloatStorage`)."""
        dtype = getattr(cls, "dtype", None)
        if dtype is None:
            raise RuntimeError("from_file can only be called on derived classes")
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype=dtype)

    _pickle_storage_type, _resizable, _is_shared, _is_pinned = pickle_storage_type, resizable, is_shared, is_pinned
    _getitem, _setitem, _resize_, _share_memory_ = __getitem__, __setitem__, resize_, share_memory_

    # copies and pickles

    def __copy__(self) -> TypedStorage:
        return self._wrap(self._untyped_storage.__copy__())

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return self._wrap(self._untyped_storage.__deepcopy__(memo))

    _deepcopy = __deepcopy__

    def __reduce__(self) -> tuple:
        return (
            above("pickled_storage")(self) if _state.serves_torch else (_restore, (self._untyped_storage, self.dtype))
        )


TypedStorage.__module__ = "torch.storage"


def _restore(untyped: UntypedStorage, dtype: _dtype.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _numpy_dtype(dtype: _dtype.dtype) -> np.dtype:
    if dtype.np is None:
        raise NotImplementedError(f"elements of {dtype} have no numpy type")
    return dtype.np


# ------------------------------------------------------------------------------------------------------- names with a dtype


def _conversion(name: str, dtype: _dtype.dtype) -> None:
    def typed(self: TypedStorage) -> TypedStorage:
        return self._as(dtype)

    def untyped(self: UntypedStorage) -> TypedStorage:
        # Bytes count as numbers of uint8 here.
        return TypedStorage(wrap_storage=self, dtype=_dtype.uint8)._as(dtype)

    for function, cls in ((typed, TypedStorage), (untyped, UntypedStorage)):
        function.__name__ = name
        function.__qualname__ = f"{cls.__name__}.{name}"
        function.__doc__ = f"The elements converted to {dtype}."
        setattr(cls, name, function)


for _name, _kind in {
    "double": _dtype.float64,
    "float": _dtype.float32,
    "half": _dtype.float16,
    "bfloat16": _dtype.bfloat16,
    "long": _dtype.int64,
    "int": _dtype.int32,
    "short": _dtype.int16,
    "char": _dtype.int8,
    "byte": _dtype.uint8,
    "bool": _dtype.bool,
    "complex_double": _dtype.complex128,
    "complex_float": _dtype.complex64,
    "float8_e5m2": _dtype.float8_e5m2,
    "float8_e4m3fn": _dtype.float8_e4m3fn,
    "float8_e5m2fnuz": _dtype.float8_e5m2fnuz,
    "float8_e4m3fnuz": _dtype.float8_e4m3fnuz,
}.items():
    _conversion(_name, _kind)


class _LegacyStorageMeta(type):
    dtype: _dtype.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """`FloatStorage` and its like: names that make a `TypedStorage` of their dtype, and are the class of it for isinstance."""

    def __new__(
        cls, *args: Any, wrap_storage: UntypedStorage | None = None, _internal: bool = False, **kwargs: Any
    ) -> TypedStorage:
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for name in kwargs:
            if name not in ("device", "dtype"):
                raise TypeError(f"TypedStorage.__new__() got an unexpected keyword argument '{name}'")
            raise RuntimeError(f"{cls}{_NEW}Keyword argument '{name}' cannot be specified")
        try:
            return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)
        except (RuntimeError, TypeError) as error:
            if str(error).startswith(_INIT):
                raise type(error)(f"{cls}{_NEW}{str(error).removeprefix(_INIT)}") from None
            raise


LEGACY_STORAGES: dict[str, type] = {
    name: _LegacyStorageMeta(name, (_LegacyStorage,), {"dtype": dtype, "_dtype": dtype, "__module__": "torch"})
    for dtype, name in _LEGACY_NAMES.items()
}
"""`FloatStorage` and so on, by name."""

_storage_classes = {UntypedStorage, TypedStorage, *LEGACY_STORAGES.values()}


def dtype_of_legacy(name: str) -> _dtype.dtype:
    """The dtype of `FloatStorage` and so on. KeyError for another name."""
    return LEGACY_STORAGES[name].dtype
