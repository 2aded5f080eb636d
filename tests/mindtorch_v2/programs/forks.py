"""Forks at random moments of threads that work: `forks.py COUNT SEED`. Prints what became of the children as JSON.

Four threads run pipelines with helpers, draw numbers, train, and load data by worker processes, while the main thread forks. Each child does some of each and ends.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter

import mindtorch_v2 as torch
from mindtorch_v2 import _forks, _state
from mindtorch_v2.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
SHARED = torch.Generator().manual_seed(1)
ELEMENTS = 1 << 18
SECONDS = 200  # until a child counts as hung


def resident() -> int:
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def flush(x: torch.Tensor) -> None:
    with torch.pipeline():
        y = torch.tanh(x * 2 + 1) * 0.5
        z = (y - 1).sum()
    assert y.shape == x.shape and z.item() < 0


def draw() -> None:
    assert torch.randn(1000, generator=SHARED).isfinite().all()
    assert torch.rand(100_000).max() < 1


def train() -> None:
    layer = torch.nn.Linear(16, 4)
    with torch.autocast("cpu"):
        layer(torch.ones(8, 16)).float().sum().backward()
    with torch.inference_mode():
        assert layer(torch.ones(2, 16)).shape == (2, 4)
    with torch.device("meta"):
        assert torch.ones(2).device.type == "meta"


class Flushed(TensorDataset):
    def __getitem__(self, index: int) -> tuple:
        with torch.pipeline():
            (x,) = super().__getitem__(index)
            return ((x * 2 + 1).exp(),)


def load() -> None:
    seen = [batch.shape[0] for (batch,) in DataLoader(Flushed(torch.ones(8, 3)), batch_size=4, num_workers=1)]
    assert seen == [4, 4]


def child() -> None:
    """What a forked process does."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    assert torch.ones(1).__class__ in _state.PLAIN, "the state is special for ever"
    x = torch.ones(ELEMENTS)
    flush(x)
    draw()
    train()
    before = resident()
    for _ in range(20):
        flush(x)
    grown = resident() - before
    assert grown < 8 * 4 * ELEMENTS, f"20 flushes keep {grown >> 20} MiB"
    if random.random() < 0.2:
        load()


def main(count: int, seed: int) -> None:
    random.seed(seed)
    _forks.PATIENCE = 60  # the machine may have other things to do
    torch.set_num_threads(2)
    torch.autograd  # noqa: B018
    ended = threading.Event()
    failures: list[str] = []

    def work(*jobs: object) -> None:
        while not ended.is_set():
            for job in jobs:
                try:
                    job()  # type: ignore[operator]
                except BaseException as error:
                    failures.append(f"{job}: {error!r}")
                    raise

    x = torch.ones(ELEMENTS)
    threads = [
        threading.Thread(target=work, args=jobs)
        for jobs in ((lambda: flush(x),), (lambda: flush(x), draw), (draw, train), (load,))
    ]
    for thread in threads:
        thread.start()
    outcomes: Counter[str] = Counter()
    sizes = []
    slowest = 0.0
    for _ in range(count):
        time.sleep(random.random() * 0.05)
        begun = time.monotonic()
        pid = os.fork()
        slowest = max(slowest, time.monotonic() - begun)
        if pid == 0:
            code = 1
            try:
                random.seed()
                child()
                code = 0
            except BaseException as error:  # noqa: BLE001 (the parent is told by the status)
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        forked = time.monotonic()
        _, status = os.waitpid(pid, 0)
        if len(sys.argv) > 3:
            print(f"fork {forked - begun:.3f} s, child {time.monotonic() - forked:.3f} s", file=sys.stderr)
        outcomes["ended" if status == 0 else f"status {status}"] += 1
        sizes.append(resident())
    ended.set()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    for thread in threads:
        thread.join()
    half = len(sizes) // 2
    grown = max(sizes[half:]) - max(sizes[:half])
    print(json.dumps({"outcomes": outcomes, "failures": failures, "grown": grown, "slowest": slowest}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
