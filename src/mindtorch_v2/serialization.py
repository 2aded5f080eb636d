"""`torch.save` and `torch.load`: PyTorch's files, written and read.

A file is an archive (`_serialization/records`) of one pickle, `data.pkl`, in which each storage is a persistent id, and a record `data/KEY` for the bytes
of each. The older form without an archive is `_serialization/legacy`'s. What a pickle may name is told by `names` there and, unless the file is
trusted, enforced by `weights_only`.
"""

from __future__ import annotations

import contextlib
import contextvars
import enum
import io
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pickle import UnpicklingError
from typing import IO, Any, Union

import numpy as np

from . import _device, _dtype
from ._above import above
from ._serialization import weights_only as _weights_only
from ._serialization.archive import _is_zipfile, _open_zipfile_reader, _open_zipfile_writer  # noqa: F401 - names that programs use
from ._serialization.legacy import SEVERAL_DTYPES, legacy_load, legacy_save, with_hook
from ._serialization.locations import (
    default_restore_location,
    location_tag,
    register_package,
    restorer,
    validate_cuda_device,
)
from ._serialization.names import find_class
from ._serialization.pickler import pickler_class
from ._serialization.rebuild import sparse_tensors_checked
from ._serialization.records import ALIGNMENT, BYTE_ORDER, RecordReader, RecordWriter, is_zip
from ._serialization.shown import shown
from ._storage import MetaStorage, UntypedStorage, storage_from_root
from ._typed_storage import TypedStorage, legacy_name

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2
FORMAT_VERSION = 3
NEWEST_READABLE = 10

FileLike = Union[str, "os.PathLike[str]", IO[bytes]]
MAP_LOCATION = Union[Callable[[Any, str], Any], "_device.device", str, dict, None]
STORAGE = Union[TypedStorage, UntypedStorage]


class SourceChangeWarning(Warning):
    """The source of a saved class is not what it was. Files of old carry sources; they are not compared."""


