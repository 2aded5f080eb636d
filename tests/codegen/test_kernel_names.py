"""Names of kernels in C and in Python: misspelt ones are found, with their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.__main__ import ROOT, main
from codegen.native_kernels import check_kernels
from codegen.schema import read_schema

MODULE = """\
static const KernelEntry *const tables[] = {
    sum_kernels,
    NULL,
};
"""
TABLE = """\
static int x;

const KernelEntry sum_kernels[] = {
    {"reduction.sum", sum_kernel},
    {"reduction.fast_sum", fast_sum_kernel},
    {NULL, NULL},
};
"""
KERNELS = """\
from native import kernel

@kernel
def sum(self, dim, keepdim, dtype, out=None): ...

def fast_sum(self): ...

def two(self, dim): ...
"""
ENTRY = """\
- func: sum(Tensor self, int dim, bool keepdim, *, ScalarType? dtype=None) -> Tensor
  variants: [function]
  meta: reduction(self, dim, keepdim, dtype=dtype)
  grad: none
  kernels: {cpu: reduction.sum}
  fast: reduction.fast_sum
"""


@pytest.fixture
def kernels(tree: Path) -> Path:
    """A source tree with two kernels in C, which is right."""
    for path, text in {
        "native/runtime/module.c": MODULE,
        "native/kernels/sum.c": TABLE,
        "src/mindtorch_v2/_backends/cpu/ops/reduction.py": KERNELS,
        "schema/ops/f.yaml": ENTRY,
    }.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    return tree


def _found(root: Path) -> list[str]:
    schema, problems = read_schema(root)
    assert not problems
    return [str(problem) for problem in check_kernels(root, schema.ops)]


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_names_that_agree(kernels: Path) -> None:
    assert _found(kernels) == []


def test_a_name_in_c_that_python_has_not(kernels: Path) -> None:
    _replace(kernels / "native/kernels/sum.c", "reduction.fast_sum", "reduction.fast_sun")
    assert _found(kernels) == [
        "native/kernels/sum.c:5:6: reduction.fast_sun: no kernel of this name in Python is decorated with @kernel, of a fast path, or made of a block; "
        "did you mean 'reduction.fast_sum'?"
    ]


def test_a_kernel_that_is_made_of_a_block(kernels: Path) -> None:
    block = "- func: ramp(Tensor self) -> Tensor\n  variants: [function]\n  meta: elementwise(self)\n  grad: none\n  block: self * 2 + 1\n"
    (kernels / "schema/ops/g.yaml").write_text(block)
    table = kernels / "native/kernels/sum.c"
    _replace(table, "    {NULL, NULL},", '    {"kernels.ramp", ramp_kernel},\n    {NULL, NULL},')
    assert _found(kernels) == []
    _replace(table, "kernels.ramp", "kernels.lamp")
    (found,) = _found(kernels)
    assert "did you mean 'kernels.ramp'?" in found


def test_a_function_that_is_not_decorated(kernels: Path) -> None:
    _replace(kernels / "native/kernels/sum.c", "reduction.fast_sum", "reduction.two")
    (found,) = _found(kernels)
    assert found.startswith("native/kernels/sum.c:5:6: reduction.two: no kernel of this name in Python is decorated")


def test_a_name_in_python_that_c_has_not(kernels: Path) -> None:
    _replace(kernels / "native/kernels/sum.c", '"reduction.sum"', '"reduction.fast_sum"')
    assert _found(kernels) == [
        "native/kernels/sum.c:5:6: reduction.fast_sum: native/kernels/sum.c:4:6 has this kernel already",
        "src/mindtorch_v2/_backends/cpu/ops/reduction.py:4:1: reduction.sum: no KernelEntry in C has this name; did you mean 'reduction.fast_sum'?",
    ]


def test_a_table_that_is_not_listed(kernels: Path) -> None:
    _replace(kernels / "native/runtime/module.c", "    sum_kernels,\n", "")
    assert _found(kernels) == [
        "native/kernels/sum.c:3:1: sum_kernels: native/runtime/module.c does not list this table"
    ]


def test_the_project_s_own_names(capsys: pytest.CaptureFixture[str]) -> None:
    schema, _ = read_schema(ROOT)
    assert check_kernels(ROOT, schema.ops) == []
    assert main(["check"]) == 0
    assert "up to date" in capsys.readouterr().out
