"""`torchrun`: what ranks are told, whose lines are whose, and how a job ends when one of them fails."""

import itertools
import os
import re
import signal
import time

import pytest
from _ranks import ENGINES, HAS_MPI, needs_mpi, run, start, torchrun

import mindtorch_v2.distributed as dist

NAMES = {"mpi": "MpiEngine", "store": "StoreEngine"}


def finish(process):
    """The output, the errors and the exit code of a process that has to end."""
    printed, errors = process.communicate(timeout=300)
    return printed, errors, process.returncode


def finish_soon(process, seconds, since=None):
    """`finish` of one that has to end in so many seconds from a moment, or from when the last of its ranks said that it runs, however long these took to start."""
    printed, errors, code = finish(process)
    ended = time.monotonic()
    if since is None:
        since = max(
            map(float, re.findall(r"runs since (\d+\.\d+)", printed))
        )  # a rank that is ended may leave half a line
    assert ended - since < seconds, (printed, errors)
    return printed, errors, code


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_ranks_are_told(engine, ranks):
    printed = run(f"--nproc_per_node={ranks}", f"--engine={engine}", "launched.py", "well", "-1", "--lr=1 2")
    total = float(sum(range(ranks)))
    lines = sorted(line for line in printed.splitlines() if "Engine" in line)
    assert lines == [
        f"[rank{rank}]: {NAMES[engine]} {rank} {rank} 0 {ranks} {ranks} 0 {total} --lr=1 2" for rank in range(ranks)
    ]
    assert all(line.startswith("[rank") for line in printed.splitlines())  # a carriage return ends one too
    assert printed.count(": progress 1") == printed.count(": progress 2") == ranks


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "how, said",
    [
        ("raise", "ended with exit code 1; all ranks were ended. It said last:"),
        ("exit", "ended with exit code 3; all ranks were ended"),
        ("kill", "was ended by SIGKILL; all ranks were ended"),
    ],
)
def test_a_rank_that_fails_ends_all(engine, how, said):
    for who in (0, 1):
        process = torchrun("--nproc-per-node=3", f"--engine={engine}", "launched.py", how, who)
        printed, errors, code = finish_soon(process, 12)
        assert code == 1 and "done" not in printed
        last = errors[errors.index("torch.distributed.run: ") :]
        assert f"rank {who} (local rank {who}, process " in last and said in last, errors
        if how == "raise":
            assert "KeyError: 'missing'" in last and "direct cause" in last
            assert last.endswith(f"[rank{who}]: ValueError: this rank has had enough\n")


@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_that_do_not_listen_are_killed(engine):
    process = torchrun("--nproc-per-node=2", f"--engine={engine}", "--shutdown-timeout=1", "launched.py", "deaf", 1)
    _, errors, code = finish_soon(process, 12)
    assert code == 1 and "rank 1" in errors and "exit code 5" in errors


@pytest.mark.parametrize("engine", ENGINES)
def test_restarts(engine):
    printed, errors, code = finish_soon(
        torchrun("--nproc-per-node=2", f"--engine={engine}", "--max-restarts=2", "launched.py", "once", 1), 30
    )
    assert not code and printed.count("done") == 2, errors
    assert "rank 1 (local rank 1" in errors and "all ranks are started anew (2 more times)" in errors
    assert f"{NAMES[engine]} 0 0 0 2 2 1 1.0" in printed
    printed, errors, code = finish_soon(
        torchrun("--nproc-per-node=2", f"--engine={engine}", "--max-restarts=1", "launched.py", "kill", 0), 30
    )
    assert code == 1 and "started anew (1 more time)" in errors and errors.count("rank 0 (local rank 0") == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_signal_ends_all(engine):
    process = torchrun(
        "--nproc-per-node=2", f"--engine={engine}", "--rdzv-id", f"job{os.getpid()}", "launched.py", "sleep"
    )
    assert process.stdout is not None
    seen = process.stdout.readline()
    assert "Engine" in seen
    sent = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, _, code = finish_soon(process, 12, sent)
    assert code == 128 + signal.SIGTERM
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                values = file.read().split(b"\0")
        except OSError:
            continue  # it has ended, or is another user's
        assert f"TORCHELASTIC_RUN_ID=job{os.getpid()}".encode() not in values


def test_files_and_filters(tmp_path):
    options = ["--nproc-per-node=2", "--log-dir", tmp_path, "--redirects=1:3", "--tee=0:1", "--local-ranks-filter=1"]
    printed = run(*options, "launched.py")
    assert "rank" not in printed  # of rank 0 nothing is shown, and rank 1 writes into files
    for rank in (0, 1):
        text = (tmp_path / "attempt_0" / str(rank) / "stdout.log").read_text()
        assert f"Engine {rank} {rank} 0 2 2 0 1.0" in text and "[rank" not in text
    assert not (tmp_path / "attempt_0" / "0" / "stderr.log").exists()
    printed = run("--nproc-per-node=2", "--log-dir", tmp_path / "both", "--redirects=3", "--tee=3", "launched.py")
    assert printed.count("Engine") == 2 and (tmp_path / "both" / "attempt_0" / "1" / "stdout.log").exists()


