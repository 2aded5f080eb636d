"""Run by several ranks, with a folder: what they save, they and any other number of ranks load. `save` or `load` after the folder: half of it, for another number of ranks to go on with."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 7), nn.Linear(7, 3)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def trained(model, steps, start=0, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=0.05)
    for step in range(start, start + steps):
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return optimizer


def net(seed=1):
    torch.manual_seed(seed)
    return Net()


def close(found, wanted):
    if isinstance(found, DTensor):
        found = found.full_tensor()
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


class Counter:
    """Something with a state of its own."""

    def __init__(self, value=0):
        self.value = value

    def state_dict(self):
        return {"value": self.value, "list": [torch.tensor([self.value]), "text"]}

    def load_state_dict(self, state):
        self.value = state["value"]
        assert int(state["list"][0]) == self.value and state["list"][1] == "text"


def state_of(model, optimizer, step):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optimizer": optimizer_state, "step": step, "counter": Counter(step)}


def save_training(folder, save=dcp.save):
    model = fully_shard(net())
    optimizer = trained(model, 3)
    made = save(state_of(model, optimizer, 3), checkpoint_id=folder)
    if save is dcp.async_save:
        trained(model, 1, 3, optimizer)  # what is saved is what was there
        made = made.result()
    assert (
        "model.first.weight" in made.state_dict_metadata
        and "optimizer.state.first.weight.exp_avg" in made.state_dict_metadata
    )


def load_training(folder):
    """The weights after five steps are those of one process that took them at once."""
    plain = net()
    trained(plain, 5)
    for wrapped in (fully_shard(net(2)), DistributedDataParallel(net(2)), net(2)):
        optimizer = torch.optim.AdamW(wrapped.parameters(), lr=0.5)
        state = state_of(wrapped, optimizer, 0)
        state["counter"] = counter = Counter()
        dcp.load(state, checkpoint_id=folder)
        assert state["step"] == 3 and counter.value == 3
        set_state_dict(wrapped, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        assert optimizer.param_groups[0]["lr"] == 0.05
        trained(wrapped, 2, 3, optimizer)
        for one, other in zip(wrapped.parameters(), plain.parameters()):
            close(one.detach(), other.detach())


def check_layouts(folder, size):
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(35.0).reshape(7, 5)
    for place in (Shard(0), Shard(1), Replicate()):
        made = distribute_tensor(whole, mesh, [place])
        dcp.save({"x": made, "plain": whole * 2, "b": whole.bfloat16(), "s": torch.tensor(3)}, checkpoint_id=folder)
        for other in (Shard(0), Shard(1), Replicate()):
            found = {
                "x": distribute_tensor(torch.zeros(7, 5), mesh, [other]),
                "plain": torch.zeros(7, 5),
                "b": torch.zeros(7, 5, dtype=torch.bfloat16),
                "s": torch.tensor(0),
            }
            dcp.load(found, checkpoint_id=folder)
            close(found["x"], whole)
            close(found["plain"], whole * 2)
            assert found["b"].dtype == torch.bfloat16 and int(found["s"]) == 3
    if size == 4:
        grid = init_device_mesh("cpu", (2, 2))
        made = distribute_tensor(whole, grid, [Shard(0), Shard(0)])
        dcp.save({"x": made}, checkpoint_id=folder)
        found = {"x": distribute_tensor(torch.zeros(7, 5), grid, [Replicate(), Shard(1)])}
        dcp.load(found, checkpoint_id=folder)
        close(found["x"], whole)


class Renaming(dcp.DefaultSavePlanner):
    """Saves under other names, and what ranks have of its own beside it."""

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        assert is_coordinator == (dist.get_rank() == 0)
        super().set_up_planner({f"foo_{k}": v for k, v in state_dict.items()}, storage_meta, is_coordinator)


class Unnaming(dcp.DefaultLoadPlanner):
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        super().set_up_planner({f"foo_{k}": v for k, v in state_dict.items()}, metadata, is_coordinator)


def check_planners(folder, size):
    """Each rank writes its part, as a planner of the program's own has it, and reads what it needs of all."""
    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(7.0 * 3).reshape(7, 3)
    dcp.save({"x": distribute_tensor(whole, mesh, [Shard(0)]), "y": whole}, checkpoint_id=folder, planner=Renaming())
    found = {"x": distribute_tensor(torch.zeros(7, 3), mesh, [Shard(1)]), "y": torch.zeros(7, 3)}
    dcp.load(found, checkpoint_id=folder, planner=Unnaming())
    close(found["x"], whole)
    close(found["y"], whole)
    made = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    assert len(made["foo_x"].chunks) == size and len(made["foo_y"].chunks) == 1


