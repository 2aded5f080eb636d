"""A checkpoint in a folder.

Note [The last complete checkpoint]
Every save writes files of new names. What it has counts once `.metadata` says so, which is written last, under another name, made durable, and renamed: at every moment the folder has the metadata of one
complete checkpoint, or none. Only then files that it does not name are removed. `.checksums-HEX` has a digest of each item; HEX is that of the metadata, so that the two belong together.
(PyTorch writes no such file, and reads checkpoints that have one.)

Note [Metadata from others]
`.metadata` is a pickle, as PyTorch's is. It is read by an unpickler that knows the classes of metadata, sizes and dtypes, and refuses every other name; items are read with `weights_only`. Lengths and
offsets are checked against the files.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

from ..._serialization.shown import shown
from ._metadata_pickle import MetadataUnpickler
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

__all__ = ["FileSystemReader", "FileSystemWriter", "StorageReader", "StorageWriter"]

METADATA = ".metadata"


@dataclass
class _StorageInfo:
    """Where an item is."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict:
        return {key: value for key, value in self.__dict__.items() if value is not None}


class StorageWriter:
    """Where `save` writes to."""

    def write(
        self, token: str, rank: int, items: list[tuple[MetadataIndex, Any]]
    ) -> dict[MetadataIndex, tuple[_StorageInfo, str]]:
        """Write a rank's items and make them durable; by item, where it is, and its digest."""
        raise NotImplementedError

    def commit(self, token: str, made: Metadata, digests: dict[str, dict[str, str]]) -> None:
        """Have the checkpoint count."""
        raise NotImplementedError


class StorageReader:
    """Where `load` reads from."""

    def read_metadata(self) -> Metadata:
        """What there is."""
        raise NotImplementedError

    def read_item(self, place: _StorageInfo) -> Any:
        """One item."""
        raise NotImplementedError


def _durable(path: Path, data: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # folders cannot be opened there
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Bytes(bytes):
    """What `torch.save` wrote already."""


def _saved(value: Any) -> memoryview:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getbuffer()


class FileSystemWriter(StorageWriter):
    """Writes a checkpoint to a folder: see Note [The last complete checkpoint].

    Args:
        path: the folder, which is made.
        single_file_per_rank: False: a file for each item.
        sync_files: whether a save waits until the disk has its files. Without it a power failure, though no kill, may leave an incomplete one.
        overwrite: whether the folder may have a checkpoint. RuntimeError of `save` if it may not and has.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: Any = None,
    ) -> None:
        if _extensions:
            raise NotImplementedError("extensions of checkpoints (compression, encryption) are not supported")
        self.path = Path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.overwrite = overwrite

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Write to another folder."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether it is a path."""
        return "://" not in str(checkpoint_id)

    def write(
        self, token: str, rank: int, items: list[tuple[MetadataIndex, Any]]
    ) -> dict[MetadataIndex, tuple[_StorageInfo, str]]:
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / METADATA).exists():
            raise RuntimeError(f"Checkpoint already exists and overwrite={self.overwrite}: {self.path}")
        found: dict[MetadataIndex, tuple[_StorageInfo, str]] = {}
        groups = [items] if self.single_file_per_rank else [[item] for item in items]
        for number, group in enumerate(group for group in groups if group):
            name = f"__{rank}_{number}-{token}.distcp"
            with open(self.path / name, "wb") as file:
                for index, value in group:
                    data = value if isinstance(value, Bytes) else _saved(value)
                    found[index] = _StorageInfo(name, file.tell(), len(data)), hashlib.sha256(data).hexdigest()
                    file.write(data)
                file.flush()
                if self.sync_files:
                    os.fsync(file.fileno())
        if self.sync_files and found:
            _sync_folder(self.path)
        return found

    def commit(self, token: str, made: Metadata, digests: dict[str, dict[str, str]]) -> None:
        data = pickle.dumps(made)
        mark = hashlib.sha256(data).hexdigest()[:32]
        sums = f".checksums-{mark}"
        _durable(self.path / sums, json.dumps(digests).encode())
        _durable(self.path / METADATA, data)
        kept = {METADATA, sums, *(info.relative_path for info in made.storage_data.values())}
        for file in self.path.iterdir():
            stale = file.name.startswith(".checksums-") or file.suffix == ".distcp" or file.name.endswith(".tmp")
            if stale and file.name not in kept:
                file.unlink(missing_ok=True)


def new_token() -> str:
    """What names of a save's files end in."""
    return uuid.uuid4().hex[:12]


