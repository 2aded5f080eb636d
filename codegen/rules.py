"""The rules that `meta:` names, read from their functions: a function of `_rules/` under `@rule` says its name, parameters, meaning and cost once.

@rule(flops="2 * numel(out) * size(self, -1)")
def mm(self: Any, mat2: Any) -> Spec:
    \"""The product of two matrices.\"""
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .entries import read_work
from .loader import Scalar
from .model import Location, Work
from .problems import Problem, did_you_mean

MARK = "rule"
BATCH = r"\w+(\(\d+\))?"
INLINE = ("operands", "bool")
"""What a ufunc gives that stands for a rule and the kernel: the dtype of the operands, or bool."""


@dataclass(frozen=True)
class Rule:
    """One rule. `flops` is None where its operators cost nothing, as views do; `inline` where no ufunc may stand for it."""

    name: str
    module: str
    arguments: ast.arguments
    meaning: str
    flops: Work | None
    location: Location
    inline: str | None = None
    batch: str | None = None
    """How its operators run on a whole batch of examples: a function of `func/kinds.py`, with a number where it takes one."""

    @property
    def call(self) -> str:
        """The name with its parameters, without their types."""
        given = self.arguments
        plain = ast.arguments(
            posonlyargs=[ast.arg(a.arg) for a in given.posonlyargs],
            args=[ast.arg(a.arg) for a in given.args],
            vararg=None if given.vararg is None else ast.arg(given.vararg.arg),
            kwonlyargs=[ast.arg(a.arg) for a in given.kwonlyargs],
            kw_defaults=given.kw_defaults,
            defaults=given.defaults,
        )
        return f"{self.name}({ast.unparse(plain)})"


def read_rules(root: Path, folder: Path, problems: list[Problem], files: str = "*.py") -> dict[str, Rule]:
    """All rules by name, a module after the other. Modules that are no Python are left out; the checks of sources tell of them."""
    found: dict[str, Rule] = {}
    for file in sorted((root / folder).glob(files)):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except SyntaxError:
            continue
        for rule in _rules(tree, file.stem, file.relative_to(root).as_posix(), problems):
            if rule.name in found:
                message = f"a second rule of this name; the first is at {found[rule.name].location}"
                problems.append(Problem(rule.location, rule.name, message))
            found.setdefault(rule.name, rule)
    return found


def _rules(tree: ast.Module, module: str, file: str, problems: list[Problem]) -> Iterator[Rule]:
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        place = Location(file, function.lineno, function.col_offset + 1)
        for mark in function.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == MARK:
                document = ast.get_docstring(function) or ""
                if not document:
                    problems.append(Problem(place, function.name, "a rule needs a docstring, which the manual prints"))
                meaning = document.partition("\n\n")[0].replace("\n", " ")
                marks = dict(_marks(mark, function.name, file, problems))
                flops = marks.get("flops")
                work = None if flops is None else read_work(flops, function.name, problems)
                inline = marks.get("inline")
                if inline is not None and inline.text not in INLINE:
                    message = f"unknown word '{inline.text}' for 'inline'{did_you_mean(inline.text, INLINE)}"
                    problems.append(Problem(inline.location, function.name, message))
                batch = marks.get("batch")
                if batch is not None and not re.fullmatch(BATCH, batch.text):
                    problems.append(
                        Problem(batch.location, function.name, "'batch' must be like 'along' or 'leading(3)'")
                    )
                    batch = None
                yield Rule(
                    function.name,
                    module,
                    function.args,
                    meaning,
                    work,
                    place,
                    inline and inline.text,
                    batch and batch.text,
                )


def _marks(mark: ast.Call, name: str, file: str, problems: list[Problem]) -> Iterator[tuple[str, Scalar]]:
    """What a mark says, by keyword."""
    for keyword in mark.keywords:
        value = keyword.value
        place = Location(file, value.lineno, value.col_offset + 1)
        if (
            keyword.arg not in ("flops", "inline", "batch")
            or not isinstance(value, ast.Constant)
            or not isinstance(value.value, str)
        ):
            message = "a rule is marked by @rule() with flops='a formula', inline='operands' or batch='along'"
            problems.append(Problem(place, name, message))
            continue
        yield keyword.arg, Scalar(place, value.value, value.value, f"'{value.value}'")
