"""A function that `elastic_launch` calls in several processes: HOW."""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def work(how, number):
    dist.init_process_group("gloo")
    total = torch.full((number,), float(dist.get_rank() + 1))
    dist.all_reduce(total)
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if how != "well" and dist.get_rank() == 1 and (how == "always" or not attempt):
        raise ValueError("this one fails")
    dist.barrier()
    dist.destroy_process_group()
    return total.tolist(), attempt


if __name__ == "__main__":
    how, method = sys.argv[1:]
    config = LaunchConfig(1, 1, 3, max_restarts=1, start_method=method)
    found = elastic_launch(config, work)(how, 20000)
    assert list(found) == [0, 1, 2]
    assert all(total == [6.0] * 20000 and attempt == (how == "once") for total, attempt in found.values())
    print("ok")
