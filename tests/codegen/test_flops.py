"""What an author may get wrong in `schema/flops.yaml` and in an entry's `flops`, and which formula an operator ends up with."""

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
COSTS = "def numel(value): ...\ndef size(tensor, dim): ...\n"


@pytest.fixture
def read(tree: Path):
    """(formulas, problems) of a schema."""

    def read(ops: str, flops: str) -> tuple[dict[str, str], list[str]]:
        (tree / "src/mindtorch_v2/_planning").mkdir(parents=True, exist_ok=True)
        (tree / "src/mindtorch_v2/_planning/costs.py").write_text(COSTS)
        (tree / "schema/ops").mkdir(parents=True, exist_ok=True)
        (tree / "schema/ops/small.yaml").write_text(ops)
        (tree / "schema/flops.yaml").write_text(flops)
        schema, problems = read_schema(tree)
        assert all(isinstance(problem, Problem) for problem in problems)
        return dict(schema.flops), [str(problem) for problem in problems]

    return read


def test_the_default_of_a_rule_reads_what_the_entry_passes(read) -> None:
    formulas, problems = read(REDUCED, "- {flops: numel(self) + len(kind), rules: reduction}\n")
    assert problems == []
    assert formulas == {"total": "numel(input) + len(('sum'))"}


def test_an_entry_comes_before_its_rule(read) -> None:
    formulas, problems = read(
        ENTRY + "  flops: 2 * numel(out)\n" + REDUCED,
        "- {flops: numel(self), rules: [reduction]}\n",
    )
    assert problems == []
    assert formulas == {"double": "2 * numel(out)", "total": "numel(input)"}


def test_views_need_none(read) -> None:
    assert read(VIEW, "") == ({}, [])


@pytest.mark.parametrize(
    ("ops", "flops", "message"),
    [
        (ENTRY, "", "schema/ops/small.yaml:2:9: double: rule 'elementwise' has no formula in schema/flops.yaml"),
        (ENTRY + "  flops: 2 *\n", "", "double: flops: not an expression"),
        (ENTRY + "  flops: numel(selv)\n", "", "schema/ops/small.yaml:5:16: double: flops: unknown argument 'selv'; did you mean 'self'?"),
        (VIEW + "  flops: 1\n", "", "schema/ops/small.yaml:4:10: turn: flops: only an operator with kernels has costs of its own"),
        (REDUCED, "- {flops: 1, rules: [reduction, reducton]}\n", "schema/flops.yaml:1:33: unknown meta rule 'reducton'; did you mean 'reduction'?"),
        (REDUCED, "- {flops: numel(slf), rules: reduction}\n", "reduction: rule 'reduction' has no parameter 'slf'; did you mean 'self'?"),
        (REDUCED, "- {flops: 1, rules: [reduction, elementwise]}\n", "schema/flops.yaml:1:33: elementwise: no operator needs this formula"),
        (REDUCED, "- {flops: 1, rules: reduction}\n- {flops: 2, rules: reduction}\n", "schema/flops.yaml:2:21: reduction: has two formulas"),
        (REDUCED, "- {flops: 1}\n", "schema/flops.yaml:1:3: a row needs 'flops' and 'rules'"),
        (REDUCED, "reduction: 1\n", "schema/flops.yaml:1:1: must be a list of {flops: formula, rules: [names]}"),
    ],
)  # fmt: skip
def test_mistakes(read, ops: str, flops: str, message: str) -> None:
    _, problems = read(ops, flops)
    assert any(message in problem for problem in problems), problems
