"""Threads that compute with the extension's own pool of threads: `threads.py SEED ROUNDS|FIRST:END`. For sanitizers: build.py. Prints how many rounds of each kind were made, as JSON.

Four threads at once spread loops, flush pipelines, multiply matrices, draw from one generator, differentiate, and read and change the number of threads.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable

import mindtorch_v2 as torch

ELEMENTS = 1 << 17
SHARED = torch.Generator().manual_seed(1)
X = torch.linspace(-1, 1, ELEMENTS)
SQUARE = torch.linspace(-1, 1, 128 * 128).reshape(128, 128)
SUM = float((X.abs() * 2 + 1).sum())


def loops() -> None:
    assert abs(float((X.abs() * 2 + 1).sum()) - SUM) < 1
    assert torch.softmax(X.reshape(-1, 64), 1).shape == (ELEMENTS // 64, 64)
    assert X.exp().cumsum(0).isfinite().all()


def pipelines() -> None:
    with torch.pipeline():
        y = torch.tanh(X * 2 + 1) * 0.5
        z = (y - 1).sum()
    assert z.item() < 0


def products() -> None:
    assert torch.mm(SQUARE, SQUARE).shape == (128, 128)
    assert torch.nn.functional.conv2d(SQUARE[None, None], torch.ones(2, 1, 3, 3)).shape == (1, 2, 126, 126)


def draws() -> None:
    assert torch.rand(ELEMENTS, generator=SHARED).max() < 1
    assert torch.randn(1000).isfinite().all()


def gradients() -> None:
    x = X.clone().requires_grad_(True)
    (x.sigmoid() * x).mean().backward()
    assert x.grad is not None and x.grad.shape == x.shape


def settings() -> None:
    torch.set_num_threads(random.randrange(1, 5))
    assert 1 <= torch.get_num_threads() <= 4


KINDS: list[Callable[[], None]] = [loops, pipelines, products, draws, gradients, settings]


def main(seed: str, numbers: range) -> None:
    torch.set_num_threads(4)
    done: Counter[str] = Counter()
    failures: list[str] = []

    def work(thread: int) -> None:
        for number in numbers:
            pick = random.Random(f"{seed} {thread} {number}")
            kind = pick.choice(KINDS)
            try:
                kind()
            except Exception as error:  # noqa: BLE001 (told)
                failures.append(f"{kind.__name__}: {error!r}")
            done[kind.__name__] += 1

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"rounds": done, "failures": failures}))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1], range(*map(int, sys.argv[2].split(":"))))
