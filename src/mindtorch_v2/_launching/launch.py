"""`python -m torch.distributed.launch script.py`: `torch.distributed.run` by its former name, which gives the program an argument `--local-rank` too."""

from __future__ import annotations

import argparse

from . import run


def parse_args(args: list[str] | None = None) -> argparse.Namespace:
    """The options of `run`, and `--use-env`: the program does without the argument."""
    parser = run.get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="give the rank in the environment only")
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Run the program. See `run.run`."""
    if not args.use_env and not args.no_python:
        args.training_script_args = ["--local-rank=${local_rank}", *args.training_script_args]
    run.run(args)


def main(args: list[str] | None = None) -> None:
    """The command."""
    launch(parse_args(args))


if __name__ == "__main__":
    main()
