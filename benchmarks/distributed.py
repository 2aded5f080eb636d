"""What ranks take to exchange tensors, and how much of that DistributedDataParallel hides behind its backward pass.

    mpiexec -n 2 python -m mindtorch_v2 benchmarks/distributed.py [--rounds 9] [--mebibytes 64] [--width 1024] [--layers 6]

Interleaved medians over rounds: wall time of a DDP step, of the same step without exchange and of the exchange of its gradients alone, whose sum the first is to stay below; bandwidth of all_reduce beside that of
mpi4py's own call over the same memory; CPU time of a small all_reduce beside mpi4py's. Ranks wait for each other before each measurement. Processors, their load and what else ran stand above the figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import mindtorch_v2 as torch
import mindtorch_v2.distributed as dist
from mindtorch_v2 import nn

Clock = Callable[[], float]


def measured(cases: dict[str, Callable[[], Any]], rounds: int, clock: Clock, repeats: int = 1) -> dict[str, float]:
    """Median seconds of a call of each case, on the slowest rank; rounds go over all cases in turn."""
    comm, samples = MPI.COMM_WORLD, {name: [] for name in cases}
    for function in cases.values():  # warm up
        function()
    for _ in range(rounds):
        for name, function in cases.items():
            comm.Barrier()
            start = clock()
            for _ in range(repeats):
                function()
            samples[name].append(comm.allreduce((clock() - start) / repeats, MPI.MAX))
    return {name: statistics.median(times) for name, times in samples.items()}


def overlap(width: int, layers: int, batch: int, rounds: int) -> dict[str, float]:
    """Seconds of a step with exchange, of one without, and of the exchange alone."""
    torch.manual_seed(0)
    model = nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(width, width), nn.GELU())))
    parallel = nn.parallel.DistributedDataParallel(model)
    x = torch.randn(batch, width)
    gradients = [torch.zeros(width * width + width) for _ in range(layers)]

    def step() -> None:
        parallel(x).square().mean().backward()

    def alone() -> None:
        with parallel.no_sync():
            parallel(x).square().mean().backward()

    def exchange() -> None:
        for gradient in gradients:
            dist.all_reduce(gradient)

    return measured({"step": step, "compute": alone, "exchange": exchange}, rounds, time.perf_counter)


def bandwidth(size: int, rounds: int) -> dict[str, float]:
    """Seconds of all_reduce over so many bytes, and of mpi4py's."""
    ours = torch.zeros(size // 4)
    plain = np.zeros(size // 4, np.float32)
    cases = {"ours": lambda: dist.all_reduce(ours), "mpi4py": lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, plain)}
    return measured(cases, rounds, time.perf_counter)


def small(rounds: int) -> dict[str, float]:
    """CPU seconds of this thread for an all_reduce of four numbers, and for mpi4py's: where both ranks have a processor, waiting is the same in both."""
    ours = torch.zeros(4)
    plain = np.zeros(4, np.float32)
    cases = {"ours": lambda: dist.all_reduce(ours), "mpi4py": lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, plain)}
    return measured(cases, rounds, time.thread_time, 500)


def own_cost(rounds: int) -> dict[str, float]:
    """CPU seconds of the same calls where no other rank is waited for: in a group of this rank alone, and over COMM_SELF."""
    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    group, ours, plain = groups[dist.get_rank()], torch.zeros(4), np.zeros(4, np.float32)
    cases = {
        "ours": lambda: dist.all_reduce(ours, group=group),
        "mpi4py": lambda: MPI.COMM_SELF.Allreduce(MPI.IN_PLACE, plain),
    }
    return measured(cases, rounds, time.thread_time, 2000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mebibytes", type=int, default=64)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()
    dist.init_process_group("mpi")
    torch.set_num_threads(1)
    steps = overlap(args.width, args.layers, args.batch, args.rounds)
    wide = bandwidth(args.mebibytes << 20, args.rounds)
    little, own = small(args.rounds), own_cost(args.rounds)
    if dist.get_rank() == 0:
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        print(f"{dist.get_world_size()} ranks on {os.cpu_count()} processors, load {load} (1, 5, 15 minutes)")
        both = steps["compute"] + steps["exchange"]
        print(
            f"DDP step {steps['step'] * 1e3:.1f} ms; compute {steps['compute'] * 1e3:.1f} ms + exchange {steps['exchange'] * 1e3:.1f} ms = {both * 1e3:.1f} ms; "
            f"ratio {steps['step'] / both:.2f}"
        )
        rates = {name: args.mebibytes / seconds for name, seconds in wide.items()}
        print(
            f"all_reduce of {args.mebibytes} MiB: {rates['ours']:.0f} MiB/s, mpi4py {rates['mpi4py']:.0f} MiB/s; ratio {rates['ours'] / rates['mpi4py']:.2f}"
        )
        for what, times in (("between ranks", little), ("of one rank", own)):
            microseconds = {name: seconds * 1e6 for name, seconds in times.items()}
            print(
                f"all_reduce of 16 bytes {what}: {microseconds['ours']:.2f} us of CPU, mpi4py {microseconds['mpi4py']:.2f} us; "
                f"difference {microseconds['ours'] - microseconds['mpi4py']:.2f} us"
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
