"""Finding mpiexec, and what it has to be told."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

FOREIGN = ("PMI", "HYD", "MPI_LOCAL", "OMPI_", "PRTE_")
"""How variables of another mpiexec begin, which one of its processes must not hand on."""


def find_mpiexec() -> str | None:
    """mpiexec, of this environment or of the system; None where MPI is not installed or mpi4py is missing."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    own = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    return own if os.access(own, os.X_OK) else shutil.which("mpiexec")


def mpi_command(mpiexec: str, count: int, environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """How so many processes are started here, however many processors there are: the command, to which theirs is added, and the environment."""
    options, more = _options(mpiexec)
    own = {name: value for name, value in environment.items() if not name.startswith(FOREIGN)}
    return [mpiexec, *options, "-n", str(count)], own | more


def _options(mpiexec: str) -> tuple[list[str], dict[str, str]]:
    """What an mpiexec has to be told to start all processes here: options, and variables."""
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    if "HYDRA" in said:
        return ["-launcher", "fork", "-hosts", "localhost"], {}
    if "Open MPI" in said or "OpenRTE" in said:
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return ["--oversubscribe"], allowed
    return [], {}
