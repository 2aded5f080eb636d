"""Checkpoints: by several ranks, of other numbers of ranks, after kills, and of files that are damaged or say what they must not."""

import os
import pickle
import random
import shutil
import signal
import time

import pytest
from _ranks import ENGINES, ranks_of, start

import mindtorch_v2 as torch
import mindtorch_v2.distributed.checkpoint as dcp
from mindtorch_v2.distributed.checkpoint import staging
from mindtorch_v2.distributed.checkpoint.format_utils import whole_state_dict
from mindtorch_v2.distributed.checkpoint.metadata import Metadata, MetadataIndex
from mindtorch_v2.distributed.checkpoint.state_dict_saver import AsyncSaveResponse

KILLS = int(os.environ.get("KILLS", "6"))


@pytest.mark.parametrize("engine", ENGINES)
def test_by_ranks(engine, tmp_path):
    assert ranks_of("checkpoints.py", 2, engine, tmp_path).count("ok") == 2


def test_other_numbers_of_ranks(tmp_path):
    assert ranks_of("checkpoints.py", 3, "store", tmp_path, "save").count("ok") == 3
    assert ranks_of("checkpoints.py", 2, "store", tmp_path, "load").count("ok") == 2
    assert ranks_of("checkpoints.py", 1, "store", tmp_path, "load").count("ok") == 1


