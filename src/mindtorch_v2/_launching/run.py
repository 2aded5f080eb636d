"""`python -m torch.distributed.run script.py`: runs a program in this process as the only rank of its job, with what `torchrun` says in the environment."""

from __future__ import annotations

import argparse
import os
import runpy
import socket
import subprocess
import sys
import uuid

_VALUED = (
    "--rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --max-restarts --monitor-interval --start-method --event-log-handler --log-dir -r/--redirects "
    "-t/--tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters --local-addr --logs-specs --numa-binding --signals-to-handle "
    "--shutdown-timeout"
)
"""Options about several processes, and about where their output goes."""
_FLAGS = "--standalone --virtual-local-rank"


def _names(option: str) -> list[str]:
    """The spellings of an option: with hyphens, and with underscores."""
    names = option.split("/")
    return list(dict.fromkeys([*names, f"--{names[-1][2:].replace('-', '_')}"]))


def get_args_parser() -> argparse.ArgumentParser:
    """The parser of the command's options, which are `torchrun`'s."""
    parser = argparse.ArgumentParser("torchrun", description=__doc__)
    parser.add_argument(*_names("--nnodes"), default="1:1", help="number of nodes; there is 1")
    parser.add_argument(*_names("--nproc-per-node"), default="1", help="number of processes; there is 1")
    parser.add_argument(*_names("--node-rank"), type=int, default=0)
    parser.add_argument(*_names("--role"), default="default", help="the name of the role")
    parser.add_argument(*_names("--master-addr"), default="localhost")
    parser.add_argument(*_names("--master-port"), type=int, help="a free one, unless said")
    for option in _VALUED.split():
        parser.add_argument(*_names(option), help=argparse.SUPPRESS)
    for option in _FLAGS.split():
        parser.add_argument(*_names(option), action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, as for `python -m`")
    parser.add_argument(*_names("--no-python"), action="store_true", help="the program is no Python script")
    parser.add_argument(
        *_names("--run-path"), action="store_true", help="the same as nothing: scripts run in this process"
    )
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None = None) -> argparse.Namespace:
    """The options, by default those of the command line."""
    return get_args_parser().parse_args(args)


def _processes(wanted: str) -> int:
    if wanted in ("auto", "cpu", "gpu", "xpu"):
        return 1  # as many as there may be
    try:
        return int(wanted)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {wanted}") from None


def _check(args: argparse.Namespace) -> None:
    fewest = int(str(args.nnodes).partition(":")[0])
    for what, number in (("--nnodes", fewest), ("--nproc-per-node", _processes(str(args.nproc_per_node)))):
        if number != 1:
            raise RuntimeError(
                f"torch.distributed.run {what} {number}: mindtorch_v2 runs in one process; there is no process group of several ranks"
            )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def environment(args: argparse.Namespace) -> dict[str, str]:
    """What `torchrun` tells the only process of a job."""
    ranks = dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK"), "0")
    sizes = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"), "1")
    return {
        **ranks,
        **sizes,
        "ROLE_NAME": args.role,
        "MASTER_ADDR": args.master_addr,
        "MASTER_PORT": str(args.master_port or _free_port()),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": str(args.max_restarts or 0),
        "TORCHELASTIC_RUN_ID": args.rdzv_id or str(uuid.uuid4()),
    }


def run(args: argparse.Namespace) -> None:
    """Run the program. RuntimeError where more than one process is asked for."""
    _check(args)
    os.environ.update(environment(args))
    program, rest = args.training_script, list(args.training_script_args)
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