def test_several_machines_meet_at_a_port():
    port = dist.TCPStore("localhost", 0, 1, True).port
    jobs = {
        "static": [
            (f"--node-rank={node}", "--master-addr=localhost", f"--master-port={port}", "--nnodes=2") for node in (0, 1)
        ],
        "counted": [("--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "--nnodes=2:2")] * 2,
    }
    ways = {"MpiEngine": [], "StoreEngine": ["--engine=store"]} if HAS_MPI else {"StoreEngine": []}
    for (engine, options), commands in itertools.product(ways.items(), jobs.values()):
        processes = [torchrun(*one, *options, "--nproc-per-node=2", "launched.py") for one in commands]
        printed = ""
        for process in processes:
            out, errors, code = finish(process)
            assert not code, errors
            printed += out
        for rank in range(4):
            assert f"[rank{rank}]: {engine} {rank} {rank % 2} {rank // 2} 4 2 0 6.0" in printed
    processes = [torchrun(*one, "--engine=store", "--nproc-per-node=2", "machines.py") for one in jobs["static"]]
    for process in processes:
        out, errors, code = finish(process)
        assert not code and out.count("exchanged") == 2, errors
    options = [(*one, "--nproc-per-node=1", "--max-restarts=0", "launched.py", "kill", 1) for one in jobs["static"]]
    said = [finish(process) for process in [torchrun(*one) for one in options]]
    assert [code for _, _, code in said] == [1, 1]
    assert "a rank of another machine failed" in said[0][1] and "rank 1 (local rank 0" in said[1][1]


@needs_mpi
@pytest.mark.parametrize(("nodes", "each"), [(2, 2), (3, 1)])
def test_machines_join_their_worlds_of_mpi(nodes, each):
    port = dist.TCPStore("localhost", 0, 1, True).port
    options = [
        (f"--nnodes={nodes}", f"--node-rank={node}", "--master-addr=localhost", f"--master-port={port}", f"--nproc-per-node={each}")
        for node in range(nodes)
    ]  # fmt: skip
    for process in [torchrun(*one, "joined.py") for one in options]:
        out, errors, code = finish(process)
        assert not code and out.count("joined") == each, errors
    # A rank that is killed ends those of all machines; the next attempt joins anew.
    said = [finish(one) for one in [torchrun(*each, "--max-restarts=1", "launched.py", "once", 1) for each in options]]
    assert [code for _, _, code in said] == [0] * nodes, said
    assert "".join(out for out, _, _ in said).count("done") >= nodes * each


@needs_mpi
def test_machines_of_which_one_has_no_mpi_exchange_by_the_store():
    port = dist.TCPStore("localhost", 0, 1, True).port
    options = ["--nnodes=2", "--master-addr=localhost", f"--master-port={port}", "--nproc-per-node=2"]
    processes = [
        torchrun(*options, f"--node-rank={node}", *more, "launched.py")
        for node, more in ((0, ()), (1, ("--engine=store",)))
    ]
    said = [finish(process) for process in processes]
    assert [code for _, _, code in said] == [0, 0], said
    assert "".join(out for out, _, _ in said).count("StoreEngine") == 4


def test_wrong_options(tmp_path):
    for options, error in [
        (["--nproc-per-node=gpu"], "ValueError: Cuda is not available."),
        (["--nproc-per-node=many"], "ValueError: Unsupported nproc_per_node value: many"),
        (["--nnodes=a:b"], 'RuntimeError: nnodes=a:b is not in "MIN:MAX" format'),
        (["--nproc-per-node=2", "--tee=7"], "ValueError: '7' is neither 0, 1, 2 or 3"),
    ]:
        _, errors, code = finish(torchrun(*options, "launched.py"))
        assert code and error in errors


def test_spawned_processes_end_together(tmp_path):
    """The first failure of `mp.spawn` is told at once, though the process that failed has the store that others wait by."""
    for how, said in (("raise", "ProcessRaisedException"), ("kill", "terminated with signal SIGKILL")):
        _, errors, code = finish_soon(start("spawned_failing.py", f"file://{tmp_path / how}", how), 12)
        assert code and said in errors, errors


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_functions_in_processes(method):
    assert "ok" in run("called.py", "well", method, launcher=start)
    assert "ok" in run("called.py", "once", method, launcher=start)
    _, errors, code = finish(start("called.py", "always", method))
    assert code and "ProcessRaisedException" in errors and "this one fails" in errors
