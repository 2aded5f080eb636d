"""A first use that signals disturb: `signals.py SEED [raise]`. The handler computes with tensors too, or raises; then everything works. Prints how many signals came."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Callable
from types import FrameType

import mindtorch_v2 as torch


def arithmetic() -> None:
    x = torch.ones(3, requires_grad=True)
    (x * 2).exp().sum().backward()
    assert x.grad is not None and x.grad.shape == (3,)


def layers() -> None:
    assert torch.nn.Linear(3, 2)(torch.randn(4, 3)).relu().shape == (4, 2)


def transforms() -> None:
    assert torch.fft.rfft(torch.ones(8))[0].item() == 8
    assert torch.linalg.inv(torch.eye(3)).equal(torch.eye(3))


def pipelines() -> None:
    with torch.pipeline():
        y = torch.tanh(torch.ones(5) * 2).sum()
    assert y.item() > 4


def optimizers() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    torch.optim.SGD([weight], lr=0.5).step()
    assert weight.tolist() == [0.5, 0.5]


PARTS: list[Callable[[], None]] = [arithmetic, layers, transforms, pipelines, optimizers]


def main(seed: int, raises: bool) -> None:
    random.seed(seed)
    came, done = 0, False

    def again() -> None:
        signal.setitimer(signal.ITIMER_REAL, random.random() ** 2 * 0.05 + 0.0005)

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if raises:
            raise TimeoutError("disturbed")
        with torch.enable_grad():  # an optimizer's step may be what is disturbed
            for part in random.sample(PARTS, 2):
                part()
        if not done:
            again()

    def quietly(function: Callable[[], object]) -> Callable[[], None]:
        def call() -> None:
            try:
                function()
            except TimeoutError:
                call()

        return call

    rearm, stop = quietly(again), quietly(lambda: signal.setitimer(signal.ITIMER_REAL, 0))
    signal.signal(signal.SIGALRM, handler)
    again()
    for part in random.sample(PARTS, len(PARTS)):
        for _ in range(3):
            quietly(part)()
            if raises and came < 20:
                rearm()
    done = True
    stop()
    assert signal.getsignal(signal.SIGALRM) is handler
    quietly(lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN))()
    for part in PARTS:
        part()
    print(came)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] == ["raise"])
