"""Latency of operators on small float32 tensors, without and with a gradient, against PyTorch in the same process.

    python benchmarks/small_ops.py [--rounds 15] [--repeats 2000]

Prints the time per call of both, and the ratio (below 1: faster than PyTorch).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from types import ModuleType

import measure
import torch

import mindtorch_v2

LIMIT = {"without": 0.6, "with": 0.8}


def calls(lib: ModuleType, grad: bool) -> dict:
    """The cases as functions of no argument, on one library."""
    functional = lib.nn.functional
    lib.manual_seed(0)
    a = lib.randn(4, 4)
    b = lib.randn(4, 4)
    weight, bias = lib.randn(4), lib.randn(4)
    if grad:
        a.requires_grad_()
    return {
        "add": lambda: a + b,
        "mul": lambda: a * b,
        "relu": lambda: lib.relu(a),
        "sum": lambda: a.sum(),
        "matmul": lambda: a @ b,
        "reshape": lambda: a.reshape(2, 8),
        "transpose": lambda: a.transpose(0, 1),
        "slicing": lambda: a[1:3],
        "softmax": lambda: functional.softmax(a, dim=-1),
        "layer_norm": lambda: functional.layer_norm(a, (4,), weight, bias),
        "linear": lambda: functional.linear(a, b, bias),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=2000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for kind, limit in LIMIT.items():
        ours, theirs = calls(mindtorch_v2, kind == "with"), calls(torch, kind == "with")
        cases = [(name, ours[name], theirs[name]) for name in ours]
        rows = measure.compare(cases, arguments.rounds, arguments.repeats)
        within = sum(a / b <= limit for _, a, b in rows)
        print(f"[4, 4] float32, {kind} gradient (limit {limit}): {within} of {len(rows)} within the limit")
        print(measure.table(rows, 1e9, "ns", limit) + "\n")


if __name__ == "__main__":
    main()
