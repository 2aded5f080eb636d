"""`python -m mindtorch_v2` runs scripts, modules and code with torch served."""

from __future__ import annotations

import pytest
from _fresh import run

PROGRAM = """
import sys, torch
print(sys.argv, __name__, torch.__spec__.name)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_script(program):
    done = run(["-m", "mindtorch_v2", str(program), "a", "--b"])
    assert done.stdout == f"{[str(program), 'a', '--b']} __main__ mindtorch_v2\n", done.stderr


def test_script_finds_its_neighbours(program):
    (program.parent / "neighbour.py").write_text("import torch\nvalue = torch.cuda.device_count()\n")
    program.write_text("import neighbour\nprint(neighbour.value)\n")
    assert run(["-m", "mindtorch_v2", str(program)]).stdout == "0\n"


def test_module(program):
    done = run(["-m", "mindtorch_v2", "-m", "program", "a"], cwd=program.parent)
    assert done.stdout == f"{[str(program), 'a']} __main__ mindtorch_v2\n", done.stderr


def test_code():
    done = run(["-m", "mindtorch_v2", "-c", PROGRAM, "a"])
    assert done.stdout == "['-c', 'a'] __main__ mindtorch_v2\n", done.stderr


def test_exit_status_is_the_programs(program):
    program.write_text("raise SystemExit(7)")
    assert run(["-m", "mindtorch_v2", str(program)]).returncode == 7


def test_version_and_help():
    assert run(["-m", "mindtorch_v2", "--version"]).stdout.startswith("mindtorch_v2")
    assert "program.py" in run(["-m", "mindtorch_v2", "--help"]).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: python -m mindtorch_v2"),
        (["no_such_file.py"], "can't open file 'no_such_file.py'"),
        (["-m"], "argument expected for the -m option"),
        (["--colour"], "unknown option --colour"),
    ],
)
def test_wrong_arguments(arguments, message):
    done = run(["-m", "mindtorch_v2", *arguments])
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_child_processes_get_the_proxy(program, method):
    program.write_text(
        "import multiprocessing, torch\n"
        "def work(queue):\n"
        "    import torch\n"
        "    queue.put(torch.__spec__.name)\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    queue = context.Queue()\n"
        "    process = context.Process(target=work, args=(queue,))\n"
        "    process.start()\n"
        "    print(queue.get(timeout=60))\n"
        "    process.join()\n"
    )
    done = run(["-m", "mindtorch_v2", str(program)])
    assert done.stdout == "mindtorch_v2\n", done.stderr


def test_pytest_under_the_proxy(tmp_path):
    from _fresh import SOURCE

    test = tmp_path / "test_sample.py"
    test.write_text("import torch\n\ndef test_name():\n    assert torch.__spec__.name == 'mindtorch_v2'\n")
    done = run(
        [str(SOURCE.parent / "tests" / "run_test_v2.py"), "-q", "-p", "no:cacheprovider", str(test)], cwd=tmp_path
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    "options", [(), ("--nproc-per-node=1",), ("--standalone", "--nproc_per_node", "1", "--nnodes=1:1")]
)
def test_distributed_run_runs_a_script_as_the_only_rank(tmp_path, options):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, neighbour, torch\n"
        "print(*(os.environ[name] for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR')))\n"
        "print(int(os.environ['MASTER_PORT']) > 0, __name__, sys.argv[1:], torch.ones(2).sum().item())\n"
        "sys.exit(3 if sys.argv[2:] else 0)\n"
    )
    (tmp_path / "neighbour.py").write_text("")
    command = ["-m", "mindtorch_v2", "-m", "torch.distributed.run", *options, str(script)]
    done = run([*command, "--lr=1"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0 0 1 1 localhost", "True __main__ ['--lr=1'] 2.0"]
    assert run([*command, "a", "b"]).returncode == 3


def test_distributed_launch_gives_the_rank_as_an_argument(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; print(sys.argv[1:])")
    command = ["-m", "mindtorch_v2", "-m", "torch.distributed.launch"]
    assert run([*command, str(script), "x"]).stdout.strip() == "['--local-rank=0', 'x']"
    assert run([*command, "--use_env", str(script), "x"]).stdout.strip() == "['x']"
