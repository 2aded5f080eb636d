"""Running programs of `programs/` with several ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2.distributed as dist

PROGRAMS = Path(__file__).parent / "programs"
SOURCE = str(Path(dist.__file__).parents[2])
MPIEXEC = Path(sys.executable).with_name("mpiexec")
HAS_MPI = dist.is_mpi_available() and MPIEXEC.exists()
needs_mpi = pytest.mark.skipif(not HAS_MPI, reason="mpi4py and mpich are not installed")
ENGINES = [pytest.param("mpi", marks=needs_mpi), "store"]


def environment():
    """The variables of this process without those of another job."""
    foreign = ("PMI", "HYDRA", "TORCHELASTIC", "RANK", "WORLD_SIZE", "MASTER", "PIPELINE")
    own = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return own | {"PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}


def start(*command, **more):
    """A process that runs a command of `python -m mindtorch_v2`, beside the programs."""
    return subprocess.Popen(
        [sys.executable, "-m", "mindtorch_v2", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment() | more,
        cwd=PROGRAMS,
    )


def torchrun(*command, **more):
    """`start` of `torch.distributed.run`."""
    return start("-m", "torch.distributed.run", *command, **more)


def run(*command, launcher=torchrun, **more):
    """What a program with these options prints. AssertionError if it fails."""
    process = launcher(*command, **more)
    printed, errors = process.communicate(timeout=600)
    assert not process.returncode, printed[-3000:] + errors[-3000:]
    return printed


def ranks_of(program, number, engine="store", *arguments):
    """What `number` ranks of a program print."""
    return run(f"--nproc-per-node={number}", f"--engine={engine}", program, *arguments)
