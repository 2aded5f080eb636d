"""The container of saved files: a ZIP archive of named records that are stored as they are, on aligned offsets.

The reader takes the archive to be hostile: sizes and offsets are checked before memory is claimed, checksums before content is believed.

Note [Sizes of records]: no record is larger than what deflate could make of its bytes (a factor of 1032), and all records together
claim no more bytes than the file has, so that overlapping records cannot multiply it.
"""

from __future__ import annotations

import os
import struct
import sys
import zipfile
import zlib
from typing import IO, Any, cast

import numpy as np

from .._dispatch.native import extension

_crc32 = zlib.crc32 if extension is None or extension.crc32(b"") is None else extension.crc32
ALIGNMENT = 64
_LIMIT32 = 0xFFFFFFFF
_CHUNK = 1 << 24

CORRUPT = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint file is corrupted. "
    "This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file was modified after saving."
)

_BROKEN = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    UnicodeDecodeError,
    ValueError,
)
"""What the parts of the standard library raise for an archive that is damaged or made up."""


# ------------------------------------------------------------------------------------------------------------------ writing


class RecordWriter:
    """Writes records one after the other into a binary file, which need not be seekable. `close` writes the directory."""

    def __init__(self, file: IO[bytes], root: str) -> None:
        self._file = file
        self._root = root
        self._offset = 0
        self._directory: list[bytes] = []
        self._checksum = 0

    @property
    def checksum(self) -> int:
        """A checksum of all that was written so far."""
        return self._checksum

    def write(self, name: str, content: Any, summed: bool = True) -> None:
        """Add a record of bytes (any contiguous buffer); with no checksum unless `summed`, so that it may be filled in later."""
        view = memoryview(content).cast("B")
        crc, size = _crc32(view) if summed else 0, view.nbytes
        raw_name = f"{self._root}/{name}".encode()
        self._checksum = zlib.crc32(struct.pack("<IQ", crc, size) + raw_name, self._checksum)
        large = size >= _LIMIT32 or self._offset >= _LIMIT32
        sizes = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        fixed = 30 + len(raw_name) + len(sizes) + 4
        padding = -(self._offset + fixed) % ALIGNMENT
        extra = sizes + b"FB" + struct.pack("<H", padding) + b"Z" * padding
        stored = _LIMIT32 if large else size
        version = 45 if large else 0
        common = struct.pack("<HHHHHIII", version, 0x800, 0, 0, 0x21, crc, stored, stored)
        self._put(b"PK\3\4" + common + struct.pack("<HH", len(raw_name), len(extra)) + raw_name + extra)
        start = self._offset - fixed - padding
        far = struct.pack("<HHQQQ", 1, 24, size, size, start) if large else b""
        self._directory.append(
            b"PK\1\2"
            + struct.pack("<H", version)
            + common
            + struct.pack("<HHHHHII", len(raw_name), len(far), 0, 0, 0, 0, _LIMIT32 if large else start)
            + raw_name
            + far
        )
        self._put(view)

    def _put(self, content: Any) -> None:
        self._file.write(content)
        self._offset += len(content)

    def close(self) -> None:
        """Write the directory of records, without which the file cannot be read."""
        start, count = self._offset, len(self._directory)
        for entry in self._directory:
            self._put(entry)
        size = self._offset - start
        if start >= _LIMIT32 or size >= _LIMIT32 or count >= 0xFFFF:
            end = self._offset
            self._put(b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, start))
            self._put(b"PK\6\7" + struct.pack("<IQI", 0, end, 1))
        few = min(count, 0xFFFF)
        self._put(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, few, few, min(size, _LIMIT32), min(start, _LIMIT32), 0))


# ------------------------------------------------------------------------------------------------------------------ reading


def is_zip(file: IO[bytes]) -> bool:
    """Whether a file begins, where it stands, like a ZIP archive. Its position stays."""
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return head == b"PK\3\4"


