"""Chains of six pointwise operators in a pipeline against eager PyTorch, one thread, float32, in one process.

    python benchmarks/pipeline.py [--rounds 11]

Run it with `MINDTORCH_V2_NATIVE=0` as well: the plan then runs on numpy alone. Prints the time per chain and how many times as fast as PyTorch it is,
with the limit; then what recording costs per operator, beside an eager call; then a BERT-base forward in a pipeline and eagerly.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import tracemalloc
from collections.abc import Callable

import bert
import measure
import numpy as np
import torch

import mindtorch_v2
from mindtorch_v2._dispatch import native

LIMITS = {1_000: 1.0, 1_000_000: 3.0, 10_000_000: 8.0}
LIMITS_OF_NUMPY = {1_000: 1.0, 1_000_000: 1.0, 10_000_000: 3.0}


def cheap(a, b):
    """Six operators of one flop each."""
    c = a + b
    c = c * a
    c = c - b
    c = c * 0.5
    c = c + 1.0
    return c * b


def mixed(a, b):
    """Six operators, of which two are tanh and sigmoid."""
    c = a * b
    c = c.tanh()
    c = c + a
    c = c.sigmoid()
    c = c * b
    return c - a


def deferred(chain: Callable, a, b) -> Callable[[], object]:
    def run():
        with mindtorch_v2.pipeline():
            c = chain(a, b)
        return c

    return run


def case(chain: Callable, elements: int) -> measure.Case:
    mindtorch_v2.manual_seed(0)
    a, b = mindtorch_v2.rand(elements), mindtorch_v2.rand(elements)
    x, y = (torch.from_numpy(t.numpy().copy()) for t in (a, b))
    found, wanted = deferred(chain, a, b)(), chain(x, y)
    assert torch.allclose(torch.from_numpy(found.numpy()), wanted, rtol=1e-5, atol=1e-6)
    return f"{chain.__name__} {elements:.0e}", deferred(chain, a, b), lambda: chain(x, y)


def chains(rounds: int) -> None:
    limits = LIMITS if native.extension is not None else LIMITS_OF_NUMPY
    for elements, limit in limits.items():
        cases = [case(chain, elements) for chain in (cheap, mixed)]
        repeats = max(1, min(2000, 3_000_000 // elements))
        for name, ours, theirs in measure.compare(cases, rounds, repeats):
            ratio = theirs / ours
            mark = "ok" if ratio >= limit else f"below {limit}"
            print(f"{name:14} {ours * 1e6:12.1f} us {theirs * 1e6:12.1f} us   {ratio:6.2f} times as fast  {mark}")


def recording(rounds: int) -> None:
    """Six operators on [4, 4], recorded and eager; the difference is what recording one costs more."""
    a, b = mindtorch_v2.rand(4, 4), mindtorch_v2.rand(4, 4)
    for chain in (cheap, mixed):
        recorded, eager = [], []
        for _ in range(rounds * 20):
            with mindtorch_v2.pipeline():
                recorded.append(measure.once(lambda: chain(a, b), 100))  # noqa: B023
            eager.append(measure.once(lambda: chain(a, b), 100))  # noqa: B023
        first, second = statistics.median(recorded) / 6, statistics.median(eager) / 6
        mark = "ok" if first - second <= 3e-6 else "above 3 us"
        print(f"recording {chain.__name__:8} {first * 1e6:6.2f} us an operator, eager {second * 1e6:6.2f} us   {mark}")


def encoder(rounds: int) -> None:
    """A BERT-base forward in a pipeline beside our eager one: time, and the peak of memory above what was there before."""
    model = bert.build(mindtorch_v2, 12, "eager")
    for batch, length in ((1, 16), (4, 128)):
        ids = mindtorch_v2.randint(0, bert.VOCABULARY, (batch, length))

        def eager(ids=ids):
            with mindtorch_v2.no_grad():
                return model(ids)

        def recorded(ids=ids):
            with mindtorch_v2.no_grad(), mindtorch_v2.pipeline():
                return model(ids)

        assert np.array_equal(eager().numpy(), recorded().numpy())
        ((_, ours, theirs),) = measure.compare([("", recorded, eager)], rounds, 1)
        peaks = [peak(function) / 2**20 for function in (recorded, eager)]
        print(
            f"BERT-base {batch} x {length}: {ours * 1e3:8.1f} ms, eager {theirs * 1e3:8.1f} ms, {ours / theirs:5.3f} of it; "
            f"peak {peaks[0]:.2f} MiB, eager {peaks[1]:.2f} MiB"
        )


def peak(function: Callable) -> int:
    """The most bytes that a call has allocated at a time."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("with the C extension" if native.extension is not None else "with numpy alone")
    chains(arguments.rounds)
    recording(arguments.rounds)
    encoder(arguments.rounds)


if __name__ == "__main__":
    main()
