"""Runs code in a fresh interpreter, for what changes a whole process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
PROXY = "from mindtorch_v2._torch_proxy import install\ninstall()\nimport torch\n"


def run(arguments: list[str], timeout: float = 120, **options: object) -> subprocess.CompletedProcess[str]:
    """Run Python with mindtorch_v2 on its path."""
    environment = dict(os.environ, PYTHONPATH=str(SOURCE), OMP_NUM_THREADS="1")
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=timeout, env=environment, **options
    )


def python(code: str, prelude: str = PROXY) -> str:
    """The output of code, which must end well; `torch` is served by mindtorch_v2 in it."""
    done = run(["-c", prelude + textwrap.dedent(code)])
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
