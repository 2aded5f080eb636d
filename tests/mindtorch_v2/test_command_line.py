"""Commands whose reader goes (`| head`) end without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "command",
    [
        "mindtorch_v2 --help",
        "mindtorch_v2 plan --help",
        "mindtorch_v2 doctor",
        "mindtorch_v2 collect-env",
        "codegen report",
        "codegen --help",
        "codegen explain add",
    ],
)
def test_the_reader_may_go(command):
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    os.close(writing)
    assert done.returncode in (0, 1) and done.stderr == ""  # argparse itself looks away
