"""generate, check, explain, report and new, on a small tree with templates of one line."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from codegen.__main__ import main
from codegen.model import Schema
from codegen.schema import read_schema
from codegen.skeleton import KINDS

SCHEMA = """\
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  variants: [function, method, inplace, out]
  operators: [__add__, __radd__]
  aliases: [plus]
  meta: elementwise(self, other)
  grad: {self: grad, other: grad * alpha}
  kernels:
    cpu: numpy.add(self, other)
    npu: aclnnAdd(self, other, alpha)
  fast: ufunc
  tags: [pointwise]
  sample: {self: positive}
- func: sum(Tensor self, int dim, bool keepdim, *, ScalarType? dtype=None) -> Tensor
  variants: [function, method]
  meta: reduction(self, dim, keepdim, dtype=dtype)
  grad: {self: "sum_backward(grad * result, self.shape, dim, keepdim)"}
  kernels: {cpu: reduction.sum}
- func: transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
  variants: [method]
  meta: transpose(self, dim0, dim1)
  grad: {self: "transpose(grad, dim0, dim1)"}
- func: flatten(Tensor self, int start, *, int end=-1) -> Tensor
  composite: shapes.flatten
  differs: one reason
- func: linalg_inv(Tensor self) -> Tensor
  namespace: linalg
  missing: needs a factorisation
"""

EXPLAINED = """\
add.Tensor
  signature          add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  entry              schema/ops/f.yaml:1:3
  forms              torch.add, Tensor.add, Tensor.add_, torch.add(..., out=)
  operators          __add__, __radd__
  aliases            plus
  rule               elementwise(self, other)
  kernel on cpu      numpy.add(self, other)
  kernel on npu      aclnnAdd(self, other, alpha)
  fast path          ufunc
  FLOPs              1
  gradient of self   grad
  gradient of other  grad * alpha
  tags               pointwise
  sample             self: positive
  generated in       generated/names.py:2