class LoadEndianness(enum.Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


# ------------------------------------------------------------------------------------------------------------------ options

_endianness: LoadEndianness | None = None
_mmap_flags: int | None = None  # MAP_PRIVATE
_crc32 = True


def __getattr__(name: str) -> Any:
    if name in ("MAP_PRIVATE", "MAP_SHARED"):
        import mmap

        return getattr(mmap, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files that do not say theirs; None is little."""
    return _endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set what `get_default_load_endianness` returns. TypeError for anything else."""
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _endianness = endianness


def get_default_mmap_options() -> int:
    """MAP_PRIVATE or MAP_SHARED: what `load(..., mmap=True)` does with changes to the tensors."""
    from mmap import MAP_PRIVATE

    return MAP_PRIVATE if _mmap_flags is None else _mmap_flags


class set_default_mmap_options:
    """Set what `get_default_mmap_options` returns; as a context manager, for the length of a block. ValueError for other flags."""

    def __init__(self, flags: int) -> None:
        global _mmap_flags
        from mmap import MAP_PRIVATE, MAP_SHARED

        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self._before, _mmap_flags = _mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _mmap_flags
        _mmap_flags = self._before


def get_crc32_options() -> bool:
    """Whether `save` is to compute checksums."""
    return _crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set what `get_crc32_options` returns. Checksums are computed in either case, as readers of archives want them."""
    global _crc32
    _crc32 = bool(compute_crc32)


_skipping = contextvars.ContextVar("skipping", default=False)


class skip_data:
    """A block in which `save` leaves room for the storages' bytes in the file and writes none, so that something else can."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._token = _skipping.set(True)

    def __exit__(self, *exc: object) -> None:
        _skipping.reset(self._token)


def mkdtemp() -> contextlib.AbstractContextManager[str]:
    """A temporary directory for the length of a block."""
    return tempfile.TemporaryDirectory()


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's `__version__` is at least the given numbers. RuntimeError for a malformed version, or True instead."""
    try:
        numbers = tuple(int(part) for part in module.__version__.split(".")[: len(req_version_tuple)])
    except ValueError as error:
        if not error_if_malformed:
            return True
        raise RuntimeError(f"'{module.__name__}' module version is malformed string: {module.__version__}") from error
    return numbers >= tuple(req_version_tuple)


# ------------------------------------------------------------------------------------------------------------- safe globals


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow files read with `weights_only=True` to name these classes and functions (or pairs of one and its name in files)."""
    _weights_only._add_safe_globals(safe_globals)


def get_safe_globals() -> list[Any]:
    """What users have allowed."""
    return _weights_only._get_safe_globals()


def clear_safe_globals() -> None:
    """Take back all that users have allowed."""
    _weights_only._clear_safe_globals()


class safe_globals(_weights_only._safe_globals):
    """`add_safe_globals` for the length of a block."""


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """The names ("module.name") in a saved file that `weights_only=True` would refuse. ValueError for a file that is no archive."""
    known = {*_weights_only._get_allowed_globals(), *_weights_only._get_user_allowed_globals()}
    with _opened(f, "rb") as file:
        if not is_zip(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        pickled = io.BytesIO(RecordReader(file).read("data.pkl"))
    return sorted(_weights_only.get_globals_in_pkl(pickled) - known)


# -------------------------------------------------------------------------------------------------------------------- files


@contextlib.contextmanager
def _opened(f: FileLike, mode: str) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, mode) as file:
            yield file
        return
    if "w" in mode:
        yield f
        if hasattr(f, "flush"):  # what was saved can be read by the file's name
            f.flush()
        return
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer like "
            "io.BytesIO and try to load from it instead."
        ) from None
    yield f


_open_file_like = _opened


def _maybe_decode_ascii(text: Any) -> Any:
    return text.decode("ascii") if isinstance(text, bytes) else text


class StorageType:
    """A storage class as a file names it: a dtype by the name of long ago (`FloatStorage`)."""

    def __init__(self, name: str) -> None:
        from ._typed_storage import dtype_of_legacy

        self._dtype = dtype_of_legacy(name)

    @property
    def dtype(self) -> _dtype.dtype:
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def normalize_storage_type(storage_type: Any) -> Any:
    """The class that files name for a storage class: itself, here."""
    return storage_type


def storage_to_tensor_type(storage: STORAGE) -> Any:
    """Raises NotImplementedError: tensors have one class here."""
    raise NotImplementedError("storage_to_tensor_type: tensors have one class for all dtypes")


# --------------------------------------------------------------------------------------------------------------------- save


def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object, with the storages of its tensors, to a path or a binary file. PyTorch reads the result.

    Views keep their whole storage, once. With a `pickle_module` whose Pickler is not Python's own, classes of this library are named as
    that module does, so that the file is for this library only. RuntimeError for a directory that does not exist.
    """
    if isinstance(f, (str, os.PathLike)):
        parent = os.path.dirname(os.fspath(f))
        if parent and not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
    elif not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        if _skipping.get():
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        with _opened(f, "wb") as file:
            legacy_save(obj, file, pickler_class(pickle_module), pickle_protocol)
        return
    # Pickled first: what cannot be pickled leaves no file behind.
    pickled, storages = _pickled(obj, pickle_module, pickle_protocol)
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if isinstance(f, (str, os.PathLike)) else "archive"
    with _opened(f, "wb") as file:
        writer = RecordWriter(file, root or "archive")
        writer.write("data.pkl", pickled)
        writer.write(".format_version", b"1")
        writer.write(".storage_alignment", str(ALIGNMENT).encode())
        if not _disable_byteorder_record:
            writer.write("byteorder", BYTE_ORDER)
        for key, storage in storages.items():
            if _skipping.get():
                writer.write(f"data/{key}", bytes(storage.nbytes()), summed=False)
            else:
                writer.write(f"data/{key}", storage.cpu()._root)
        writer.write("version", f"{FORMAT_VERSION}\n".encode())
        writer.write(".data/serialization_id", f"{writer.checksum:020d}{len(storages):020d}".encode())
        writer.close()


def _pickled(obj: object, pickle_module: Any, protocol: int) -> tuple[memoryview, dict[str, UntypedStorage]]:
    buffer = io.BytesIO()
    storages: dict[str, UntypedStorage] = {}
    keys: dict[int, str] = {}
    dtypes: dict[int, Any] = {}

    def persistent_id(value: Any) -> tuple[Any, ...] | None:
        if not isinstance(value, (TypedStorage, UntypedStorage)):
            return None
        untyped = value.untyped()
        kind, count, dtype = storage_class(value)
        if untyped.data_ptr() and dtypes.setdefault(untyped.data_ptr(), dtype) is not dtype:
            raise RuntimeError(SEVERAL_DTYPES)
        key = keys.setdefault(untyped._cdata, str(len(keys)))
        if untyped.device.type != "meta":
            storages[key] = untyped
        return "storage", kind, key, location_tag(untyped), count

    with_hook(pickler_class(pickle_module), "persistent_id", persistent_id)(buffer, protocol=protocol).dump(obj)
    return buffer.getbuffer(), storages


def storage_class(storage: STORAGE) -> tuple[Any, int, Any]:
    """The class that a file names for a storage, the number of its elements, and its dtype (uint8 for untyped ones)."""
    from ._typed_storage import LEGACY_STORAGES

    if isinstance(storage, TypedStorage):
        name = legacy_name(storage.dtype)
        if name is None:
            raise RuntimeError(
                f"a storage of {storage.dtype} has no name in files; save the tensor or its untyped storage"
            )
        return LEGACY_STORAGES[name], storage.size(), storage.dtype
    return UntypedStorage, storage.nbytes(), _dtype.uint8


# --------------------------------------------------------------------------------------------------------------------- load

_REFUSED = "Weights only load failed. "
_TRUST = (
    "Since PyTorch 2.6 `torch.load` has `weights_only=True` as its default. With `weights_only=False` the file will likely load, but it can "
    "run any code that its author put there: do that only if you got the file from a trusted source."
)
_REPORT = "Please file an issue with the following so that we can make `weights_only=True` compatible with your use case: WeightsUnpickler error: "
_MORE = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)


def _explained(error: UnpicklingError) -> UnpicklingError:
    text = str(error)
    if text.startswith("Unsupported global"):
        advice = (
            f"This file can still be loaded, in one of two ways, \033[1mif you trust the source of the checkpoint\033[0m.\n\t(1) {_TRUST}"
            f"\n\t(2) With `weights_only=True`, do what this error proposes.\n\tWeightsUnpickler error: {text}"
        )
    else:
        report = "" if "blocked" in text else _REPORT
        advice = f"{_TRUST}\n{report}\n\n{text}"
    return UnpicklingError(_REFUSED + advice + _MORE)


def load(
    f: FileLike,
    map_location: MAP_LOCATION = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save`, here or in PyTorch, wrote to a path or a seekable binary file.

    map_location: where storages go: a device, its name, a dict of names, or a function of storage and name. weights_only: read nothing but
    tensors and plain containers, so that a hostile file can do no harm; the default unless `pickle_module` is given. mmap: leave the
    storages in the file, of which a path must be given, until they are used. UnpicklingError for what is not allowed, RuntimeError for
    damaged files.
    """
    if mmap is None:
        mmap = False
    force_safe, force_unsafe = (_flag(f"TORCH_FORCE_{name}_LOAD") for name in ("WEIGHTS_ONLY", "NO_WEIGHTS_ONLY"))
    if force_safe and force_unsafe:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if weights_only is None:
        weights_only = pickle_module is None and not force_unsafe
    if force_safe:
        weights_only = True
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    pickle_load_args.setdefault("encoding", "utf-8")
    unpickler_class = _weights_only.Unpickler if weights_only else _trusting_unpickler(pickle_module or pickle)

    path = f if isinstance(f, (str, os.PathLike)) else None

    with _opened(f, "rb") as file, sparse_tensors_checked():
        try:
            if is_zip(file):
                if mmap and path is None:
                    raise ValueError("f must be a file path in order to use the mmap argument")
                reader = RecordReader(file)
                if "constants.pkl" in reader:
                    return _load_script(file, map_location, weights_only)
                mapped = _mapped(os.fspath(path)) if mmap and path is not None else None
                return _load_archive(reader, restorer(map_location), unpickler_class, pickle_load_args, mapped)
            if mmap:
                raise RuntimeError(
                    f"mmap can only be used with files saved with `torch.save({path or ''}, _use_new_zipfile_serialization=True), "
                    "please torch.save your checkpoint with this option in order to use mmap."
                )
            return legacy_load(file, restorer(map_location), unpickler_class, pickle_load_args)
        except UnpicklingError as error:
            if weights_only:
                raise _explained(error) from None
            raise


def _load_script(file: Any, map_location: MAP_LOCATION, weights_only: bool) -> Any:
    """The module of a TorchScript archive, for whoever did not call `torch.jit.load`."""
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call 'torch.jit.load' directly to "
        "silence this warning)",
        UserWarning,
        stacklevel=3,
    )
    if weights_only:
        raise RuntimeError(
            f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {_TRUST}"
        )
    file.seek(0)
    return above("script_reader")(file, map_location)


