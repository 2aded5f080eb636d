"""What calls on an NPU cost the host, on the emulator: CPU time of `x + y` on [4, 4] with the emulator's own share taken off, and launches of everyday steps.

    MINDTORCH_NPU_EMULATOR=1 python benchmarks/npu_calls.py [--rounds 15] [--repeats 2000] [--check]

The emulator's share is that of the same calls made by a loop in C, at the pace that the host was found to have: what pauses between calls decides whether the emulator's
stream sleeps and has to be woken. `--check` fails above the limits.
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
MICROSECONDS = 20.0
STEPS = {
    "AdamW of ten parameters": 12,
    "attention": 1,
    "linear with a bias": 1,
    "clamp": 1,
    "dropout": 1,
    "a token of a two-layer Llama": 70,
    "a token of it, norms written out": 70,
    "a token of it in a pipeline, norms written out": 70,
}


class Llama:
    """Two layers in torch's own functions, and a token after others: rms_norm, rotary embeddings, kept keys and values, a gated layer.

    written_out: the norms by their formula, as transformers has them.
    """

    def __init__(self, width: int = 32, heads: int = 4, vocabulary: int = 99, written_out: bool = False) -> None:
        self.heads, self.each, self.written_out = heads, width // heads, written_out
        self.table = torch.randn(vocabulary, width, device="npu")
        shapes = {"gate": (2 * width, width), "up": (2 * width, width), "down": (width, 2 * width)}
        shapes |= {name: (width, width) for name in "qkvo"} | {"first": (width,), "second": (width,)}
        self.layers = [{n: torch.randn(*s, device="npu") / width for n, s in shapes.items()} for _ in range(2)]
        self.norm = torch.ones(width, device="npu")
        self.kept: list[tuple] = [(torch.randn(1, heads, 7, self.each, device="npu"),) * 2 for _ in self.layers]
        self.frequencies = 1 / 10000 ** (torch.arange(0, self.each, 2, device="npu") / self.each)

    def _normal(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        if self.written_out:
            return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))
        return F.rms_norm(x, (x.shape[-1],), weight, 1e-6)

    def _turned(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        half = self.each // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

    def token(self, number: torch.Tensor) -> torch.Tensor:
        """The next token after one more; what is kept stays as it is."""
        width = self.heads * self.each
        x = F.embedding(number, self.table)
        angles = torch.full((1, 1), 7.0, device="npu") * self.frequencies
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos(), angles.sin()
        for layer, (keys, values) in zip(self.layers, self.kept, strict=True):
            y = self._normal(x, layer["first"])
            q, k, v = (F.linear(y, layer[n]).view(1, 1, self.heads, self.each).transpose(1, 2) for n in "qkv")
            k, v = torch.cat((keys, self._turned(k, cos, sin)), 2), torch.cat((values, v), 2)
            y = F.scaled_dot_product_attention(self._turned(q, cos, sin), k, v)
            x = x + F.linear(y.transpose(1, 2).reshape(1, 1, width), layer["o"])
            y = self._normal(x, layer["second"])
            x = x + F.linear(F.silu(F.linear(y, layer["gate"])) * F.linear(y, layer["up"]), layer["down"])
        return F.linear(self._normal(x, self.norm), self.table).argmax(-1)


def host_time(run: Callable[[], Any], repeats: int) -> float:
    """Microseconds of this thread for a call; the device's work is awaited outside."""
    started = time.thread_time_ns()
    for _ in range(repeats):
        run()
    spent = time.thread_time_ns() - started
    torch.npu.synchronize()
    return spent / repeats / 1000


def emulators_share(repeats: int, pause: float) -> float:
    """Microseconds of the emulator's own for a call, with pauses of so many between calls."""
    x, y, out = (torch.ones(4, 4, device="npu") for _ in range(3))
    pointer = ctypes.c_void_p
    share = acl_loader.load().own(
        "emHostShare", ctypes.c_int64, pointer, pointer, pointer, pointer, ctypes.c_int64, ctypes.c_int64
    )
    stream = torch.npu.current_stream().handle
    torch.npu.synchronize()
    spent = share(x.data_ptr(), y.data_ptr(), out.data_ptr(), stream, repeats, round(pause * 1000))
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
    q, llama, other = torch.randn(1, 4, 8, 16, device="npu"), Llama(), Llama(written_out=True)
    zero = torch.zeros(1, 1, dtype=torch.int64, device="npu")

    def in_a_pipeline() -> torch.Tensor:
        with torch.pipeline():
            return other.token(zero)

    x, weight, bias = torch.randn(8, 16, device="npu"), torch.randn(4, 16, device="npu"), torch.randn(4, device="npu")
    return {
        "AdamW of ten parameters": optimizer.step,
        "attention": lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        "linear with a bias": lambda: F.linear(x, weight, bias),
        "clamp": lambda: torch.clamp(x, -1, 1),
        "dropout": lambda: F.dropout(x, 0.5),
        "a token of a two-layer Llama": lambda: llama.token(torch.zeros(1, 1, dtype=torch.int64, device="npu")),
        "a token of it, norms written out": lambda: other.token(zero),
        "a token of it in a pipeline, norms written out": in_a_pipeline,
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
    rows = []
    pause = 0.0
    for _ in range(options.rounds):
        spent = host_time(lambda: x + y, options.repeats)
        share = emulators_share(options.repeats, pause)
        pause = max(spent - share, 0.0)
        rows.append((spent, share, host_time(lambda: a + b, options.repeats)))
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
