"""What an author may get wrong in the `flops` of a rule and of an entry, and which formula an operator ends up with."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.problems import Problem
from codegen.schema import read_schema

ENTRY = """\
- func: double(Tensor self, Tensor other) -> Tensor
  meta: elementwise(self, other)
  grad: none
  kernels: {cpu: reduction.two}
"""
REDUCED = """\
- func: total(Tensor input, int dim, bool keepdim=False) -> Tensor
  meta: reduction(input, dim, keepdim)
  grad: none
  kernels: {cpu: reduction.three}
"""
VIEW = """\
- func: turn(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
  meta: transpose(self, dim0, dim1)
  grad: none
"""
RULES = """\
@rule({double})
def elementwise(*operands):
    \"""Broadcasts.\"""
@rule({total})
def reduction(self, dim, keepdim, kind="sum"):
    \"""Reduces.\"""
@rule()
def transpose(self, dim0, dim1):
    \"""Swaps two dimensions.\"""
"""
COSTS = "def numel(value): ...\ndef size(tensor, dim): ...\n"


@pytest.fixture
def read(tree: Path):
    """(formulas, problems) of a schema."""

    def read(ops: str, total: str = "", double: str = "") -> tuple[dict[str, str], list[str]]:
        (tree / "src/mindtorch_v2/_planning").mkdir(parents=True, exist_ok=True)
        (tree / "src/mindtorch_v2/_planning/costs.py").write_text(COSTS)
        (tree / "schema/ops").mkdir(parents=True, exist_ok=True)
        (tree / "schema/ops/small.yaml").write_text(ops)
        for file in (tree / "src/mindtorch_v2/_rules").glob("*.py"):
            file.unlink()
        (tree / "src/mindtorch_v2/_rules/all.py").write_text(RULES.format(total=total, double=double))
        schema, problems = read_schema(tree)
        assert all(isinstance(problem, Problem) for problem in problems)
        return dict(schema.flops), [str(problem) for problem in problems]

    return read


def test_the_default_of_a_rule_reads_what_the_entry_passes(read) -> None:
    formulas, problems = read(REDUCED, 'flops="numel(self) + len(kind)"')
    assert problems == []
    assert formulas == {"total": "numel(input) + len(('sum'))"}


def test_an_entry_comes_before_its_rule(read) -> None:
    formulas, problems = read(ENTRY + "  flops: 2 * numel(out)\n" + REDUCED, 'flops="numel(self)"', 'flops="1"')
    assert problems == []
    assert formulas == {"double": "2 * numel(out)", "total": "numel(input)"}


def test_views_need_none(read) -> None:
    assert read(VIEW) == ({}, [])


@pytest.mark.parametrize(
    ("ops", "total", "message"),
    [
        (ENTRY, "", "schema/ops/small.yaml:2:9: double: rule 'elementwise' has no formula; give its @rule 'flops', or the entry"),
        (ENTRY + "  flops: 2 *\n", "", "double: flops: not an expression"),
        (ENTRY + "  flops: numel(selv)\n", "", "schema/ops/small.yaml:5:16: double: flops: unknown argument 'selv'; did you mean 'self'?"),
        (VIEW + "  flops: 1\n", "", "schema/ops/small.yaml:4:10: turn: flops: only an operator with kernels has costs of its own"),
        (REDUCED, 'flops="numel(slf)"', "_rules/all.py:4:20: reduction: rule 'reduction' has no parameter 'slf'; did you mean 'self'?"),
        (REDUCED, 'flops="2 *"', "_rules/all.py:4:"),
        (REDUCED, 'inline="operand"', "_rules/all.py:4:14: reduction: unknown word 'operand' for 'inline'; did you mean 'operands'?"),
        (REDUCED, "flops=1", "_rules/all.py:4:13: reduction: a rule is marked by @rule() with flops='a formula', inline='operands' or batch='along'"),
        (REDUCED, 'cost="1"', "_rules/all.py:4:12: reduction: a rule is marked by @rule() with flops='a formula', inline='operands' or batch='along'"),
    ],
)  # fmt: skip
def test_mistakes(read, ops: str, total: str, message: str) -> None:
    _, problems = read(ops, total)
    assert any(message in problem for problem in problems), problems


def test_a_rule_is_documented_and_there_once(tree: Path, problems) -> None:
    (tree / "src/mindtorch_v2/_rules/more.py").write_text("@rule()\ndef transpose(self): ...\n")
    file = "src/mindtorch_v2/_rules"
    assert problems("") == [
        f"{file}/more.py:2:1: transpose: a rule needs a docstring, which the manual prints",
        f"{file}/shapes.py:5:1: transpose: a second rule of this name; the first is at {file}/more.py:2:1",
    ]
