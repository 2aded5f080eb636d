"""Libraries, with all that they depend on, installed by pip into an empty environment beside this library and the distribution called torch: PyTorch is not brought in, and each works.

`make test-install` runs this for the first three, `make test-ecosystem` for all; without INSTALL in the environment, which names them, there is nothing to run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "ecosystem" / "installed.py"
LIBRARIES = os.environ.get("INSTALL", "").split()

pytestmark = [
    pytest.mark.install,
    pytest.mark.skipif(not LIBRARIES, reason="INSTALL does not say which libraries"),
]


class Environment:
    """An empty environment of Python."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.folder = folder

    def run(self, *arguments: str | Path, **more: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            [self.python, *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=kept | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"} | more,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    def pip(self, *arguments: str | Path, **more: str) -> str:
        return self.run("-m", "pip", "--disable-pip-version-check", *arguments, **more)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    made, wheels = Environment(folder / "venv"), folder / "dist"
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(ROOT)],
        check=True,
        env={**os.environ, "MINDTORCH_V2_NATIVE": "0"},
    )
    made.pip("install", "-q", *wheels.glob("mindtorch_v2-*.whl"))
    made.run("-m", "mindtorch_v2", "torch-wheel", wheels)
    made.pip("install", "-q", *wheels.glob("torch-*.whl"))
    made.pip("install", "-q", "-c", wheels / "constraints.txt", *LIBRARIES)
    return made


def test_pytorch_is_not_brought_in(installed):
    found = dict(line.split("==", 1) for line in installed.pip("list", "--format=freeze").splitlines() if "==" in line)
    assert found["torch"] == "2.13.0+mindtorch"
    assert not [name for name in found if re.match(r"nvidia|triton|pytorch$|cuda", name)]
    assert set(LIBRARIES) <= {name.replace("_", "-") for name in found}
    installed.pip("check")
    assert installed.run("-c", "import torch; print(torch.__version__)") == "2.13.0+mindtorch\n"


@pytest.mark.parametrize("name", LIBRARIES)
def test_each_works(installed, name):
    assert installed.run("-W", "ignore", PROGRAM, name).endswith("as it should be\n")
