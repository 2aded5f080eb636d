"""Pieces of tensors in safetensors files, joined to whole tensors in such files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import _safetensors
from ._hf_reader import HuggingFaceStorageReader
from ._loading import whole_tensor
from ._saving import Ranks

__all__ = ["consolidate_safetensors_files", "consolidate_safetensors_files_on_every_rank"]


def _joined(input_dir: str, output_dir: str, numbers: dict[str, int], largest: int) -> dict[str, tuple[str, int]]:
    """Write the files; by name, the file and the number of bytes."""
    reader = HuggingFaceStorageReader(input_dir)
    metadata = reader.read_metadata()
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, tuple[str, int]] = {}
    for number in sorted(set(numbers.values())):
        tensors: dict[str, Any] = {}
        for name in (name for name, one in numbers.items() if one == number):
            entry = metadata.state_dict_metadata.get(name)
            if entry is None:
                raise ValueError(f"no file in {input_dir} has {name}")
            tensors[name] = whole_tensor(name, entry, metadata, reader)
        file = _safetensors.file_name(number, largest)
        _safetensors.write(folder / file, tensors, {"format": "pt"})
        found |= {name: (file, tensor.numel() * tensor.element_size()) for name, tensor in tensors.items()}
    return found


def _write_index(output_dir: str, found: dict[str, tuple[str, int]]) -> None:
    files = {name: file for name, (file, _) in found.items()}
    _safetensors.write_index(Path(output_dir), files, sum(size for _, size in found.values()))


def consolidate_safetensors_files(
    input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int], num_threads: int = 1
) -> None:
    """Join the pieces of one folder to whole tensors in another one, with an index.

    Args:
        fqn_to_index_mapping: by a tensor's name the number of its file, from 1.
    """
    found = _joined(input_dir, output_dir, fqn_to_index_mapping, max(fqn_to_index_mapping.values()))
    _write_index(output_dir, found)


def consolidate_safetensors_files_on_every_rank(
    input_dir: str,
    output_dir: str,
    fqn_to_index_mapping: dict[str, int],
    num_threads: int = 1,
    process_group: Any = None,
) -> None:
    """`consolidate_safetensors_files` by all ranks, each of which writes some of the files; the first one writes the index."""
    ranks = Ranks(process_group, False)
    own = {name: number for name, number in fqn_to_index_mapping.items() if number % ranks.count == ranks.rank}
    largest = max(fqn_to_index_mapping.values())
    parts = ranks.each("write", lambda: _joined(input_dir, output_dir, own, largest))
    found = {name: place for part in parts or [] for name, place in part.items()}
    ranks.first_only("finish", lambda: _write_index(output_dir, found))
