"""Run by several ranks: trains, and goes on from its last checkpoint when it is started anew: FOLDER STEPS."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(folder, steps):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 4)), bucket_cap_mb=1e-3)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    path, first = os.path.join(folder, "checkpoint.pt"), 0
    if os.path.exists(path):
        saved = torch.load(path)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
    print("pid", os.getpid(), "from", first, flush=True)
    for step in range(first, int(steps)):
        batch = torch.randn(size, 8, 16, generator=torch.Generator().manual_seed(step))[rank]
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        dist.all_reduce(torch.ones(30000))  # more than a message of the store has
        if rank == 0 and step % 3 == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
            torch.save(state, path + ".new")
            os.replace(path + ".new", path)  # a kill at any moment leaves a whole file
        time.sleep(0.005)
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(folder, "weights.pt"))
    dist.destroy_process_group()
    print("done", rank, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
