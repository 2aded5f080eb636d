"""A wrong binding shows: with two arguments swapped in a copy of the schema, the operators' test on the device fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SWAPS = {
    "sub.Tensor": ("pointwise", "aclnnSub(self, other, alpha)", "aclnnSub(other, self, alpha)"),
    "addmv": ("matmul", "aclnnAddmv(self, mat, vec, alpha, beta, product_mode())", "aclnnAddmv(self, mat, vec, beta, alpha, product_mode())"),
    "where.self": ("pointwise", "aclnnSWhere(condition, self, other)", "aclnnSWhere(condition, other, self)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, to be spoilt."""
    target = tmp_path_factory.mktemp("project")
    for folder in ("schema", "codegen", "native", "src", "generated", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "data", ".hypothesis", "*.egg-info")
        shutil.copytree(ROOT / folder, target / folder, symlinks=True, ignore=ignored)
    return target


@pytest.mark.parametrize("name", SWAPS)
def test_swapped_arguments_are_caught(name: str, copy: Path) -> None:
    family, right, wrong = SWAPS[name]
    file = copy / f"schema/ops/{family}.yaml"
    text = file.read_text(encoding="utf-8")
    assert right in text
    file.write_text(text.replace(right, wrong), encoding="utf-8")
    try:
        assert run(copy, "-m", "codegen", "generate").returncode == 0
        spoilt = run(
            copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/npu/test_operators.py::test_operator[{name}]"
        )
    finally:
        file.write_text(text, encoding="utf-8")
    assert spoilt.returncode == 1, spoilt.stdout[-2000:]
    assert "reproduce: ops." in spoilt.stdout


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, env=environment
    )
