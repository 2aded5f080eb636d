"""Run a program with `import torch` served by mindtorch_v2.

python -m mindtorch_v2 program.py [arguments]
python -m mindtorch_v2 -m module [arguments]
python -m mindtorch_v2 -c code [arguments]
python -m mindtorch_v2 plan --model BertConfig
python -m mindtorch_v2 torch-wheel [folder]
python -m mindtorch_v2 doctor
python -m mindtorch_v2 collect-env
python -m mindtorch_v2 --version
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

COMMANDS = {
    "plan": "mindtorch_v2._planning.command",
    "torch-wheel": "mindtorch_v2._torch_proxy.wheel",
    "doctor": "mindtorch_v2._torch_proxy.doctor",
    "collect-env": "mindtorch_v2.utils.collect_env",
}

USAGE = (
    "usage: python -m mindtorch_v2 [-m module | -c code | program.py | plan | torch-wheel | doctor | collect-env] [arguments]\n\n"
    "Run a program with `import torch` served by mindtorch_v2.\n\n"
    "  program.py     a script, a folder or a zip file with a __main__.py\n"
    "  -m module      a module, as `python -m module`\n"
    "  -c code        a piece of code\n"
    "  plan           what a model costs, from its configuration; see plan --help\n"
    "  torch-wheel    write a distribution torch that is mindtorch_v2, and constraints that keep PyTorch out; see torch-wheel --help\n"
    "  doctor         which torch this environment has, and what to do where it is not mindtorch_v2; see doctor --help\n"
    "  collect-env    versions, platform, CANN and NPUs of this machine\n"
    "  -V, --version  show the version\n"
    "  -h, --help     show this text\n"
)


def _fail(message: str) -> int:
    print(f"python -m mindtorch_v2: {message}", file=sys.stderr)
    return 2


def _quietly(command: Callable[[], Any]) -> Any:
    """The exit status of a command; 1, without a word, when the reader of what it prints has seen enough (`| head`)."""
    try:
        try:
            return command() or 0
        finally:  # after `--help` too, which is an exit
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _program(first: str, argv: list[str]) -> None:
    """Run the program as the main one."""
    rest = argv[1:]
    if first == "-m":
        sys.argv = rest
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        scope = {"__name__": "__main__", "__builtins__": __builtins__}
        exec(compile(rest[0], "<string>", "exec"), scope)
    else:
        sys.argv = argv
        if os.path.isfile(first):  # runpy itself puts a folder or a zip file in front
            sys.path[0] = os.path.dirname(os.path.abspath(first))
        else:
            del sys.path[0]
        runpy.run_path(first, run_name="__main__")


def _fail_together(code: Any) -> None:
    """End all ranks that MPI started, where this one ends with an error."""
    engine = sys.modules.get("mindtorch_v2.distributed._mpi_engine")
    if engine is not None and code:
        if not isinstance(code, int):
            print(code, file=sys.stderr)
        engine.leave(code if isinstance(code, int) else 1)


def main(argv: list[str]) -> int:
    """Run what the arguments say; the exit status is 2 when they say nothing that can be run."""
    if not argv:
        print(USAGE, end="", file=sys.stderr)
        return 2
    first, rest = argv[0], argv[1:]
    if first in ("-h", "--help"):
        return _quietly(lambda: print(USAGE, end=""))
    if first in ("-V", "--version"):
        import mindtorch_v2

        print(f"mindtorch_v2, compatible with torch {mindtorch_v2.__version__}")
        return 0
    if first in COMMANDS and not os.path.exists(first):
        return _quietly(lambda: importlib.import_module(COMMANDS[first]).main(rest))
    if first in ("-m", "-c"):
        if not rest:
            return _fail(f"argument expected for the {first} option")
    elif first.startswith("-"):
        return _fail(f"unknown option {first}; try --help")
    elif not os.path.exists(first):
        return _fail(f"can't open file {first!r}: no such file")

    from mindtorch_v2._torch_proxy import install, serve_children

    install()
    serve_children()
    try:
        _program(first, argv)
    except SystemExit as end:
        _fail_together(end.code)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
