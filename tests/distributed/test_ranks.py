"""Several ranks: by mpiexec where MPI is installed, and by processes that find each other by a store."""

import importlib.util
import os
import subprocess
import sys

import pytest
from _ranks import ENGINES, HAS_MPI, MPIEXEC, PROGRAMS, environment, needs_mpi, ranks_of, run, start

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
@pytest.mark.parametrize("engine", ENGINES)
def test_processes_that_meet_at_a_store(method, engine, tmp_path):
    """They start MPI together where it is installed and mpiexec is found; else what they exchange goes through the store."""
    port = dist.TCPStore("localhost", 0, 1, True).port
    method = method.format(port=port, path=tmp_path / "store")
    ranks = 3 if engine == "mpi" else 2
    name = {"mpi": "MpiEngine", "store": "StoreEngine"}[engine]
    more = {"MINDTORCH_V2_MPI": "0"} if engine == "store" else {}
    printed = run("spawned.py", method, ranks, port, tmp_path / "first", name, launcher=start, **more)
    assert printed.count("ok") == ranks


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


def test_processes_of_a_shell(tmp_path):
    """Each told its rank, as several commands of a shell do; one that fails ends by itself."""
    for how in ("well", "fails"):
        path = tmp_path / how
        processes = [start("shell.py", f"file://{path}", rank, 2, how) for rank in range(2)]
        said = [process.communicate(timeout=300) for process in processes]
        codes = [process.returncode for process in processes]
        if how == "well":
            assert (
                codes == [0, 0] and [out.strip() for out, _ in said] == ["MpiEngine" if HAS_MPI else "StoreEngine"] * 2
            )
        else:
            assert codes == [1, 1], said
            assert "[rank1]: ValueError: no more" in said[1][1] and "waited 3 s in all_reduce" in said[0][1], said
