"""`PyTorchFileReader` and `PyTorchFileWriter`: archives of named records, for programs that read or write records themselves."""

from __future__ import annotations

import os
from typing import IO, Any

from .._dtype import dtype as Dtype
from .._storage import UntypedStorage, storage_from_root
from .._tensor import Tensor
from .._typed_storage import TypedStorage
from .rebuild import _from_storage
from .records import BYTE_ORDER, RecordReader, RecordWriter, is_zip

_VERSION = b"3\n"


class PyTorchFileWriter:
    """Writes records to a path or into a binary file. `write_end_of_file` makes an archive of them."""

    def __init__(self, file: str | IO[bytes], compute_crc32: bool = True, storage_alignment: int = 64) -> None:
        if isinstance(file, (str, os.PathLike)):
            root = os.path.splitext(os.path.basename(os.fspath(file)))[0]
            self._own = self._file = open(file, "wb")
        else:
            root, self._own, self._file = "archive", None, file
        self._root = root or "archive"
        self._writer = RecordWriter(self._file, self._root)
        self._records: set[str] = set()
        self._finished, self._identity = False, ""

    def archive_name(self) -> str:
        """The name before each record's."""
        return self._root

    def get_all_written_records(self) -> set[str]:
        """The names of the records so far."""
        return set(self._records)

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Add a record of the first `size` bytes of a buffer, text or storage. RuntimeError for a name that was written, or after the end."""
        if isinstance(data, (UntypedStorage, TypedStorage)):
            data = data.untyped().cpu()._root
        elif isinstance(data, str):
            data = data.encode()
        self._write(name, memoryview(data).cast("B")[:size])

    def _write(self, name: str, content: Any, summed: bool = True) -> None:
        if self._finished:
            raise RuntimeError("records cannot be added to an archive that is finished")
        if name in self._records:
            raise RuntimeError(f"Tried to serialize file twice: {name}")
        self._records.add(name)
        self._writer.write(name, content, summed)

    def write_record_metadata(self, name: str, size: int) -> None:
        """Add a record of `size` zeros, to be filled in later."""
        self._write(name, bytes(size), summed=False)

    def serialization_id(self) -> str:
        """What tells archives of different content apart; empty before the end."""
        return self._identity

    def write_end_of_file(self) -> None:
        """Write what every archive has, and the directory of records."""
        for name, content in (("version", _VERSION), ("byteorder", BYTE_ORDER)):
            if name not in self._records:
                self.write_record(name, content, len(content))
        self._identity = f"{self._writer.checksum:020d}{len(self._records):020d}"
        self.write_record(".data/serialization_id", self._identity, len(self._identity))
        self._finished = True
        self._writer.close()
        self._file.flush()
        if self._own is not None:
            self._own.close()


class PyTorchFileReader:
    """Reads records of an archive at a path or in a binary file. RuntimeError for what is no archive and for names that are not there."""

    def __init__(self, file: str | IO[bytes]) -> None:
        own = isinstance(file, (str, os.PathLike))
        self._file: Any = open(file, "rb") if own else file
        self._own = own
        self._reader = RecordReader(self._file)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of that name."""
        return name in self._reader

    def get_all_records(self) -> list[str]:
        """The names of all records, in the order of the file."""
        return self._reader.names()

    def get_record(self, name: str) -> bytes:
        """The content of a record."""
        return self._reader.read(name)

    def get_record_size(self, name: str) -> int:
        """The number of bytes of a record."""
        return self._reader.size(name)

    def get_record_offset(self, name: str) -> int:
        """Where in the file the content of a record begins."""
        return self._reader.offset(name)

    def get_record_header_offset(self, name: str) -> int:
        """Where in the file the header of a record begins."""
        return self._reader.header_offset(name)

    def get_storage_from_record(self, name: str, numel: int, dtype: Dtype) -> Tensor:
        """A tensor with no elements of the dtype, whose storage is the record."""
        return _from_storage(storage_from_root(self._reader.read_array(name)), dtype, 0, (0,), (1,))

    def serialization_id(self) -> str:
        """What the writer said, to tell archives of different content apart; empty when it did not."""
        return self._reader.read(".data/serialization_id").decode() if ".data/serialization_id" in self._reader else ""

    def _close(self) -> None:
        if self._own:
            self._file.close()


class _Opened:
    """A context manager around a reader or writer, as `torch.serialization` opens them."""

    def __init__(self, file_like: Any) -> None:
        self.file_like = file_like

    def __enter__(self) -> Any:
        return self.file_like


class _open_zipfile_reader(_Opened):
    """`with _open_zipfile_reader(path or file) as reader`."""

    def __init__(self, name_or_buffer: Any) -> None:
        super().__init__(PyTorchFileReader(name_or_buffer))

    def __exit__(self, *exc: object) -> None:
        self.file_like._close()


class _open_zipfile_writer(_Opened):
    """`with _open_zipfile_writer(path or file) as writer`; the end of the block is the end of the archive."""

    def __init__(self, name_or_buffer: Any) -> None:
        super().__init__(PyTorchFileWriter(name_or_buffer))

    def __exit__(self, *exc: object) -> None:
        self.file_like.write_end_of_file()


_is_zipfile = is_zip
