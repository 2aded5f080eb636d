"""Scripts over accelerate, transformers' Trainer and lightning, as they are: two ranks compute what one does."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "ranks"

pytestmark = pytest.mark.ecosystem


def results(program: str, ranks: int) -> list[float]:
    foreign = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER", "TORCHELASTIC")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), str(PROGRAMS / program)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment | {"OMP_NUM_THREADS": "1"}, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = (line for line in done.stdout.splitlines() if "RESULT" in line)
    return json.loads(line.partition("RESULT")[2])


@pytest.mark.parametrize("library", ["accelerate", "transformers", "lightning"])
def test_two_ranks_compute_what_one_does(library):
    torch = pytest.importorskip("torch")
    if "mindtorch" not in torch.__version__:
        pytest.skip("torch is PyTorch here")
    for name in {library, "accelerate"} if library == "transformers" else {library}:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    program = {"transformers": "with_trainer.py"}.get(library, f"with_{library}.py")
    one, two = results(program, 1), results(program, 2)
    assert one[0] == 1 and two[0] == 2 and len(one) > 9
    assert two[1:] == pytest.approx(one[1:], rel=1e-4)
