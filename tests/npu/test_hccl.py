"""The backend hccl between processes of one machine, on the emulator."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mindtorch_v2._backends.npu import acl_loader

pytestmark = pytest.mark.skipif(not acl_loader.emulated(), reason="the emulator's ranks meet in this machine's memory")
RANK = Path(__file__).with_name("hccl_rank.py")


def ranks(size: int, program: str | None = None, **more: str) -> list[tuple[int, str, str]]:
    """(status, output, errors) of each rank."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(size),
        "OMP_NUM_THREADS": "1",
        **more,
    }
    command = [sys.executable, str(RANK)] if program is None else [sys.executable, "-c", program]
    running = [
        subprocess.Popen(
            command, env={**environment, "RANK": str(rank)}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for rank in range(size)
    ]
    found = []
    for process in running:
        try:
            output, errors = process.communicate(timeout=150)
        finally:
            process.kill()
        found.append((process.returncode, output, errors))
    return found


def _weights(output: str) -> list[float]:
    return json.loads(output.split("FOUND", 1)[1])


def test_two_ranks_agree_with_numpy_and_train_as_one(tmp_path: Path) -> None:
    both = ranks(2, TMPDIR=str(tmp_path))
    for status, _, errors in both:
        assert status == 0, errors
    ((status, output, errors),) = ranks(1)
    assert status == 0, errors
    first, second, alone = _weights(both[0][1]), _weights(both[1][1]), _weights(output)
    assert first == second
    assert first == pytest.approx(alone, abs=1e-6)
    assert not list(tmp_path.glob("mindtorch_hccl_*"))  # of both groups


def test_calls_that_do_not_fit_fail_on_both_and_a_missing_rank_is_waited_for_in_vain(tmp_path: Path) -> None:
    program = (
        "import os, mindtorch_v2 as torch, mindtorch_v2.distributed as dist\n"
        "dist.init_process_group('hccl')\n"
        "rank = dist.get_rank()\n"
        "x = torch.ones(2 + rank, device='npu')\n"
        "dist.all_reduce(x)\n"
        "try:\n    torch.npu.synchronize()\nexcept RuntimeError as error:\n    print('another call' in str(error))\n"
        "from mindtorch_v2._backends.npu.runtime import get_runtime\n"
        "for name in ('aclrtResetDevice', 'aclrtSetDevice'):\n"
        "    get_runtime().call(name, torch.npu.current_device())\n"
        "if rank == 0:\n    dist.all_reduce(x)\n"
        "try:\n    torch.npu.synchronize()\nexcept RuntimeError as error:\n    print('in vain for rank 1' in str(error))\n"
    )
    found = ranks(2, program, HCCL_EXEC_TIMEOUT="2", TMPDIR=str(tmp_path))
    assert found[0][1].split() == ["True", "True"], found[0]
    assert found[1][1].split() == ["True"], found[1]
