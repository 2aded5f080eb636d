"""The package finds the generated modules in a checkout, and as a wheel holds them, without symbolic links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import mindtorch_v2 as torch
x = torch.ones(2, 3, requires_grad=True)
(x @ torch.full((3, 2), 2.0)).sum().backward()
assert x.grad.tolist() == [[4.0] * 3] * 2
print(*torch._generated.__path__, sep="\\n")
"""


def _paths(where: Path) -> list[Path]:
    """Where a process that imports the package from `where` finds generated modules."""
    environment = {**os.environ, "PYTHONPATH": str(where), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True)
    return [Path(line) for line in ran.stdout.splitlines()]


def test_a_checkout() -> None:
    assert _paths(ROOT / "src") == [ROOT / "src/mindtorch_v2/_generated", ROOT / "generated"]
    assert not [path for folder in ("src", "generated") for path in (ROOT / folder).rglob("*") if path.is_symlink()]


def test_a_wheel(tmp_path: Path) -> None:
    installed = tmp_path / "mindtorch_v2"
    ignored = shutil.ignore_patterns("__pycache__", "emulator", "*.so", "*.pyd")
    shutil.copytree(ROOT / "src/mindtorch_v2", installed, ignore=ignored)
    shutil.copytree(ROOT / "generated", installed / "_generated", ignore=ignored, dirs_exist_ok=True)
    assert _paths(tmp_path) == [installed / "_generated"]
