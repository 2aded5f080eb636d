"""Processes of `mp.spawn`, of which the first one fails while the others wait for it: URL HOW."""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, method, how):
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=3)
    dist.barrier()
    print(f"runs since {time.monotonic()}", flush=True)
    if rank == 0:
        if how == "raise":
            raise ValueError("no more")
        os.kill(os.getpid(), 9)
    dist.all_reduce(torch.ones(1))


if __name__ == "__main__":
    mp.spawn(run, sys.argv[1:], 3)
