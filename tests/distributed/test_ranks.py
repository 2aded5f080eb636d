"""Several ranks: by mpiexec where MPI is installed, and by processes that find each other by a store."""

import importlib.util
import os
import subprocess
import sys

import pytest
from _ranks import ENGINES, MPIEXEC, PROGRAMS, environment, needs_mpi, ranks_of, run, start

import mindtorch_v2.distributed as dist

OF_ANY_ENGINE = (
    "algorithms.py",
    "experimental.py",
    "functional.py",
    "group_operators.py",
    "training.py",
    "sharding.py",
    "training_in_parts.py",
)


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("program", [*OF_ANY_ENGINE, "collectives.py"])
def test_by_mpi(program, ranks):
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, "-m", "mindtorch_v2", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=PROGRAMS, timeout=600)
    assert not done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("ok") == ranks


@pytest.mark.parametrize("method", ["file://{path}", "env", "tcp://localhost:{port}"])
def test_collectives_by_a_store(method, tmp_path):
    port = dist.TCPStore("localhost", 0, 1, True).port
    method = method.format(port=port, path=tmp_path / "store")
    assert run("spawned.py", method, 2, port, launcher=start).count("ok") == 2


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("program", OF_ANY_ENGINE)
def test_by_the_store(program, ranks):
    assert ranks_of(program, ranks).count("ok") == ranks


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_random_programs(ranks, engine):
    """PROGRAMS says how many, and SEED which ones."""
    count, seed = os.environ.get("PROGRAMS", "40"), os.environ.get("SEED", "0")
    printed = ranks_of("random_programs.py", ranks, engine, count, seed)
    assert printed.count("ok") == ranks


def test_llama_in_parts(tmp_path):
    for name in ("transformers", "accelerate"):  # transformers asks for accelerate where there is a tp_plan
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    assert ranks_of("llama.py", 2, "store", tmp_path).count("ok") == 2