def _flag(name: str) -> bool:
    return os.environ.get(name, "0").lower() in ("1", "y", "yes", "true")


def _trusting_unpickler(pickle_module: Any) -> type:
    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module == "torch" or module.startswith("torch."):
                return find_class(module, name)
            return super().find_class(module, name)

    return Unpickler


def _mapped(path: str) -> np.ndarray:
    from mmap import MAP_PRIVATE

    return np.memmap(path, np.uint8, "c" if get_default_mmap_options() == MAP_PRIVATE else "r+")


def _load_archive(
    reader: RecordReader,
    restore: Callable[[Any, str], Any],
    unpickler_class: type,
    pickle_load_args: dict[str, Any],
    mapped: np.ndarray | None,
) -> Any:
    _check_version(reader)
    persistent_load = storage_loader(reader, "data", restore, mapped)
    unpickler_class = with_hook(unpickler_class, "persistent_load", persistent_load)
    return unpickler_class(io.BytesIO(reader.read("data.pkl")), **pickle_load_args).load()


def storage_loader(
    reader: RecordReader, directory: str, restore: Callable[[Any, str], Any], mapped: np.ndarray | None
) -> Callable[[Any], TypedStorage]:
    """What makes the storage of a persistent id, from the records of a directory; one storage for each key."""
    foreign = _is_foreign_order(reader)
    loaded: dict[str, Any] = {}

    def persistent_load(pid: Any) -> TypedStorage:
        dtype, key, location, count = parse_storage_id(pid)
        if key not in loaded:
            nbytes = count * dtype.itemsize
            loaded[key] = restore(_read(f"{directory}/{key}", nbytes, dtype, location), location)
        return TypedStorage(wrap_storage=loaded[key].untyped(), dtype=dtype)

    def _read(name: str, nbytes: int, dtype: _dtype.dtype, location: str) -> UntypedStorage:
        if location == "meta":
            return MetaStorage(nbytes)
        if reader.size(name) != nbytes:
            raise RuntimeError(
                f"record size ({reader.size(name)} bytes) does not match expected size "
                f"({nbytes} bytes = {nbytes} elements * 1 bytes/element) for dtype Byte"
            )
        if mapped is None:
            storage = storage_from_root(reader.read_array(name))
        else:
            start = reader.offset(name)
            # A memoryview between the two makes the record a storage of its own, with its own address and size.
            storage = storage_from_root(np.asarray(mapped.data[start : start + nbytes]))
        if foreign and dtype.itemsize > 1:
            storage.byteswap(dtype)
        return storage

    return persistent_load


