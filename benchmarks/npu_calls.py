"""What calls on an NPU cost the host, on the emulator: CPU time of `x + y` on [4, 4] with the emulator's own share taken off, and launches of everyday steps.

    MINDTORCH_NPU_EMULATOR=1 python benchmarks/npu_calls.py [--rounds 15] [--repeats 2000] [--check]

The emulator's share is that of the same calls made by a loop in C, at about the host's pace. `--check` fails above the limits.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader

F = torch.nn.functional
PAUSE = 15_000  # nanoseconds between calls, about as a host's own work takes
MICROSECONDS, TIMES, STEPS = (
    20.0,
    40.0,
    {"AdamW of ten parameters": 12, "attention": 1, "linear with a bias": 1, "clamp": 1, "dropout": 1},
)


def host_time(run: Callable[[], Any], repeats: int) -> float:
    """Microseconds of this thread for a call; the device's work is awaited outside."""
    started = time.thread_time_ns()
    for _ in range(repeats):
        run()
    spent = time.thread_time_ns() - started
    torch.npu.synchronize()
    return spent / repeats / 1000


def emulators_share(repeats: int) -> float:
    """Microseconds of the emulator's own for a call."""
    x, y, out = (torch.ones(4, 4, device="npu") for _ in range(3))
    pointer = ctypes.c_void_p
    share = acl_loader.load().own(
        "emHostShare", ctypes.c_int64, pointer, pointer, pointer, pointer, ctypes.c_int64, ctypes.c_int64
    )
    stream = torch.npu.current_stream().handle
    torch.npu.synchronize()
    spent = share(x.data_ptr(), y.data_ptr(), out.data_ptr(), stream, repeats, PAUSE)
    torch.npu.synchronize()
    if spent < 0:
        raise RuntimeError("the emulator refused a call of its own")
    return spent / repeats / 1000


def launches(run: Callable[[], Any]) -> int:
    """Launches of the third call: what is made once is made then."""
    count = acl_loader.load().own("emLaunches", ctypes.c_int64, ctypes.c_char_p)
    run()
    run()
    before = count(b"")
    run()
    return count(b"") - before


def steps() -> dict[str, Callable[[], Any]]:
    """Everyday steps by name."""
    params = [torch.nn.Parameter(torch.randn(4, 4, device="npu")) for _ in range(10)]
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer = torch.optim.AdamW(params)
    q = torch.randn(1, 4, 8, 16, device="npu")
    x, weight, bias = torch.randn(8, 16, device="npu"), torch.randn(4, 16, device="npu"), torch.randn(4, device="npu")
    return {
        "AdamW of ten parameters": optimizer.step,
        "attention": lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        "linear with a bias": lambda: F.linear(x, weight, bias),
        "clamp": lambda: torch.clamp(x, -1, 1),
        "dropout": lambda: F.dropout(x, 0.5),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(argv)
    if not acl_loader.emulated():
        print("this measures by the emulator: set MINDTORCH_NPU_EMULATOR=1", file=sys.stderr)
        return 2
    x, y = torch.ones(4, 4, device="npu"), torch.ones(4, 4, device="npu")
    a, b = torch.ones(4, 4), torch.ones(4, 4)
    host_time(lambda: x + y, options.repeats)
    rows = [
        (
            host_time(lambda: x + y, options.repeats),
            emulators_share(options.repeats),
            host_time(lambda: a + b, options.repeats),
        )
        for _ in range(options.rounds)
    ]
    whole, share, cpu = (statistics.median(column) for column in zip(*rows, strict=True))
    net = whole - share
    print(
        f"x + y on [4, 4]: {whole:.1f} us of the host, {share:.1f} of them the emulator's: {net:.1f} us; on the CPU {cpu:.2f} us, {net / cpu:.0f} times"
    )
    fine = net <= MICROSECONDS
    for name, run in steps().items():
        count = launches(run)
        print(f"{name}: {count} launches")
        fine = fine and count <= STEPS[name]
    return 0 if fine or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
