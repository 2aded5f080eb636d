"""Runs `collectives.py` in processes of `mp.spawn`, which find each other as the argument says: a URL, or `env`."""

import os
import sys

import collectives
import torch.multiprocessing as mp


def run(rank, size, method, port):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(size))
    if method == "env":
        collectives.main(few=True)
    else:
        collectives.main(few=True, init_method=method, rank=rank, world_size=size)


if __name__ == "__main__":
    method, size, port = sys.argv[1:]
    mp.spawn(run, (int(size), method, port), int(size))