def parse_storage_id(pid: Any) -> tuple[_dtype.dtype, str, str, int]:
    """The dtype, key, location and number of elements that a persistent id tells. UnpicklingError for any other object."""
    if not isinstance(pid, tuple) or len(pid) < 5 or _maybe_decode_ascii(pid[0]) != "storage":
        raise UnpicklingError(f"Unknown typename for persistent_load, expected 'storage' but got {shown(pid)}")
    kind, key, location, count = pid[1], *map(_maybe_decode_ascii, pid[2:5])
    dtype = _dtype.uint8 if kind is UntypedStorage else getattr(kind, "dtype", None)
    if not (
        isinstance(dtype, _dtype.dtype) and isinstance(key, str) and isinstance(location, str) and type(count) is int
    ):
        raise UnpicklingError("a storage's persistent id is malformed")
    if count < 0:
        raise UnpicklingError(f"a storage cannot have {count} elements")
    return dtype, key, location, count


def _check_version(reader: RecordReader) -> int:
    name = next((name for name in ("version", ".data/version") if name in reader), None)
    if name is None:
        raise RuntimeError('Expected hasRecord("version") to be true, but got false.')
    raw = reader.read(name).strip()
    version = int(raw) if raw.isdigit() and len(raw) < 10 else 0
    if not 1 <= version <= NEWEST_READABLE:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {raw[:20].decode('ascii', 'replace')}, but the maximum supported version "
            f"for reading is {NEWEST_READABLE}. The version of your PyTorch installation may be too old, please upgrade PyTorch to "
            "latest version to mitigate this issue."
        )
    return version


def _is_foreign_order(reader: RecordReader) -> bool:
    if "byteorder" in reader:
        order = reader.read("byteorder").decode("ascii", "replace")
        if order not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {order}")
        return order != sys.byteorder
    assumed = {None: "little", LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}
    return assumed.get(_endianness, sys.byteorder) != sys.byteorder
