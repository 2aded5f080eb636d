"""A slice of the hostile files and calls; `HOSTILE=10000` makes so many of each. `make sanitize` runs them under sanitizers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
COUNT = int(os.environ.get("HOSTILE", "250"))


def outcome(program: str, *arguments: str) -> dict[str, Any]:
    """What a program of this folder prints; it has to end well."""
    environment = dict(os.environ, PYTHONPATH=str(HERE.parents[1] / "src"), OMP_NUM_THREADS="1")
    done = subprocess.run(
        [sys.executable, str(HERE / program), *arguments],
        capture_output=True,
        text=True,
        timeout=600 + COUNT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_files(seed: str) -> None:
    """Reading ends in time, takes little memory, and runs nothing."""
    found = outcome("files.py", seed, str(COUNT))
    assert sum(found["outcomes"].values()) == COUNT
    assert not found["problems"], found["problems"]


def test_further_files() -> None:
    """The same of TorchScript, of checkpoints of several ranks, and of folders of safetensors."""
    found = outcome("further.py", "1", str(COUNT))
    assert sum(found["outcomes"].values()) == COUNT
    assert not found["problems"], found["problems"]


def test_calls() -> None:
    """Every call ends in time, with a result or an exception."""
    found = outcome("calls.py", "1", str(COUNT))
    assert found["calls"] == COUNT and not found["problems"], found["problems"]


def test_calls_of_four_threads() -> None:
    found = outcome("calls.py", "threads", str(COUNT // 4 * 4), "4")
    assert found["calls"] == COUNT // 4 * 4
    assert not [p for p in found["problems"] if "SystemError" in p], found["problems"]


def test_entries() -> None:
    """A slip in an entry of the schema is refused where it stands, or changes nothing, or says something else that the generator can write."""
    found = outcome("entries.py", "1", str(COUNT))
    assert not found["problems"], found["problems"]


def test_extremes() -> None:
    """Numbers and memory at the edges."""
    found = outcome("extremes.py", "1", str(2 * COUNT))
    assert not found["problems"], found["problems"]
