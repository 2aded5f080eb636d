"""A small source tree to run the generator on: a schema to be written by each test, and a runtime of a few functions."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from codegen.schema import read_schema

RUNTIME = {
    "_rules/pointwise.py": """\
        @rule(flops="1", inline="operands")
        def elementwise(*operands, dtypes="all", float=False):
            '''Broadcasts.'''
        def _helper(): ...
    """,
    "_rules/shapes.py": """\
        @rule(flops="1")
        def reduction(self, dim, keepdim, dtype=None, kind="sum"):
            '''Reduces.'''
        @rule()
        def transpose(self, dim0, dim1):
            '''Swaps two dimensions.'''
        def not_marked(self): ...
    """,
    "_backends/cpu/ops/__init__.py": "",
    "_backends/cpu/ops/reduction.py": """\
        def sum(self, dim, keepdim, dtype, out=None): ...
        def fast_sum(self): ...
        def two(self, dim): ...
        def three(self, other, n): ...
        mean = sum
    """,
    "_backends/cpu/sparse/products.py": """\
        def mul(self, other, n, out=None): ...
        def mm(self, other): ...
    """,
    "func/whole.py": "def product(level, a, b): ...\n",
    "func/kinds.py": "def along(level, op, given): ...\n",
    "_composite/shapes.py": "def flatten(self, start, *, end): ...\n",
    "_autograd/formulas.py": "def sum_backward(grad, shape, dim, keepdim): ...\n",
}
ACLNN = """\
aclnnAdd: [[const aclTensor*, self, in], [const aclTensor*, other, in], [const aclScalar*, alpha, in], [aclTensor*, out, out]]
aclnnMatmul: [[const aclTensor*, self, in], [const aclTensor*, mat2, in], [aclTensor*, out, out], [int8_t, cubeMathType, in]]
"""

Problems = Callable[..., list[str]]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree without any entry."""
    for path, text in RUNTIME.items():
        file = tmp_path / "src/mindtorch_v2" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    (tmp_path / "schema/ops").mkdir(parents=True)
    (tmp_path / "schema/aclnn.yaml").write_text(ACLNN)
    return tmp_path


@pytest.fixture
def problems(tree: Path) -> Problems:
    """`problems(text, other=...)`: the lines that the checks print for schema/ops/f.yaml (and schema/ops/NAME.yaml)."""

    def run(text: str, **others: str) -> list[str]:
        for name, content in {"f": text, **others}.items():
            (tree / f"schema/ops/{name}.yaml").write_text(textwrap.dedent(content))
        _, found = read_schema(tree)
        return [str(problem) for problem in found]

    return run