def check_options(rank):
    model = fully_shard(net())
    optimizer = trained(model, 2)
    plain = net()
    trained(plain, 2)
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    assert list(full) == ([] if rank else list(plain.state_dict()))
    for name, value in full.items():
        close(value, plain.state_dict()[name])
    other = fully_shard(net(3))
    set_model_state_dict(other, full, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    for one, wanted in zip(other.parameters(), plain.parameters()):
        close(one.detach(), wanted.detach())
    states = get_state_dict(
        model, optimizer, options=StateDictOptions(full_state_dict=True, flatten_optimizer_state_dict=True)
    )
    assert states[1]["state.first.weight.exp_avg"].shape == (7, 5) and states[1]["param_groups.first.weight.lr"] == 0.05
    again = torch.optim.AdamW(other.parameters(), lr=0.5)
    given = states if rank == 0 else ({}, {})
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_state_dict(
        other, again, model_state_dict=given[0] or {"": torch.zeros(1)}, optim_state_dict=given[1], options=options
    )
    trained(other, 2, 2, again)
    trained(model, 2, 2, optimizer)
    for one, wanted in zip(other.parameters(), model.parameters()):
        close(one.detach().full_tensor(), wanted.detach().full_tensor())


def refused(text, call):
    try:
        call()
    except dcp.CheckpointException as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{text}: taken")


def check_errors(folder, rank, size):
    dcp.save({"x": torch.ones(3), "y": 1}, checkpoint_id=folder)
    refused("Missing key in checkpoint state_dict: z.", lambda: dcp.load({"z": torch.ones(3)}, checkpoint_id=folder))
    refused("Size mismatch", lambda: dcp.load({"x": torch.ones(4)}, checkpoint_id=folder))
    refused("No such file", lambda: dcp.load({"x": torch.ones(4)}, checkpoint_id=folder / "none"))
    bad = {"x": torch.ones(3), "own": (lambda: None) if rank == size - 1 else 1}
    refused(
        f"ranks:[{0 if size == 1 else size - 1}]" if size == 1 else "RANK",
        lambda: dcp.save({**bad, f"only{rank}": bad["own"]}, checkpoint_id=folder),
    )
    found = {"x": torch.zeros(3), "y": 0}
    dcp.load(found, checkpoint_id=folder)  # the one before is still there
    assert found["y"] == 1 and float(found["x"].sum()) == 3
    dcp.load(
        {"x": torch.ones(3), "new": 5}, checkpoint_id=folder, planner=dcp.DefaultLoadPlanner(allow_partial_load=True)
    )


def main():
    rank, size = dist.get_rank(), dist.get_world_size()
    folder, half = Path(sys.argv[1]), sys.argv[2:]
    if half == ["save"]:
        save_training(folder / "handed")
    elif half == ["load"]:
        load_training(folder / "handed")
    else:
        check_layouts(folder / "layouts", size)
        save_training(folder / "training")
        load_training(folder / "training")
        save_training(folder / "training", dcp.async_save)
        load_training(folder / "training")
        dist.barrier()
        names = sorted(name for name in os.listdir(folder / "training") if not name.endswith(".distcp"))
        assert [name[:11] for name in names] == [".checksums-", ".metadata"], names
        check_planners(folder / "planners", size)
        check_options(rank)
        check_errors(folder / "errors", rank, size)
    print("ok")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
