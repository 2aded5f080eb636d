"""The package finds the generated modules in a checkout, and as a wheel holds them, without symbolic links."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    environment = {
        **os.environ,
        "PYTHONPATH": str(where),
        "PYTHONDONTWRITEBYTECODE": "1",
        "MINDTORCH_V2_REQUIRE_NATIVE": "0",
    }
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


@pytest.mark.parametrize(("required", "left_out", "works"), [("0", "1", True), ("1", "1", False), ("1", "0", True)])
def test_an_extension_that_is_required(required: str, left_out: str, works: bool) -> None:
    program = "import sys; sys.modules['mindtorch_v2._native'] = None; import mindtorch_v2 as torch; assert torch.ones(2).sum() == 2"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "MINDTORCH_V2_REQUIRE_NATIVE": required,
        "MINDTORCH_V2_NATIVE": left_out,
    }
    ran = subprocess.run([sys.executable, "-c", program], env=environment, check=False, capture_output=True, text=True)
    assert (ran.returncode == 0) is works, ran.stderr
    assert works or "ModuleNotFoundError" in ran.stderr
