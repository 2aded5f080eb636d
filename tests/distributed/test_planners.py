"""Planners of a program's own for checkpoints: those that PyTorch's documentation shows, and ones that fail."""

from dataclasses import replace

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.distributed import checkpoint
from mindtorch_v2.distributed.checkpoint.planner import WriteItemType


class Renaming(checkpoint.DefaultSavePlanner):
    """Saves under other names."""

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        super().set_up_planner(
            {f"foo_{name}": value for name, value in state_dict.items()}, storage_meta, is_coordinator
        )


class Halving(checkpoint.DefaultSavePlanner):
    """Writes tensors in another dtype."""

    def create_local_plan(self):
        plan = super().create_local_plan()
        for item in plan.items:
            if item.tensor_data is not None:
                item.tensor_data.properties.dtype = torch.float16
        return plan

    def resolve_data(self, write_item):
        found = super().resolve_data(write_item)
        return found if write_item.type is WriteItemType.BYTE_IO else found.to(torch.float16)


class Extra(checkpoint.DefaultSavePlanner):
    """Keeps a word of each rank."""

    def create_local_plan(self):
        return replace(super().create_local_plan(), planner_data="of a rank")

    def create_global_plan(self, all_plans):
        self.flatten_state_dict = False  # whose names are not merged
        plans, metadata = super().create_global_plan(all_plans)
        return plans, replace(metadata, planner_data=[plan.planner_data for plan in plans])


class Unnaming(checkpoint.DefaultLoadPlanner):
    """Loads from other names."""

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        super().set_up_planner({f"foo_{name}": value for name, value in state_dict.items()}, metadata, is_coordinator)
        self.given = state_dict

    def load_bytes(self, read_item, value):
        self.given[read_item.dest_index.fqn.removeprefix("foo_")] = torch.load(value, weights_only=True)


class Materializing(checkpoint.DefaultLoadPlanner):
    """Loads into tensors of its own."""

    def resolve_tensor(self, read_item):
        self.made = torch.empty_like(super().resolve_tensor(read_item), device="cpu")
        return self.made

    def commit_tensor(self, read_item, tensor):
        self.state_dict[read_item.dest_index.fqn] = self.original_state_dict[read_item.dest_index.fqn] = tensor


STATE = {"a": torch.arange(6.0).reshape(2, 3), "n": {"b": torch.ones(2), "step": 7}, "words": ["x"]}


def test_planners_of_programs(tmp_path):
    """Those that PyTorch's documentation shows."""
    checkpoint.save(dict(STATE), checkpoint_id=tmp_path / "a", planner=Renaming(), no_dist=True)
    names = checkpoint.FileSystemReader(tmp_path / "a").read_metadata().state_dict_metadata
    assert set(names) == {"foo_a", "foo_n.b", "foo_n.step", "foo_words"}
    into = {"a": torch.zeros(2, 3), "words": None}
    checkpoint.load(into, checkpoint_id=tmp_path / "a", planner=Unnaming(), no_dist=True)
    assert torch.equal(into["a"], STATE["a"]) and into["words"] == ["x"]

    checkpoint.save(dict(STATE), checkpoint_id=tmp_path / "b", planner=Halving(), no_dist=True)
    made = checkpoint.FileSystemReader(tmp_path / "b").read_metadata()
    assert made.state_dict_metadata["a"].properties.dtype is torch.float16
    into = {"a": torch.zeros(2, 3, device="meta")}
    checkpoint.load(into, checkpoint_id=tmp_path / "b", planner=Materializing(), no_dist=True)
    assert torch.equal(into["a"], STATE["a"]) and into["a"].device.type == "cpu"

    checkpoint.save(dict(STATE), checkpoint_id=tmp_path / "c", planner=Extra(), no_dist=True)
    assert checkpoint.FileSystemReader(tmp_path / "c").read_metadata().planner_data == ["of a rank"]


def test_state_dicts_that_stay_nested(tmp_path):
    planner = checkpoint.DefaultSavePlanner(flatten_state_dict=False)
    checkpoint.save({"n": {"b": torch.ones(2), "step": 7}}, checkpoint_id=tmp_path, planner=planner, no_dist=True)
    into = {"n": None}
    checkpoint.load(
        into, checkpoint_id=tmp_path, planner=checkpoint.DefaultLoadPlanner(flatten_state_dict=False), no_dist=True
    )
    assert into["n"]["step"] == 7 and torch.equal(into["n"]["b"], torch.ones(2))


def test_planners_that_fail(tmp_path):
    checkpoint.save(dict(STATE), checkpoint_id=tmp_path, no_dist=True)
    with pytest.raises(TypeError, match="planner must be a LoadPlanner, not DefaultSavePlanner"):
        checkpoint.load({}, checkpoint_id=tmp_path, planner=checkpoint.DefaultSavePlanner(), no_dist=True)
    with pytest.raises(checkpoint.CheckpointException, match="Missing key in checkpoint state_dict: z"):
        checkpoint.load({"z": torch.ones(1)}, checkpoint_id=tmp_path, planner=Materializing(), no_dist=True)

    class Wrong(checkpoint.DefaultSavePlanner):
        def resolve_data(self, write_item):
            return 5

    with pytest.raises(checkpoint.CheckpointException, match="resolve_data of a gives a int, not a tensor"):
        checkpoint.save(dict(STATE), checkpoint_id=tmp_path, planner=Wrong(), no_dist=True)


def test_a_planner_saves_in_the_background(tmp_path):
    made = checkpoint.async_save(dict(STATE), checkpoint_id=tmp_path, planner=Renaming(), no_dist=True).result(60)
    assert "foo_a" in made.state_dict_metadata
