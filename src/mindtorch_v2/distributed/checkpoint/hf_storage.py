"""Checkpoints as folders of safetensors files, which Hugging Face's libraries read: of one rank with whole tensors, or of several with a piece each."""

from __future__ import annotations

import json
from typing import Any

import mindtorch_v2 as torch

from . import _safetensors
from ._consolidate_hf_safetensors import consolidate_safetensors_files
from ._files import FileSystemWriter, _StorageInfo
from ._hf_reader import HuggingFaceStorageReader as HuggingFaceStorageReader, _HFStorageInfo as _HFStorageInfo
from .metadata import Metadata, MetadataIndex

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors to safetensors files.

    Args:
        path: the folder, which is made.
        fqn_to_index_mapping: by a tensor's name the number of its file, from 1. All in one file, unless said.
        save_distributed: whether every rank writes its pieces to files of its own. Otherwise one rank has all tensors whole, and there is an index of the files.
        enable_consolidation: whether the pieces are joined after the save: they are in the folder `sharded` then, and the whole tensors in `path`, with an index.
    """

    def __init__(
        self,
        path: str,
        fqn_to_index_mapping: dict[str, int] | None = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.consolidated_output_path: str | None = None
        if enable_consolidation:
            self.consolidated_output_path = str(self.path)
            self.path = self.path / "sharded"
        self.thread_count_consolidation = thread_count_consolidation

    def write(
        self, token: str, rank: int, items: list[tuple[MetadataIndex, Any]]
    ) -> dict[MetadataIndex, tuple[Any, str]]:
        if rank and items and not self.save_distributed:
            raise ValueError(
                "several ranks have tensors to write: save_distributed=True has each write files of its own"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        numbers = self.fqn_to_index_mapping
        largest = 1 if numbers is None else max(numbers.values())
        files: dict[int, list[tuple[MetadataIndex, torch.Tensor]]] = {}
        for index, value in items:
            if not isinstance(value, torch.Tensor):
                raise ValueError(
                    f"{index.fqn} is a {type(value).__name__}, and files of safetensors have tensors alone"
                )
            files.setdefault(1 if numbers is None else numbers[index.fqn], []).append((index, value))
        found: dict[MetadataIndex, tuple[Any, str]] = {}
        for number, group in files.items():
            name = _safetensors.file_name(number, largest, rank + 1 if self.save_distributed else None)
            places = {index.fqn: {"saved_offsets": list(index.offset or ())} for index, _ in group}
            metadata = {_safetensors.SHARDING: json.dumps(places), "DCP_VERSION": "1.0", "format": "pt"}
            _safetensors.write(self.path / name, {index.fqn: value for index, value in group}, metadata)
            for index, value in group:
                found[index] = _StorageInfo(name, 0, value.numel() * value.element_size()), ""
        return found

    def commit(self, token: str, made: Metadata, digests: dict[str, dict[str, str]]) -> None:
        if not self.save_distributed:
            files = {index.fqn: info.relative_path for index, info in made.storage_data.items()}
            _safetensors.write_index(self.path, files, sum(info.length for info in made.storage_data.values()))
        elif self.consolidated_output_path is not None:
            numbers = self.fqn_to_index_mapping or dict.fromkeys(made.state_dict_metadata, 1)
            consolidate_safetensors_files(
                str(self.path), self.consolidated_output_path, numbers, self.thread_count_consolidation
            )