def test_a_kill_at_any_moment_leaves_the_last_complete_one(tmp_path):
    """A process saves one checkpoint after the other, alternately in the background, and is killed; what is there is one of those that it had begun, whole."""
    chance = random.Random(5)
    seen = set()
    for _ in range(KILLS):
        process = start("saving.py", tmp_path / "folder")
        first = int(process.stdout.readline())
        time.sleep(chance.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        printed, _ = process.communicate()
        last = max([first, *map(int, printed.split())])
        state = {"step": 0, "x": torch.zeros(300, 100), "y": torch.zeros(7)}
        dcp.load(state, checkpoint_id=tmp_path / "folder")
        assert last <= state["step"] <= last + 2
        assert bool((state["x"] == state["step"]).all()) and bool((state["y"] == -state["step"]).all())
        seen.add(state["step"])
    assert len(seen) > 1


@pytest.fixture
def folder(tmp_path):
    dcp.save({"x": torch.arange(100.0), "n": [1, "two"], "deep": {"y": torch.ones(2, 2)}}, checkpoint_id=tmp_path / "c")
    return tmp_path / "c"


def load(folder, name="x"):
    dcp.load({name: torch.zeros(100)}, checkpoint_id=folder)


def data_file(folder):
    return next(file for file in folder.iterdir() if file.suffix == ".distcp")


def test_damage(folder, tmp_path):
    load(folder)
    for number, (damage, text) in enumerate(
        [
            (lambda file: file.write_bytes(file.read_bytes()[:-40]), "is too short"),
            (
                lambda file: file.write_bytes(file.read_bytes().replace(b"\x00\x00\x80?", b"\x00\x00\x81?")),
                "digest is another one",
            ),
            (lambda file: file.unlink(), "lacks its file"),
        ]
    ):
        copied = shutil.copytree(folder, tmp_path / f"copy{number}")
        damage(data_file(copied))
        with pytest.raises(dcp.CheckpointException, match=text):
            load(copied)
    metadata = folder / ".metadata"
    whole = metadata.read_bytes()
    metadata.write_bytes(whole[:-3])
    with pytest.raises(dcp.CheckpointException, match="there are digests of another one"):
        load(folder)
    next(folder.glob(".checksums-*")).unlink()
    with pytest.raises(dcp.CheckpointException, match="is no metadata of a checkpoint"):
        load(folder)
    metadata.write_bytes(whole)  # as PyTorch's, without digests
    load(folder)


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/evil-of-a-checkpoint",)


@pytest.mark.parametrize("given", [Evil(), {"state_dict_metadata": Evil()}, eval, getattr, 5, ["x"]])
def test_metadata_of_others(folder, given):
    next(folder.glob(".checksums-*")).unlink()
    (folder / ".metadata").write_bytes(pickle.dumps(given))
    with pytest.raises(dcp.CheckpointException, match="is no metadata of a checkpoint"):
        load(folder)
    assert not os.path.exists("/tmp/evil-of-a-checkpoint")


METADATA_OF_ATTACKERS = {
    "a key of tuples in tuples, whose hash goes too deep": b"}K\x01" + b"\x85" * 200_000 + b"K\x01s",
    "an attribute of a class": b"ctorch.distributed.checkpoint.metadata\nMetadata\nN}X\x08\x00\x00\x00__repr__K\x05s\x86b",
    "attributes that Python gives a meaning": b"ctorch.distributed.checkpoint.metadata\nStorageMeta\n)\x81}X\x09\x00\x00\x00__class__K\x05sb",
    "an index whose offset is no size": b"}ctorch.distributed.checkpoint.metadata\nMetadataIndex\n)\x81}X\x03\x00\x00\x00fqnK\x05sbK\x01s",
    "no values at all": b"ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81",
    "a size of a text": b"ctorch\nSize\nX\x01\x00\x00\x00a\x85R",
    "a long list, doubled again and again": b"]K\x01a" + b"2\x86" * 60,
}


@pytest.mark.parametrize("made", METADATA_OF_ATTACKERS.values(), ids=METADATA_OF_ATTACKERS)
def test_metadata_of_attackers(folder, made):
    next(folder.glob(".checksums-*")).unlink()
    (folder / ".metadata").write_bytes(b"\x80\x04" + made + b".")
    with pytest.raises(RuntimeError, match="is no metadata of a checkpoint") as caught:
        dcp.FileSystemReader(folder).read_metadata()
    assert len(str(caught.value)) < 1000
    assert callable(Metadata.__repr__)


def test_paths_of_far_longer_lists_than_there_are_values(folder):
    metadata = dcp.FileSystemReader(folder).read_metadata()
    next(folder.glob(".checksums-*")).unlink()
    metadata.planner_data["n.0" if "n.0" in metadata.planner_data else "x"] = ("n", 1 << 40)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(RuntimeError, match="far longer than it has values"):
        whole_state_dict(folder)


def test_places_outside_of_the_folder(folder):
    reader = dcp.FileSystemReader(folder)
    metadata = reader.read_metadata()
    next(folder.glob(".checksums-*")).unlink()
    for name in ("../c/.metadata", "/etc/passwd", "..", ""):
        info = metadata.storage_data[MetadataIndex("x", [0])]
        info.relative_path = name
        (folder / ".metadata").write_bytes(pickle.dumps(metadata))
        with pytest.raises(RuntimeError, match="places"):
            reader.read_metadata()


def test_items_are_read_without_their_code(folder):
    """What is no tensor is read as `weights_only`."""
    metadata = dcp.FileSystemReader(folder).read_metadata()
    next(folder.glob(".checksums-*")).unlink()
    evil = folder / "__0_9-x.distcp"
    torch.save(Evil(), evil)
    info = metadata.storage_data[MetadataIndex("n")]
    info.relative_path, info.offset, info.length = evil.name, 0, evil.stat().st_size
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(dcp.CheckpointException):
        dcp.load({"n": None}, checkpoint_id=folder)
    assert not os.path.exists("/tmp/evil-of-a-checkpoint")


def test_options(folder, tmp_path):
    from mindtorch_v2.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp

    dcp_to_torch_save(folder, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt")
    assert whole["n"] == [1, "two"] and whole["deep"]["y"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    torch_save_to_dcp(tmp_path / "whole.pt", tmp_path / "again")
    load(tmp_path / "again")
    with pytest.raises(dcp.CheckpointException, match="already exists"):
        dcp.save({"x": torch.ones(1)}, storage_writer=dcp.FileSystemWriter(folder, overwrite=False))
    dcp.save(
        {"x": torch.ones(3)}, storage_writer=dcp.FileSystemWriter(folder, single_file_per_rank=False, sync_files=False)
    )
    assert len(list(folder.glob("*.distcp"))) == 1 and len(list(folder.iterdir())) == 3
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        from mindtorch_v2.distributed.checkpoint.state_dict import StateDictOptions

        StateDictOptions(broadcast_from_rank0=True)
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.save({})
    future = dcp.async_save({"x": torch.ones(3) * 2}, checkpoint_id=folder)
    assert future.result(60).state_dict_metadata["x"].size == torch.Size([3])


@pytest.mark.parametrize("kind", ["thread", "plain", "blocking"])
def test_stagers_copy_what_is_saved(kind, tmp_path):
    if kind == "blocking":
        stager = staging.BlockingAsyncStager()
    else:
        stager = staging.DefaultStager(staging.StagingOptions(False, False, kind == "thread", False))
    state = {"x": torch.arange(4.0), "nested": {"y": [torch.ones(2), 5]}, "kept": {1}}
    made = dcp.async_save(state, checkpoint_id=tmp_path / "saved", async_stager=stager, no_dist=True)
    if kind == "thread":
        assert isinstance(made, AsyncSaveResponse) and made.staging_completion.result(60) is None
        made = made.upload_completion
    state["x"].zero_()
    state["kept"].add(2)
    made.result(60)
    found = {"x": torch.zeros(4), "nested": {"y": [torch.zeros(2), 0]}, "kept": None}
    dcp.load(found, checkpoint_id=tmp_path / "saved", no_dist=True)
    assert found["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found["nested"]["y"][0].tolist() == [1.0, 1.0] and found["nested"]["y"][1] == 5 and found["kept"] == {1}
    stager.close()


def test_what_a_stager_gives_is_not_copied_again(tmp_path, monkeypatch):
    class Stager(staging.AsyncStager):
        def stage(self, state_dict):
            return {"x": state_dict["x"] + 1}

    clones = []
    clone = torch.Tensor.clone
    monkeypatch.setattr(torch.Tensor, "clone", lambda self: clones.append(self) or clone(self))
    dcp.async_save({"x": torch.ones(3)}, checkpoint_id=tmp_path, async_stager=Stager(), no_dist=True).result(60)
    found = {"x": torch.zeros(3)}
    dcp.load(found, checkpoint_id=tmp_path, no_dist=True)
    assert found["x"].tolist() == [2.0, 2.0, 2.0] and not clones


def test_copies_that_do_not_block_need_an_accelerator():
    with pytest.raises(AssertionError, match="Non-blocking copy requires that the current accelerator is available"):
        staging.DefaultStager()