class _Seekable:
    """A file-like object of which no more is known than that it has `read`, `seek` and `tell`."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def seekable(self) -> bool:
        """Yes."""
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class RecordReader:
    """Reads records by name. RuntimeError, with PyTorch's words, for archives that are damaged, made up or hostile."""

    def __init__(self, file: IO[bytes]) -> None:
        if not hasattr(file, "seekable"):
            file = cast("IO[bytes]", _Seekable(file))
        self._file = file
        file.seek(0, os.SEEK_END)
        self._file_size = file.tell()
        try:
            self._zip = zipfile.ZipFile(file)
        except _BROKEN as error:
            kind = "not a ZIP archive" if self._file_size < 22 else "failed finding central directory"
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {kind}. {CORRUPT}") from error
        entries = self._zip.infolist()
        if not entries:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: no files in it. {CORRUPT}")
        if sum(entry.compress_size for entry in entries) > self._file_size:
            raise RuntimeError(f"PytorchStreamReader failed reading zip archive: records overlap. {CORRUPT}")
        self._root = entries[0].filename.partition("/")[0] + "/"
        self._entries = {}
        for entry in entries:
            self._entries.setdefault(entry.filename, entry)

    def __contains__(self, name: str) -> bool:
        return self._root + name in self._entries

    def names(self) -> list[str]:
        """The names of all records."""
        return [name.removeprefix(self._root) for name in self._entries]

    def size(self, name: str) -> int:
        """The size of a record's content in bytes, as the directory tells it."""
        return self._entry(name).file_size

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self._entries.get(self._root + name)
        if entry is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found. {CORRUPT}")
        if entry.file_size > 1032 * entry.compress_size + 1024:
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: impossible size. {CORRUPT}")
        return entry

    def read(self, name: str) -> bytes:
        """The content of a record, its checksum proven (0 says that the writer made none)."""
        entry = self._entry(name)
        try:
            if not entry.CRC and entry.compress_type == zipfile.ZIP_STORED:
                return self.read_array(name).tobytes()
            return self._zip.read(entry)
        except _BROKEN as error:
            raise RuntimeError(
                f"PytorchStreamReader failed reading file {name}: file read failed. {CORRUPT}"
            ) from error

    def offset(self, name: str) -> int:
        """Where a stored record's content begins in the file. RuntimeError if it is compressed or not within the file."""
        entry = self._entry(name)
        self._file.seek(entry.header_offset)
        head = self._file.read(30)
        if len(head) == 30 and head[:4] == b"PK\3\4" and entry.compress_type == zipfile.ZIP_STORED:
            start = entry.header_offset + 30 + sum(struct.unpack("<HH", head[26:30]))
            if start + entry.file_size <= self._file_size and entry.file_size == entry.compress_size:
                return start
        raise RuntimeError(f"PytorchStreamReader failed reading file {name}: it is no stored record. {CORRUPT}")

    def header_offset(self, name: str) -> int:
        """Where in the file a record's header begins."""
        return self._entry(name).header_offset

    def read_array(self, name: str) -> np.ndarray:
        """The content of a record as a fresh uint8 array, its checksum proven."""
        entry = self._entry(name)
        if entry.compress_type != zipfile.ZIP_STORED:
            return np.frombuffer(bytearray(self.read(name)), np.uint8)
        self._file.seek(self.offset(name))
        content = np.empty((entry.file_size,), np.uint8)
        if not _fill(self._file, content) or (entry.CRC and _crc32(content) != entry.CRC):
            raise RuntimeError(f"PytorchStreamReader failed reading file {name}: file read failed. {CORRUPT}")
        return content


def _fill(file: IO[bytes], content: np.ndarray) -> bool:
    """Fill an array from a file; False when the file ends before."""
    view, done = memoryview(content), 0
    readinto = getattr(file, "readinto", None)
    while done < len(view):
        part = view[done : done + _CHUNK]
        if readinto is not None:
            count = readinto(part)
        else:
            data = file.read(len(part))
            count = len(data)
            part[:count] = data
        if not count:
            return False
        done += count
    return True


BYTE_ORDER = sys.byteorder.encode()
"""The content of the record that says how elements are laid out."""
