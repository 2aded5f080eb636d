"""Scripts over accelerate, transformers' Trainer and lightning, as they are: two ranks compute what one does."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "ranks"

pytestmark = pytest.mark.ecosystem


def printed(command: list[str], **more: str) -> list[float]:
    """What a program says of its run."""
    foreign = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER", "TORCHELASTIC", "ACCELERATE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {"OMP_NUM_THREADS": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"} | more
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = (line for line in done.stdout.splitlines() if "RESULT" in line)
    return json.loads(line.partition("RESULT")[2])


def results(program: str, ranks: int, *arguments: str, **more: str) -> list[float]:
    command = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), str(PROGRAMS / program), *arguments]
    return printed(command, **more)


def needs(*libraries: str) -> None:
    torch = pytest.importorskip("torch")
    if "mindtorch" not in torch.__version__:
        pytest.skip("torch is PyTorch here")
    for name in libraries:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("library", ["accelerate", "transformers", "lightning"])
def test_two_ranks_compute_what_one_does(library):
    needs(*{library, "accelerate"} if library == "transformers" else {library})
    program = {"transformers": "with_trainer.py"}.get(library, f"with_{library}.py")
    one, two = results(program, 1), results(program, 2)
    assert one[0] == 1 and two[0] == 2 and len(one) > 9
    assert two[1:] == pytest.approx(one[1:], rel=1e-4)


@pytest.mark.parametrize("way", ["torch", "mpi"])
def test_accelerate_starts_ranks(way, tmp_path):
    needs("accelerate")
    options = ["--multi_gpu"]
    if way == "mpi":
        needs("mpi4py")
        hosts = tmp_path / "hosts"
        hosts.write_text("localhost\n")
        options = ["--cpu", "--mpirun_hostfile", str(hosts)]
    program = str(PROGRAMS / "with_accelerate.py")
    launch = ["-m", "accelerate.commands.launch", *options, "--num_processes", "2", "--main_process_port", "0", program]
    two = printed(launch)
    assert two[0] == 2
    assert two[1:] == pytest.approx(results("with_accelerate.py", 1)[1:], rel=1e-4)


@pytest.mark.parametrize("state", ["FULL_STATE_DICT", "SHARDED_STATE_DICT"])
def test_the_trainer_keeps_parameters_in_parts_on_npus_and_goes_on_from_checkpoints(state, tmp_path):
    """accelerate has FullyShardedDataParallel on devices alone."""
    needs("transformers", "accelerate", "cffi")
    from mindtorch_v2._backends.npu import acl_loader

    if not acl_loader.EMULATOR.exists():
        pytest.skip("the emulator is not built")
    config = {"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"], "state_dict_type": state}
    options = {"fsdp": "full_shard auto_wrap", "fsdp_config": config, "use_cpu": False}
    options |= {"output_dir": str(tmp_path), "save_strategy": "epoch"}
    text, emulated = json.dumps(options), {"MINDTORCH_NPU_EMULATOR": "1"}
    two = results("with_trainer.py", 2, text, **emulated)
    assert two[0] == 2
    assert two[1:] == pytest.approx(results("with_trainer.py", 1)[1:], rel=1e-4)
    (first, _) = sorted(tmp_path.glob("checkpoint-*"))
    assert results("with_trainer.py", 2, text, str(first), **emulated) == pytest.approx(two, rel=1e-4)
