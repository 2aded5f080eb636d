"""Several ranks: by mpiexec where MPI is installed, and by processes that find each other by a store."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2.distributed as dist

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = str(Path(dist.__file__).parents[2])
MPIEXEC = Path(sys.executable).with_name("mpiexec")


def run(*command):
    environment = os.environ | {"PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
    environment = {name: value for name, value in environment.items() if not name.startswith(("PMI", "HYDRA"))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=PROGRAMS, timeout=600)
    assert not done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(not (dist.is_mpi_available() and MPIEXEC.exists()), reason="mpi4py and mpich are not installed")
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("program", ["collectives.py", "training.py"])
def test_by_mpi(program, ranks):
    printed = run(str(MPIEXEC), "-n", str(ranks), sys.executable, "-m", "mindtorch_v2", program)
    assert printed.count("ok") == ranks


@pytest.mark.parametrize("method", ["file://{path}", "env"])
def test_collectives_by_a_store(method, tmp_path):
    port = dist.TCPStore("localhost", 0, 1, True).port
    method = method.format(port=port, path=tmp_path / "store")
    printed = run(sys.executable, "-m", "mindtorch_v2", "spawned.py", method, "2", str(port))
    assert printed.count("ok") == 2
