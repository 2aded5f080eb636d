"""Signals whose handlers raise, in the midst of launches: no executor, descriptor, event or block is left behind, and what is run next is right."""

from __future__ import annotations

import ctypes
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader, launchers, streams

pytestmark = pytest.mark.skipif(not acl_loader.emulated(), reason="only the emulator can be asked what there is")
SIGNALS = 2_000
F = torch.nn.functional


class Interrupt(BaseException):
    """What the handler raises."""


def state() -> dict[str, int]:
    count = acl_loader.load().own("emLive", ctypes.c_int64, ctypes.c_char_p)
    torch.npu.synchronize()
    gc.collect()
    streams._sweep()  # retired events go with the next one
    found = {what: count(what.encode()) for what in ("tensors", "scalars", "arrays", "lists", "executors", "events")}
    return {**found, "bytes": torch.npu.memory_allocated()}


@contextmanager
def interrupts(way: Callable) -> Iterator[Callable[[], bool]]:
    """Signals come again and again, each some time after the last was handled; what is given says whether enough raised. They raise within `way` alone, so
    that the loop which calls it again has no gaps."""
    main, ended, handled = threading.get_ident(), threading.Event(), True
    count = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal count, handled
        handled = True  # no lock: this may come while the thread that it runs in holds it
        while frame is not None and frame.f_code is not way.__code__:
            frame = frame.f_back
        if frame is not None:
            count += 1
            raise Interrupt

    def disturb() -> None:
        nonlocal handled
        pause = 0
        while not ended.is_set():
            pause = (pause + 7) % 61
            time.sleep(pause * 20e-6)
            if handled:
                handled = False
                signal.pthread_kill(main, signal.SIGUSR1)

    former = signal.signal(signal.SIGUSR1, stop)
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield lambda: count >= SIGNALS
    finally:
        ended.set()
        thread.join()
        while not handled:  # the last one, which may have been held
            time.sleep(0.001)
        signal.signal(signal.SIGUSR1, former)


def planned(x: torch.Tensor) -> None:
    for _ in range(200):
        x + x


def general(x: torch.Tensor) -> None:
    """Launches without a plan: in place, lists of tensors, several results, casts, shapes that the elements tell, workspaces, copies, random numbers."""
    y = torch.cat([x, x * 2]).sort(0)[0]
    y[::2].add_(1).mul_(0.5)
    torch.nonzero(y > 1)
    torch._foreach_add_([y, y.clone()], 1.0)
    F.softmax(y.half() @ y.half().T, -1).max(1)
    F.dropout(F.layer_norm(y, (8,)), 0.5).cpu()
    torch.arange(8, device="npu").to(torch.float32).var()


@pytest.mark.parametrize("way", [planned, general])
def test_signals_leave_nothing_behind(way: Callable) -> None:
    if way is planned and not launchers.launches():
        pytest.skip("plans are the extension's")
    x = torch.ones(8, 8, device="npu")
    for _ in range(4):
        way(x)
    before = state()
    with interrupts(way) as enough:
        while not enough():
            with suppress(Interrupt):
                way(x)
    assert state() == before
    assert (x + x).sum().item() == 128 and torch.nonzero(x).shape == (64, 2)
