"""The cases of `cases.py` on both libraries, side by side in one process: thread CPU time, rounds by turns, medians.

    python benchmarks/wide.py [--only WORD] [--rounds 7] [--json FILE] [--report] [--check [--margin 1.5]] [--store]

Prints the ratio of our time to PyTorch's (below 1: faster) by case and the geometric means by family. `--report` writes docs/performance.md and its plot, `--store` the ratios of
`ratios.yaml`, and `--check` compares with those: it exits 1 where the geometric mean of a family is `margin` times worse, or a case fails or differs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import importlib
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import report
from cases import CASES, Case

MOMENT = 0.004
"""Seconds that a case is repeated for in a round."""


def tensors(value: Any) -> list[Any]:
    """The tensors of a result."""
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors(item)]
    return [value.detach()] if hasattr(value, "detach") else []


def agree(theirs: Any, ours: Any) -> bool:
    """Whether two results have the same shapes and nearly the same numbers."""
    import numpy as np

    for first, second in zip(tensors(theirs), tensors(ours), strict=True):
        if tuple(first.shape) != tuple(second.shape):
            return False
        a, b = first.double().numpy(), second.double().numpy()
        half = "float16" in str(first.dtype)
        scale = max(1.0, float(np.abs(a).max(initial=0.0)))
        if not np.allclose(a, b, rtol=2e-2 if half else 2e-3, atol=(2e-2 if half else 1e-4) * scale):
            return False
    return True


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Seconds of thread CPU time per call."""
    start = time.thread_time()
    for _ in range(repeats):
        function()
    return (time.thread_time() - start) / repeats


def measure(case: Case, libraries: tuple[Any, Any], rounds: int) -> report.Row:
    """One case; its times are None where it fails or differs, and `what` says so."""
    theirs_of, ours_of = libraries
    try:
        theirs, ours = case.make(theirs_of), case.make(ours_of)
        first, second = theirs(), ours()
        if not case.drawn and not agree(first, second):
            return report.Row(case.family, case.name, None, None, "differs")
    except Exception as error:  # noqa: BLE001 - reported with the case
        return report.Row(case.family, case.name, None, None, f"{type(error).__name__}: {error!s:.80}")
    repeats = max(1, min(2000, int(MOMENT / max(seconds(theirs, 1), 1e-7))))
    samples: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        samples[0].append(seconds(theirs, repeats))
        samples[1].append(seconds(ours, repeats))
    gc.enable()
    return report.Row(case.family, case.name, statistics.median(samples[0]), statistics.median(samples[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose family or name has this word")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="a file for all rows")
    parser.add_argument("--report", action="store_true", help="write docs/performance.md")
    parser.add_argument("--store", action="store_true", help="write ratios.yaml")
    parser.add_argument("--check", action="store_true", help="compare with ratios.yaml")
    parser.add_argument("--margin", type=float, default=1.5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    ours = importlib.import_module("mindtorch_v2")
    for name in ("nn", "nn.functional", "optim", "linalg", "fft"):
        importlib.import_module(f"mindtorch_v2.{name}")
    torch.set_num_threads(1)
    rows = []
    for case in CASES:
        if options.only in f"{case.family} {case.name}":
            row = measure(case, (torch, ours), options.rounds)
            rows.append(row)
            print(row.line(), flush=True)
    print("\n" + report.text_of(rows))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([row._asdict() for row in rows], file, indent=1)
    if options.report:
        report.write(rows, {"mindtorch_v2": ours.version.__version__, "torch": torch.__version__})
    if options.store:
        report.store(rows)
    problems = report.regressions(rows, report.stored(), options.margin) if options.check else []
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
