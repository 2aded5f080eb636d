"""`python -m torch.distributed.run script.py`: `torchrun`. One rank runs in this process; several are processes that `agent` starts."""

from __future__ import annotations

import argparse
import os
import runpy
import socket
import subprocess
import sys
import uuid
from typing import Any

from mindtorch_v2._launching import agent
from mindtorch_v2._launching.mpiexec import find_mpiexec

_UNUSED = "--rdzv-conf --monitor-interval --start-method --event-log-handler --duplicate-stdout-filters --duplicate-stderr-filters --local-addr --logs-specs --numa-binding --signals-to-handle"
"""Options that change nothing here."""
_STREAMS = {"0": set(), "1": {"out"}, "2": {"err"}, "3": {"out", "err"}}
_PORT = 29500  # where several machines meet unless they are told


def _names(option: str) -> list[str]:
    """The spellings of an option: with hyphens, and with underscores."""
    names = option.split("/")
    return list(dict.fromkeys([*names, f"--{names[-1][2:].replace('-', '_')}"]))


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the command's options, which are `torchrun`'s; a variable PET_NPROC_PER_NODE and its like are their defaults."""
    parser = argparse.ArgumentParser("torchrun", description=__doc__)

    def add(option: str, default: Any = None, **more: Any) -> None:
        names = _names(option)
        word = names[-1].lstrip("-").replace("-", "_")
        parser.add_argument(*names, default=os.environ.get(f"PET_{word.upper()}", default), **more)

    add("--nnodes", "1:1", help="number of machines, each of which runs this command")
    add("--nproc-per-node", "1", help="number of processes of each machine; auto or cpu: one for each processor")
    add("--node-rank", 0, type=int, help="which of the machines this is")
    add("--master-addr", "localhost", help="the machine of node rank 0")
    add("--master-port", None, type=int, help="a free one, unless said; 29500 for several machines")
    add("--rdzv-backend", "static", help="static, or c10d: the machines count themselves")
    add("--rdzv-endpoint", "", help="HOST:PORT in place of --master-addr and --master-port")
    add("--rdzv-id", "none", help="the name of the job")
    add("--role", "default", help="the name of the role")
    add("--max-restarts", 0, type=int, help="how often all ranks are started anew when one has failed")
    add("--shutdown-timeout", 5.0, type=float, help="seconds that ranks have to end before they are killed")
    add("--log-dir", None, help="where files with the output of ranks go")
    add(
        "-r/--redirects",
        "0",
        help="what goes into files only: 0 nothing, 1 output, 2 errors, 3 both; 0:1,1:2 by local rank",
    )
    add("-t/--tee", "0", help="what goes into files too")
    add("--local-ranks-filter", "", help="the local ranks whose output is shown: 0,1; all unless said")
    add(
        "--engine",
        None,
        choices=["mpi", "store"],
        help="how ranks are started: by mpiexec (where it and mpi4py are there), or as plain processes",
    )
    for option in _UNUSED.split():
        add(option, help=argparse.SUPPRESS)
    parser.add_argument("--standalone", action="store_true", help="one machine, whatever else is said")
    parser.add_argument(*_names("--virtual-local-rank"), action="store_true", help="LOCAL_RANK is 0 for every rank")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as for `python -m`")
    parser.add_argument(*_names("--no-python"), action="store_true", help="the program is no Python script")
    parser.add_argument(
        *_names("--run-path"), action="store_true", help="the same as nothing: scripts run by their path"
    )
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None = None) -> argparse.Namespace:
    """The options, by default those of the command line."""
    return get_args_parser().parse_args(args)


def determine_local_world_size(nproc_per_node: str) -> int:
    """How many processes a machine has. ValueError for devices that are not there, and for other words."""
    if nproc_per_node in ("auto", "cpu"):
        return os.cpu_count() or 1
    if nproc_per_node in ("gpu", "xpu"):
        raise ValueError(f"{ {'gpu': 'Cuda', 'xpu': 'Xpu'}[nproc_per_node] } is not available.")
    try:
        return int(nproc_per_node)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}") from None


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """The least and the greatest number of machines. RuntimeError for what is neither N nor MIN:MAX."""
    parts = nnodes.split(":")
    if len(parts) > 2 or not all(part.isdigit() for part in parts):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def _by_rank(text: str, processes: int) -> dict[int, set[str]]:
    """What --redirects and --tee say, by local rank. ValueError for another form."""
    pairs = [part.partition(":") for part in text.split(",") if part]
    try:
        if len(pairs) == 1 and not pairs[0][1]:
            return {rank: _STREAMS[pairs[0][0]] for rank in range(processes)}
        return {int(rank): _STREAMS[which] for rank, _, which in pairs}
    except (KeyError, ValueError):
        raise ValueError(f"{text!r} is neither 0, 1, 2 or 3 nor a list of RANK:NUMBER") from None


def _program(args: argparse.Namespace) -> list[str]:
    """The command of one rank."""
    if args.no_python:
        return [args.training_script, *args.training_script_args]
    module = ["-m"] if args.module else []
    return [sys.executable, "-u", "-m", "mindtorch_v2", *module, args.training_script, *args.training_script_args]


def settings_of(args: argparse.Namespace) -> agent.Settings:
    """What the options say. ValueError or RuntimeError for options that contradict each other."""
    processes = determine_local_world_size(str(args.nproc_per_node))
    nodes = 1 if args.standalone else parse_min_max_nnodes(str(args.nnodes))[0]
    if processes < 1 or nodes < 1:
        raise ValueError(f"--nproc-per-node {processes} --nnodes {nodes}: there has to be one process")
    host, port = str(args.master_addr), args.master_port and int(args.master_port)
    if args.rdzv_endpoint and not args.standalone:
        host, _, number = (
            str(args.rdzv_endpoint).rpartition(":") if ":" in args.rdzv_endpoint else (args.rdzv_endpoint, "", "")
        )
        port = int(number) if number else port
    if nodes == 1:
        host = "localhost" if args.rdzv_endpoint else host
    log_dir = args.log_dir
    redirected, copied = _by_rank(str(args.redirects), processes), _by_rank(str(args.tee), processes)
    if log_dir is None and any(map(len, [*redirected.values(), *copied.values()])):
        import tempfile

        log_dir = tempfile.mkdtemp(prefix="torchrun-log-")
        print(f"torch.distributed.run: files are in {log_dir}", file=sys.stderr)
    shown = {int(rank) for rank in str(args.local_ranks_filter or "").split(",") if rank} or None
    engine = args.engine or ("mpi" if nodes * processes > 1 and find_mpiexec() else "store")
    return agent.Settings(
        _program(args),
        processes,
        nodes,
        -1 if str(args.rdzv_backend) == "c10d" and nodes > 1 else int(args.node_rank),
        host,
        port or (0 if nodes == 1 else _PORT),
        args.role,
        args.rdzv_id if args.rdzv_id != "none" or nodes > 1 else str(uuid.uuid4()),
        engine,
        int(args.max_restarts),
        float(args.shutdown_timeout),
        log_dir,
        redirected,
        copied,
        shown,
        args.virtual_local_rank,
    )


def environment(settings: agent.Settings) -> dict[str, str]:
    """What the only process of a job is told."""
    ranks = dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK"), "0")
    sizes = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"), "1")
    return {
        **ranks,
        **sizes,
        "ROLE_NAME": settings.role,
        "MASTER_ADDR": settings.host,
        "MASTER_PORT": str(settings.port or _free_port()),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": str(settings.max_restarts),
        "TORCHELASTIC_RUN_ID": settings.run_id,
    }


def run(args: argparse.Namespace) -> None:
    """Run the program. SystemExit with 1 where a rank of several failed.

    A single rank without restarts and files runs in this process, so what it raises comes from here.
    """
    settings = settings_of(args)
    if settings.processes * settings.nodes > 1 or settings.max_restarts or settings.log_dir:
        code = agent.Launcher(settings).run()
        if code:
            sys.exit(code)
        return
    os.environ.update(environment(settings))
    program, rest = args.training_script, [part.replace("${local_rank}", "0") for part in args.training_script_args]
    if args.no_python:
        done = subprocess.run([program, *rest], check=False).returncode
        if done:
            sys.exit(done)
        return
    sys.argv = [program, *rest]
    if args.module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name="__main__")


def main(args: list[str] | None = None) -> None:
    """The command."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
