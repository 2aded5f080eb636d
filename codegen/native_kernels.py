"""Kernels in C against the kernels in Python that they stand before: one name, written in both languages, is one of a kernel in both.

In C it stands in a `KernelEntry` table, which native/runtime/module.c lists; in Python the function of that name is decorated with `@kernel`, is
the kernel of a fast path (`fast:` of an entry), or is made of an entry's block (`kernels.clamp_Tensor`). A misspelt name would leave a kernel out without a word.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from . import arrays
from .model import Location, Op
from .problems import Problem, did_you_mean
from .sources import CPU_OPS, RANDOM

NATIVE = Path("native")
MODULE = NATIVE / "runtime/module.c"


def check_kernels(root: Path, ops: tuple[Op, ...]) -> list[Problem]:
    """What is wrong with the names of kernels; nothing where there is no C."""
    if not (root / MODULE).is_file():
        return []
    problems: list[Problem] = []
    in_c, tables = _in_c(root, problems)
    in_python = _in_python(root)
    others = {op.fast for op in ops if op.fast} | {f"kernels.{op.identifier}" for op in ops if arrays.is_made(op)}
    for name, place in in_c.items():
        if name not in in_python and name not in others:
            known = {*in_python, *others} - in_c.keys()
            message = f"no kernel of this name in Python is decorated with @kernel, of a fast path, or made of a block{did_you_mean(name, known)}"
            problems.append(Problem(place, name, message))
    for name, place in in_python.items():
        if name not in in_c:
            problems.append(Problem(place, name, f"no KernelEntry in C has this name{did_you_mean(name, in_c)}"))
    listed = (root / MODULE).read_text(encoding="utf-8").partition("tables[] = {")[2].partition("};")[0]
    known_tables = set(re.findall(r"\w+", listed))
    for table, place in tables.items():
        if table not in known_tables:
            problems.append(Problem(place, table, f"{MODULE.as_posix()} does not list this table"))
    return problems


def _in_c(root: Path, problems: list[Problem]) -> tuple[dict[str, Location], dict[str, Location]]:
    """Names of kernels, and of the tables that have them, with their places."""
    names: dict[str, Location] = {}
    tables: dict[str, Location] = {}
    for file in sorted((root / NATIVE).rglob("*.c")):
        text = file.read_text(encoding="utf-8")
        for table in re.finditer(r"^const KernelEntry (\w+)\[\] = \{\n(.*?)^\};", text, re.M | re.S):
            tables[table[1]] = _place(root, file, text, table.start())
            for entry in re.finditer(r"\"([^\"]+)\"", table[2]):
                place = _place(root, file, text, table.start(2) + entry.start())
                if entry[1] in names:
                    problems.append(Problem(place, entry[1], f"{names[entry[1]]} has this kernel already"))
                names[entry[1]] = place
    return names, tables


def _place(root: Path, file: Path, text: str, at: int) -> Location:
    return Location(file.relative_to(root).as_posix(), text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def _in_python(root: Path) -> dict[str, Location]:
    """Functions of the CPU kernels, and of what those draw with, that are decorated with `@kernel` or `@native.kernel`."""
    found = {}
    for file in sorted(file for folder in (CPU_OPS, RANDOM) for file in (root / folder).rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(_is_kernel(one) for one in node.decorator_list):
                found[f"{file.stem}.{node.name}"] = Location(file.relative_to(root).as_posix(), node.lineno, 1)
    return found


def _is_kernel(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) in ("kernel", "native.kernel")
