"""The generator's command line.

    python -m codegen generate       write what the schema says into generated/
    python -m codegen check          fail, with the diff, when generated/ is not what the schema says, and when kernels in C have other names than
                                     those in Python
    python -m codegen explain OP     what an entry says, and where it went
    python -m codegen report         counts
    python -m codegen list [PART]    the operators whose name has a part, with their places
    python -m codegen rules [PART]   the rules that `meta:` may name
    python -m codegen functions [PART]  what else entries may name: formulas, kernels, functions of blocks, ...
    python -m codegen new NAME       a skeleton entry

Mistakes in the schema are printed one line each; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from pathlib import Path

from . import listing
from .explain import explain
from .model import Schema
from .native_kernels import check_kernels
from .products import Change, changes, write
from .report import report
from .schema import read_schema
from .skeleton import KINDS, skeleton
from .sources import Sources

ROOT = Path(__file__).resolve().parent.parent


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if options.command == "new":
        print(skeleton(options.name, options.kind), end="")
        return 0
    schema, problems = read_schema(options.root)
    if options.command == "explain":
        # One operator can be explained while others are wrong.
        if problems:
            print(f"{_counted(len(problems))} in the schema; see 'python -m codegen check'", file=sys.stderr)
        return _explain(schema, options.op, options.root)
    if options.command in ("list", "rules", "functions"):
        print(_listed(options, schema), end="")
        return 0
    for problem in problems:
        print(problem, file=sys.stderr)
    if options.command == "report":
        print(report(schema), end="")
        return 1 if problems else 0
    if problems:
        print(
            f"{len(problems)} problem{'s' * (len(problems) != 1)} in the schema; nothing was written", file=sys.stderr
        )
        return 1
    # Late, so that the other commands, and the checks, work without the templates' engine.
    products: dict[str, str] = importlib.import_module(f"{__package__}.emit_library").render(schema, options.root)
    found = changes(options.root, products)
    if options.command == "check":
        misspelt = check_kernels(options.root, schema.ops)
        for problem in misspelt:
            print(problem, file=sys.stderr)
        return _check(found, len(products)) or bool(misspelt)
    write(options.root, found)
    counts = [f"{sum(c.kind == kind for c in found)} {kind}" for kind in ("added", "changed", "removed")]
    print(f"{len(schema.ops)} operators, {len(products)} files: {', '.join(counts)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--root", type=Path, default=ROOT, help="the source tree (default: this one)")
    parser = argparse.ArgumentParser(prog="python -m codegen", description="Generates mindtorch_v2 from its schema.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("generate", parents=[common], help="write generated/")
    commands.add_parser("check", parents=[common], help="compare generated/ with the schema")
    commands.add_parser("report", parents=[common], help="count operators")
    one = commands.add_parser("explain", parents=[common], help="say what an entry says")
    one.add_argument("op", help="add, add.Tensor, add_, torch.linalg.inv, __add__, ...")
    for name, what in (
        ("list", "the operators"),
        ("rules", "the rules of `meta:`"),
        ("functions", "what entries name"),
    ):
        several = commands.add_parser(name, parents=[common], help=f"print {what}, a line each")
        several.add_argument("part", nargs="?", default="", help="of the name: only those that have it")
    new = commands.add_parser("new", help="print a skeleton entry")
    new.add_argument("name", help="the operator's name, with its overload if it has one")
    new.add_argument("--kind", choices=KINDS, default=KINDS[0])
    return parser


def _listed(options: argparse.Namespace, schema: Schema) -> str:
    if options.command == "functions":
        return listing.functions(schema, Sources(options.root), options.part)
    return (listing.operators if options.command == "list" else listing.rules)(schema, options.part)


def _counted(count: int) -> str:
    return f"{count} problem{'s' * (count != 1)}"


def _check(found: list[Change], total: int) -> int:
    for change in found:
        old = f"a/{change.path}" if change.old is not None else "/dev/null"
        new = f"b/{change.path}" if change.new is not None else "/dev/null"
        sys.stdout.writelines(
            difflib.unified_diff(
                (change.old or "").splitlines(keepends=True), (change.new or "").splitlines(keepends=True), old, new
            )
        )
    if found:
        print(
            f"{len(found)} of {total} files differ from the schema; run 'python -m codegen generate'", file=sys.stderr
        )
        return 1
    print(f"{total} files are up to date")
    return 0


def _explain(schema: Schema, name: str, root: Path) -> int:
    text, found = explain(schema, name, root)
    print(text, file=sys.stdout if found else sys.stderr)
    return 0 if found else 1


def _quietly() -> int:
    """`main`; 1, without a word, when the reader of what it prints has seen enough (`| head`)."""
    try:
        try:
            return main()
        finally:  # after `--help` too, which is an exit
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(_quietly())
