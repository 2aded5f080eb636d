"""Operators that follow from another one's entry."""

from __future__ import annotations

from pathlib import Path

from conftest import Problems

from codegen.schema import read_schema

TRANSPOSE = """\
- func: transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
  variants: [method]
  meta: transpose(self, dim0, dim1)
  grad: {self: "transpose(grad, dim0, dim1)"}
  copy: true
"""
ADD = """\
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  variants: [function, method, inplace]
  meta: elementwise(self, other)
  grad: none
  kernels: {cpu: reduction.three}
  foreach: FOREACH
"""


def signatures(tree: Path, text: str) -> list[str]:
    (tree / "schema/ops/f.yaml").write_text(text)
    schema, problems = read_schema(tree)
    assert not problems
    return [f"{op.family}: {op.signature}" for op in schema.ops if op.base is not None]


def test_a_copy_of_a_view(tree: Path) -> None:
    assert signatures(tree, TRANSPOSE) == ["copies: transpose_copy(Tensor self, int dim0, int dim1) -> Tensor"]


def test_lists_of_one_tensor_each(tree: Path) -> None:
    assert signatures(tree, ADD.replace("FOREACH", "unary")) == [
        "foreach: _foreach_add(Tensor[] self) -> Tensor[]",
        "foreach: _foreach_add_(Tensor(a!)[] self) -> ()",
    ]


def test_lists_by_signature(tree: Path) -> None:
    forms = '["_foreach_add.List(Tensor[] self, Tensor[] other) -> Tensor[]", "_foreach_add.N(Scalar self, Tensor[] other) -> Tensor[]"]'
    assert signatures(tree, ADD.replace("FOREACH", forms)) == [
        "foreach: _foreach_add.List(Tensor[] self, Tensor[] other) -> Tensor[]",
        "foreach: _foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
        "foreach: _foreach_add.N(Scalar self, Tensor[] other) -> Tensor[]",
    ]


def test_mistakes(problems: Problems) -> None:
    assert problems(TRANSPOSE.replace("true", "perhaps")) == [
        "schema/ops/f.yaml:5:9: transpose: 'copy' must be true or false"
    ]
    assert problems(ADD.replace("FOREACH", "each")) == [
        "schema/ops/f.yaml:6:16: add.Tensor: bad signature: expected '(' before the arguments, found the end"
    ]