"""


def render(schema: Schema, root: Path) -> dict[str, str]:
    """What `codegen.emit_library.render` gives, for one product."""
    return {
        "generated/names.py": "# names: add.Tensor\n" + "".join(f"{op.identifier} = Operator()\n" for op in schema.ops)
    }


@pytest.fixture
def root(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stub = types.ModuleType("codegen.emit_library")
    vars(stub)["render"] = render
    monkeypatch.setitem(sys.modules, "codegen.emit_library", stub)
    (tree / "schema/ops/f.yaml").write_text(SCHEMA)
    return tree


def run(*words: str, root: Path) -> int:
    return main([*words, "--root", str(root)])


def test_generate_writes_and_then_touches_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("generate", root=root) == 0
    assert capsys.readouterr().out == "5 operators, 1 files: 1 added, 0 changed, 0 removed\n"
    product = root / "generated/names.py"
    before = product.stat()
    assert run("generate", root=root) == 0
    assert capsys.readouterr().out == "5 operators, 1 files: 0 added, 0 changed, 0 removed\n"
    after = product.stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_generate_removes_what_is_no_product(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "generated/__pycache__").mkdir(parents=True)
    (root / "generated/__pycache__/names.pyc").write_bytes(b"\xff")
    (root / "generated/old.py").write_text("old\n")
    assert run("generate", root=root) == 0
    assert capsys.readouterr().out == "5 operators, 1 files: 1 added, 0 changed, 1 removed\n"
    assert sorted(p.name for p in (root / "generated").rglob("*") if p.is_file()) == ["names.py", "names.pyc"]


def test_generate_writes_nothing_for_a_wrong_schema(root: Path) -> None:
    (root / "schema/ops/g.yaml").write_text("- add\n")
    assert run("generate", root=root) == 1
    assert not (root / "generated").exists()


def test_check_prints_the_difference(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("generate", root=root)
    assert run("check", root=root) == 0
    (root / "generated/names.py").write_text("# names\n")
    (root / "generated/old.py").write_text("old\n")
    capsys.readouterr()
    assert run("check", root=root) == 1
    output = capsys.readouterr()
    assert "--- a/generated/names.py\n+++ b/generated/names.py\n" in output.out
    assert "+add_Tensor = Operator()\n" in output.out
    assert "--- a/generated/old.py\n+++ /dev/null\n" in output.out
    assert output.err == "2 of 1 files differ from the schema; run 'python -m codegen generate'\n"
    assert (root / "generated/names.py").read_text() == "# names\n"


def test_explain_says_everything(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("generate", root=root)
    capsys.readouterr()
    assert run("explain", "add.Tensor", root=root) == 0
    assert capsys.readouterr().out == EXPLAINED


@pytest.mark.parametrize("name", ["add", "add_", "plus", "__radd__", "torch.add", "Tensor.add_"])
def test_explain_finds_every_name(root: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run("explain", name, root=root) == 0
    assert capsys.readouterr().out.startswith("add.Tensor\n")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "sum",
            "  gradient of self  sum_backward(grad * result, self.shape, dim, keepdim)    (saves result, self.shape)",
        ),
        ("transpose", "  kernels           none: a view of its input on every device"),
        ("flatten", "  gradient      through the operators that it calls"),
        ("flatten", "  differs       one reason"),
        ("torch.linalg.inv", "  missing       needs a factorisation"),
        ("linalg.inv", "  forms         torch.linalg.inv"),
        ("sum", "  generated in      nothing yet; run 'python -m codegen generate'"),
    ],
)
def test_lines_of_explain(root: Path, capsys: pytest.CaptureFixture[str], name: str, line: str) -> None:
    assert run("explain", name, root=root) == 0
    assert line in capsys.readouterr().out.splitlines()


def test_explain_of_an_unknown_name(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "tranpose", root=root) == 1
    assert capsys.readouterr().err == "unknown operator 'tranpose'; did you mean 'transpose'?\n"


def test_explain_works_while_other_entries_are_wrong(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "schema/ops/g.yaml").write_text("- add\n")
    assert run("explain", "flatten", root=root) == 0
    output = capsys.readouterr()
    assert output.out.startswith("flatten\n")
    assert output.err == "1 problem in the schema; see 'python -m codegen check'\n"


def test_report_counts(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", root=root) == 0
    assert capsys.readouterr().out.splitlines() == [
        "family  operators  rule+kernel  view  composite  missing  cpu  npu  differentiable",
        "f               5            2     1          1        1    2    1               3",
        "all             5            2     1          1        1    2    1               3",
        "",
        "functions: 5 names",
        "forms: 4 function, 3 method, 1 inplace, 1 out",
        "aclnn: 1 of 2 prototypes used",
        "one by one under vmap: 1 names",
        "signatures that differ from PyTorch's, with a reason: 1",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_new_prints_an_entry_that_reads(root: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """Only what the author has yet to write is missing: the kernel, the rule, the formula."""
    assert main(["new", "scale.dim", "--kind", kind]) == 0
    (root / "schema/ops/f.yaml").write_text(capsys.readouterr().out)
    schema, problems = read_schema(root)
    assert [op.full_name for op in schema.ops] == ["scale.dim"]
    assert problems and all("unknown" in problem.message for problem in problems)


def test_the_model_groups_operators(root: Path) -> None:
    schema, problems = read_schema(root)
    assert problems == []
    assert list(schema.functions) == ["add", "sum", "transpose", "flatten", "linalg_inv"]
    assert schema.functions["linalg_inv"].public_name == "inv"
    assert list(schema.families) == ["f"]
    assert schema.sources == ("schema/ops/f.yaml", "schema/aclnn.yaml")
    assert schema.formulas == ("sum_backward",)
    add = schema.by_full_name["add.Tensor"]
    assert (add.identifier, [form.name for form in add.forms]) == ("add_Tensor", ["add", "add", "add_", "add"])


def test_what_a_derivative_saves(root: Path) -> None:
    schema, _ = read_schema(root)
    (derivative,) = schema.by_full_name["sum"].derivatives
    assert derivative.saved_attributes == (("self", "shape"),)
    assert (derivative.saved_inputs, derivative.saved_results, derivative.scalars) == ((), (0,), ("dim", "keepdim"))
    assert derivative.functions == ("sum_backward",)
    names = {("self", "shape"): "saved.self_shape", ("dim", None): "saved.dim"}
    assert derivative.rewritten(lambda name, attribute: names.get((name, attribute))) == (
        "sum_backward(grad * result, saved.self_shape, saved.dim, keepdim)"
    )
