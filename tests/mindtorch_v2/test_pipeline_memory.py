"""What pipelines hold on to: nothing after the block, and no more within it than the same program without one."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import mindtorch_v2 as torch

SIZE = 1 << 18
BYTES = SIZE * 4


def test_nothing_is_held_after_the_block() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    with torch.pipeline() as pipe:
        y = torch.relu(x * 2)
        z = torch.cumsum(y, 0)
        z.add_(1)
        view = z[1:]
        out = torch.zeros(3)
        torch.add(x, y, out=out)
        pipe.flush()
    tensors = [weakref.ref(t) for t in (x, y, z, view, out)]
    arrays = [weakref.ref(t.detach().numpy()) for t in (x, y, z, out)]
    assert "relu" in pipe.explain()
    del x, y, z, view, out
    gc.collect()
    assert [ref() for ref in (*tensors, *arrays)] == [None] * 9
    assert pipe._recorder is None


def test_operands_go_when_they_have_been_read() -> None:
    with torch.pipeline() as pipe:
        x = torch.tensor([1.0, 2.0, 3.0])
        array = weakref.ref(x._payload)
        y = torch.cumsum(x, 0)
        del x
        assert array() is not None
        pipe.flush()
        assert array() is None
        assert y.tolist() == [1.0, 3.0, 6.0]


def test_a_failed_operator_holds_nothing() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    array = weakref.ref(x._payload)
    with pytest.raises(IndexError):
        with torch.pipeline():
            bad = torch.index_select(x, 0, torch.tensor([8]))
    del x
    gc.collect()
    assert array() is None
    with pytest.raises(IndexError):
        bad.tolist()


def peak(program: Callable[[Any], Any], mode: dict | None) -> int:
    """The most memory that a program takes at a time beside its argument."""
    x = torch.ones(SIZE)
    x.data_ptr()
    gc.collect()
    tracemalloc.start()
    try:
        if mode is None:
            result = program(x)
        else:
            with torch.pipeline(**mode):
                result = program(x)
        assert result[0].item() != 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def long_chain(x: Any) -> Any:
    for _ in range(15):
        x = torch.tanh(x * 0.5 + 1)
    return x


def long_series(x: Any) -> Any:
    for _ in range(20):
        x = torch.flip(torch.roll(x, 1, 0), [0])
    return x


def with_writes(x: Any) -> Any:
    y = x + 1
    for _ in range(20):
        y.mul_(0.5)
        y[1:].add_(1)
    return y


@pytest.mark.parametrize("program", [long_chain, long_series, with_writes])
@pytest.mark.parametrize("mode", [{}, {"fuse": False}], ids=["fused", "one by one"])
def test_the_peak_is_not_above_that_of_eager_calls(program: Callable, mode: dict) -> None:
    with ThreadPoolExecutor(1) as executor:  # a thread has no pipeline of its own
        eager = executor.submit(peak, program, None).result()
    assert eager >= BYTES
    # A write over a whole tensor gives it new memory, so that chains stay chains; the old one goes right after.
    fresh = BYTES if program is with_writes else 0
    assert peak(program, mode) <= eager + fresh + BYTES // 8


def test_a_chain_takes_the_memory_of_its_result() -> None:
    assert peak(long_chain, {}) < BYTES * 1.5
