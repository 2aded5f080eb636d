"""Pipelines and threads: each thread has its own, and a tensor that is handed over is run by whoever looks at it. `SECONDS=60` takes longer."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch.pipeline import current_pipeline

SECONDS = float(os.environ.get("SECONDS", "3"))
THREADS = 10


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function gives in a thread of its own."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(function).result(timeout=60)


def test_a_pipeline_belongs_to_its_thread() -> None:
    x = torch.tensor([1.0, 2.0])

    def elsewhere() -> tuple:
        y = x + 1
        return current_pipeline(), y._pending, y.tolist()

    with torch.pipeline():
        assert current_pipeline() is not None
        assert in_thread(elsewhere) == (None, False, [2.0, 3.0])
        assert (x + 1)._pending


def test_another_thread_runs_what_it_looks_at() -> None:
    x = torch.tensor([1.0, 2.0])
    with torch.pipeline():
        other = x * 5
        y = (x + 1) * 2
        assert y._pending
        assert in_thread(y.tolist) == [4.0, 6.0]
        assert not y._pending and other._pending
    assert other.tolist() == [5.0, 10.0]


def test_another_thread_computes_with_a_pending_tensor() -> None:
    x = torch.tensor([1.0, 2.0])

    def elsewhere() -> list:
        with torch.pipeline():
            return (y * 10 + z).tolist()

    with torch.pipeline():
        y = x + 1
        z = y.sum()
        assert in_thread(elsewhere) == [25.0, 35.0]
        y.add_(1)
    assert y.tolist() == [3.0, 4.0] and z.item() == 5.0


def test_an_error_is_raised_in_the_thread_that_looks() -> None:
    with torch.pipeline():
        bad = torch.index_select(torch.tensor([1.0]), 0, torch.tensor([3]))
        with pytest.raises(IndexError, match="recorded at"):
            in_thread(bad.tolist)
        ok = torch.tensor([1.0]) + 1
    assert ok.item() == 2.0


def test_tensors_handed_over_while_more_is_recorded(restless: None) -> None:
    """One thread records, another one looks at what it is given: nothing is lost and nothing runs twice."""
    handed: queue.SimpleQueue = queue.SimpleQueue()
    problems: list[Any] = []

    def reader() -> None:
        while True:
            item = handed.get()
            if item is None:
                return
            tensor, expected = item
            try:
                found = tensor.tolist()
            except Exception as error:  # noqa: BLE001 (the main thread raises it)
                problems.append(error)
                return
            if found != expected:
                problems.append((found, expected))

    thread = threading.Thread(target=reader)
    thread.start()
    kept = []
    ends = time.monotonic() + SECONDS / 3
    number = 0
    try:
        while time.monotonic() < ends and not problems:
            with torch.pipeline():
                total = torch.zeros(3)
                for _ in range(50):
                    number += 1
                    x = torch.tensor([1.0, 2.0, 3.0]) + number
                    y = torch.cumsum(x, 0) * 2
                    total += x
                    kept.append((total.clone(), y))
                    handed.put((y, [2.0 * (1 + number), 2.0 * (3 + 2 * number), 2.0 * (6 + 3 * number)]))
            first = number - 49
            sums = [sum(range(first, first + n + 1)) for n in range(50)]
            for n, ((copied, _), added) in enumerate(zip(kept, sums), 1):
                assert copied.tolist() == [n * base + added for base in (1.0, 2.0, 3.0)]
            kept.clear()
    finally:
        handed.put(None)
        thread.join(60)
    assert not problems, problems
    assert number >= 50


def _work(number: int, rounds: int, generator: np.random.Generator) -> None:
    """A few programs with answers that numpy knows too."""
    start = generator.integers(-8, 9, (7, 5)).astype(np.float64)
    x = torch.tensor(start.tolist(), dtype=torch.float64)
    weight = torch.tensor([float(number)] * 5, dtype=torch.float64, requires_grad=True)
    with torch.pipeline(max_ops=int(generator.integers(1, 40)), fuse=bool(generator.integers(0, 2))):
        y = torch.relu(x * 2 - 1) + x
        early = y.sum(1)
        view = y[1:3]
        view.mul_(2)
        with torch.pipeline():
            z = torch.cumsum(y, 0)
        loss = (z * weight).sum()
        if rounds % 3 == 0:
            assert early[0].item() == (np.maximum(start * 2 - 1, 0) + start)[0].sum()
        loss.backward()
        x.copy_(z)
        if rounds % 7 == 0:
            with pytest.raises(IndexError, match="recorded at"):
                torch.index_select(x, 0, torch.tensor([9])).tolist()
    wanted = np.maximum(start * 2 - 1, 0) + start
    assert early.tolist() == wanted.sum(1).tolist()
    wanted[1:3] *= 2
    assert y.tolist() == wanted.tolist()
    assert z.tolist() == wanted.cumsum(0).tolist() == x.tolist()
    assert loss.item() == wanted.cumsum(0).sum() * number
    assert weight.grad is not None and weight.grad.tolist() == wanted.cumsum(0).sum(0).tolist()


def test_ten_threads_with_pipelines_of_their_own(restless: None) -> None:
    ends = time.monotonic() + SECONDS / 1.5
    start = threading.Barrier(THREADS)

    def run(number: int) -> int:
        generator = np.random.default_rng(number)
        start.wait(60)
        rounds = 0
        while rounds < 3 or time.monotonic() < ends:
            _work(number, rounds, generator)
            rounds += 1
        assert current_pipeline() is None
        return rounds

    with ThreadPoolExecutor(THREADS) as executor:
        rounds = list(executor.map(run, range(1, THREADS + 1)))
    assert min(rounds) >= 3