def _is_entry(entry: Any) -> bool:
    """Whether it is what metadata has of a tensor, or of bytes."""
    if isinstance(entry, BytesStorageMetadata):
        return True
    parts = getattr(entry, "__dict__", {})
    return (
        isinstance(entry, TensorStorageMetadata)
        and isinstance(parts.get("properties"), TensorProperties)
        and isinstance(entry.properties.dtype, torch.dtype)
        and _are_lengths(parts.get("size"))
        and isinstance(parts.get("chunks"), list)
        and all(
            isinstance(chunk, ChunkStorageMetadata)
            and all(
                _are_lengths(chunk.__dict__.get(part)) and len(chunk.__dict__[part]) == len(entry.size)
                for part in ("offsets", "sizes")
            )
            for chunk in entry.chunks
        )
    )


def _are_lengths(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(type(n) is int and 0 <= n < 1 << 63 for n in value)


class FileSystemReader(StorageReader):
    """Reads a checkpoint of a folder."""

    def __init__(self, path: str | os.PathLike, _extension_registry: Any = None) -> None:
        self.path = Path(path)
        self.load_id = ""
        self._digests: dict[str, dict[str, str]] | None = None

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        """Read another folder."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self._digests = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether it is a path."""
        return "://" not in str(checkpoint_id)

    def read_metadata(self) -> Metadata:
        """What the checkpoint has.

        Raises:
            FileNotFoundError: if there is none.
            RuntimeError: for metadata that is damaged, or is something else.
        """
        data = (self.path / METADATA).read_bytes()
        mark = hashlib.sha256(data).hexdigest()[:32]
        sums = self.path / f".checksums-{mark}"
        if sums.exists():
            try:
                self._digests = json.loads(sums.read_bytes())
            except (ValueError, RecursionError) as error:
                raise RuntimeError(f"{sums} is damaged: {error}") from error
            if not isinstance(self._digests, dict) or not all(isinstance(d, dict) for d in self._digests.values()):
                raise RuntimeError(f"{sums} is damaged: it has no digests")
        elif any(self.path.glob(".checksums-*")):
            raise RuntimeError(f"{self.path / METADATA} is damaged: there are digests of another one")
        try:
            made = MetadataUnpickler(io.BytesIO(data), _StorageInfo).load()
        except (pickle.UnpicklingError, EOFError, TypeError, ValueError, RecursionError) as error:
            raise RuntimeError(f"{self.path / METADATA} is no metadata of a checkpoint: {error}") from error
        self._check(made)
        return made

    def _check(self, made: Any) -> None:
        """That it is what it says: the right classes, and places within files of the folder."""
        if (
            not isinstance(made, Metadata)
            or not isinstance(getattr(made, "state_dict_metadata", None), dict)
            or not isinstance(made.storage_data, dict)
        ):
            raise RuntimeError(f"{self.path / METADATA} is no metadata of a checkpoint")
        for name, entry in made.state_dict_metadata.items():
            if not isinstance(name, str) or not _is_entry(entry):
                raise RuntimeError(f"{self.path / METADATA} says nothing of {shown(name)}")
        sizes: dict[str, int] = {}
        for index, info in made.storage_data.items():
            name: Any = getattr(info, "relative_path", None)
            whole = isinstance(index, MetadataIndex) and isinstance(info, _StorageInfo) and isinstance(name, str)
            if not whole or Path(name).name != name or name in ("", ".", ".."):  # type: ignore[arg-type]
                raise RuntimeError(
                    f"{self.path / METADATA} places {shown(getattr(index, 'fqn', index))} in {shown(name)!r}"
                )
            if name not in sizes:
                try:
                    sizes[name] = (self.path / name).stat().st_size
                except (OSError, ValueError):  # names that no file has, among them
                    raise RuntimeError(f"the checkpoint {self.path} lacks its file {shown(name)}") from None
            offset, length = getattr(info, "offset", None), getattr(info, "length", None)
            if not (
                isinstance(offset, int) and isinstance(length, int) and 0 <= offset <= offset + length <= sizes[name]
            ):
                raise RuntimeError(
                    f"{name} is too short: it has {sizes[name]} bytes, and {index.fqn} is at {offset} to {offset}+{length}"
                )

    def read_item(self, place: _StorageInfo) -> Any:
        """What `torch.save` wrote there. RuntimeError if the bytes are not those that were written."""
        with open(self.path / place.relative_path, "rb") as file:
            file.seek(place.offset)
            data = file.read(place.length)
        wanted = None if self._digests is None else self._digests.get(place.relative_path, {}).get(str(place.offset))
        if self._digests is not None and hashlib.sha256(data).hexdigest() != wanted:
            raise RuntimeError(
                f"{self.path / place.relative_path} is damaged at {place.offset}: its digest is another one"
            )
        return torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
