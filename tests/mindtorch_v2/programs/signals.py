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


def words() -> None:
    x = torch.nn.Parameter(torch.ones(2))
    assert {x: 5}[x] == 5 and bool((x == x).all()) and not bool((x < x).any())
    assert "1." in repr(x) and [one.item() for one in x] == [1, 1]


PARTS: list[Callable[[], None]] = [words, arithmetic, layers, transforms, pipelines, optimizers]


def main(seed: int, raises: bool) -> None:
    random.seed(seed)
    came, done, armed = 0, False, False

    def again() -> None:
        signal.setitimer(signal.ITIMER_REAL, random.random() ** 2 * 0.05 + 0.0005)

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal came, armed
        if done:
            return
        if raises:
            again()
            if armed:  # in the midst of a part
                armed = False
                came += 1
                raise TimeoutError("disturbed")
            return
        came += 1
        with torch.enable_grad():  # an optimizer's step may be what is disturbed
            for part in random.sample(PARTS, 2):
                part()
        again()

    signal.signal(signal.SIGALRM, handler)
    again()
    for part in random.sample(PARTS, len(PARTS)):
        for _ in range(3):
            try:
                armed = came < 20
                part()
                armed = False
            except TimeoutError:
                assert raises
    done = True
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert signal.getsignal(signal.SIGALRM) is handler
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    for part in PARTS:
        part()
    print(came)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] == ["raise"])
