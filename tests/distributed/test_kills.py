"""Ranks that are killed while they train: the others end in time, and a restart comes to the same weights. KILLS says how many."""

import glob
import os
import random
import signal
import time
from pathlib import Path

import pytest
from _ranks import ENGINES, run, torchrun

import mindtorch_v2 as torch

KILLS = int(os.environ.get("KILLS", "2"))
STEPS = 60


def pids(process, ranks):
    """The process numbers that all ranks say, by rank."""
    found = {}
    while len(found) < ranks:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        if ": pid " in line:
            words = line.split()
            found[int(line[5 : line.index("]")])] = int(words[words.index("pid") + 1])
    return found


def weights(folder):
    return torch.load(folder / "weights.pt")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_rest_ends_in_time(engine, tmp_path):
    draw = random.Random(os.environ.get("SEED", "0"))
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = torchrun("--nproc-per-node=3", f"--engine={engine}", "killed.py", folder, 100000)
        found = pids(process, 3)
        mapped = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in found.values()).splitlines()
        time.sleep(draw.random())
        victim = draw.randrange(3)
        begin = time.monotonic()
        os.kill(found[victim], signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
        assert time.monotonic() - begin < 10, errors
        assert process.returncode == 1
        assert f"rank {victim} (local rank {victim}, process {found[victim]}) was ended by SIGKILL" in errors
        for pid in found.values():
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
            assert not glob.glob(f"/dev/shm/mindtorch-{pid}-*") and not glob.glob(f"/tmp/mindtorch-{pid}-*")
        shared = [line for line in mapped if "/mpich_shm_" in line]
        assert all(line.endswith("(deleted)") for line in shared), shared  # no name that would be left behind
        if (folder / "checkpoint.pt").exists():
            assert torch.load(folder / "checkpoint.pt")["step"] >= 1


@pytest.mark.parametrize("engine", ENGINES)
def test_restarts_come_to_the_same_weights(engine, tmp_path):
    draw = random.Random(os.environ.get("SEED", "0"))
    (tmp_path / "whole").mkdir()
    run("--nproc-per-node=2", f"--engine={engine}", "killed.py", tmp_path / "whole", STEPS)
    wanted = weights(tmp_path / "whole")
    for number in range(-(-KILLS // 2)):
        folder = tmp_path / str(number)
        folder.mkdir()
        options = ("--nproc-per-node=2", f"--engine={engine}", "--max-restarts=2")
        process = torchrun(*options, "killed.py", folder, STEPS)
        for _ in range(2):
            found = pids(process, 2)
            time.sleep(draw.random() * 0.3)
            try:
                os.kill(found[draw.randrange(2)], signal.SIGKILL)
            except ProcessLookupError:
                break  # it was done before
            if process.poll() is not None:
                break
        _, errors = process.communicate(timeout=300)
        assert not process.returncode, errors
        got = weights(folder)
        assert all(torch.equal(got[name], wanted[name]) for name in wanted)
