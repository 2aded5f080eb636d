"""Checkpoints in files of safetensors: of one rank, of pieces of several, and joined."""

from __future__ import annotations

import json
import struct

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.distributed import checkpoint as dcp
from mindtorch_v2.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files_on_every_rank
from mindtorch_v2.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter
from mindtorch_v2.distributed.checkpoint.metadata import MetadataIndex


def state():
    torch.manual_seed(0)
    return {
        "a": torch.randn(3, 4),
        "b": torch.arange(5),
        "c": torch.randn(2, 2).bfloat16().t(),
        "s": torch.tensor(3.0),
        "e": torch.empty(0, 3),
        "q": torch.tensor([True, False]),
        "z": torch.tensor([1 + 2j]),
    }


def loaded(folder):
    found = {name: torch.zeros_like(tensor) for name, tensor in state().items()}
    dcp.load(found, storage_reader=HuggingFaceStorageReader(folder))
    return found


def same(folder):
    found = loaded(folder)
    return all(torch.equal(found[name], tensor) for name, tensor in state().items())


def test_one_file(tmp_path):
    dcp.save(state(), storage_writer=HuggingFaceStorageWriter(tmp_path))
    assert same(tmp_path)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == 3 * 4 * 4 + 5 * 8 + 4 * 2 + 4 + 2 + 8
    assert set(index["weight_map"].values()) == {"model-00001-of-00001.safetensors"}


def test_files_by_name(tmp_path):
    numbers = dict.fromkeys(state(), 1) | {"b": 2, "c": 3}
    dcp.save(state(), storage_writer=HuggingFaceStorageWriter(tmp_path, fqn_to_index_mapping=numbers))
    assert same(tmp_path)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert index["weight_map"]["c"] == "model-00003-of-00003.safetensors"


def test_joined_after_the_save(tmp_path):
    dcp.save(state(), storage_writer=HuggingFaceStorageWriter(tmp_path, save_distributed=True, enable_consolidation=True))  # fmt: skip
    assert same(tmp_path) and same(tmp_path / "sharded")
    assert [file.name for file in (tmp_path / "sharded").iterdir()] == ["shard-00001-model-00001-of-00001.safetensors"]


def test_pieces_of_several_ranks(tmp_path):
    whole = torch.arange(12.0).reshape(4, 3)
    writer = HuggingFaceStorageWriter(tmp_path / "pieces", save_distributed=True)
    for rank in range(2):
        writer.write("", rank, [(MetadataIndex("w", (2 * rank, 0)), whole[2 * rank : 2 * rank + 2])])
    consolidate_safetensors_files_on_every_rank(tmp_path / "pieces", tmp_path / "whole", {"w": 1})
    for folder in ("pieces", "whole"):
        found = {"w": torch.zeros(4, 3)}
        dcp.load(found, storage_reader=HuggingFaceStorageReader(tmp_path / folder))
        assert torch.equal(found["w"], whole)


def test_refusals(tmp_path):
    with pytest.raises(dcp.CheckpointException, match="tensors alone"):
        dcp.save({"step": 3}, storage_writer=HuggingFaceStorageWriter(tmp_path))
    with pytest.raises(ValueError, match="save_distributed=True"):
        HuggingFaceStorageWriter(tmp_path).write("", 1, [(MetadataIndex("w", (0,)), torch.ones(1))])
    with pytest.raises(dcp.CheckpointException, match=r"torch\.complex128"):
        dcp.save({"w": torch.ones(1, dtype=torch.complex128)}, storage_writer=HuggingFaceStorageWriter(tmp_path))
    with pytest.raises(dcp.CheckpointException, match="Missing key"):
        dcp.load({"w": torch.ones(1)}, storage_reader=HuggingFaceStorageReader(tmp_path))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<Q", 1 << 60),
        struct.pack("<Q", 2) + b"[]",
        *(
            struct.pack("<Q", len(text)) + text + bytes(4)
            for text in (
                b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}',
                b'{"w": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}',
                b'{"w": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}',
            )
        ),
    ],
)
def test_files_of_others(content, tmp_path):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(RuntimeError, match="no file of safetensors"):
        HuggingFaceStorageReader(tmp_path).read_metadata()
