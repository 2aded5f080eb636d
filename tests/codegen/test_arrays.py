"""Kernels in numpy that are made of blocks: what an expression becomes, and what an author sees where none can be made."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from conftest import Problems
from test_checks import entry

from codegen import arrays
from codegen.schema import read_schema

HEADERS = {
    "ieee.h": "INLINED T NAME(sqrt)(T x)\n{\n    return x;\n}\n",
    "vecmath.h": "INLINED T NAME(exponential)(T x)\n{\n    return x;\n}\n\nINLINED T NAME(sine)(T x)\n{\n    return x;\n}\n",
    "pointwise_math.h": """\
        INLINED T NAME(larger)(T a, T b)
        {
            return a;
        }

        INLINED T NAME(gelu)(T x)
        {
            return x;
        }
    """,
}
ELEMENTS = """\
import numpy as np
exponential = np.exp
larger = np.maximum
sqrt = np.sqrt
unused = np.sin
def gelu(x, out=None): ...
def _helper(x): ...
"""
ONE = "f(Tensor self) -> Tensor"
TWO = "f(Tensor self, Tensor other) -> Tensor"
SCALED = "f(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
NAMED = "f(Tensor self, *, str how='a', bool flag=False) -> Tensor"
BETWEEN = "f(Tensor self, Tensor? low=None, float? high=None) -> Tensor"


@pytest.fixture
def native(tree: Path) -> Path:
    """A source tree with functions of one element, in C and in numpy."""
    folder = tree / "native/kernels"
    folder.mkdir(parents=True)
    for name, text in HEADERS.items():
        (folder / name).write_text(textwrap.dedent(text))
    (tree / "src/mindtorch_v2/_backends/cpu/ops/elements.py").write_text(ELEMENTS)
    return tree


def block(func: str, text: str, **fields: str) -> str:
    """An entry without a kernel for the CPU."""
    return entry(func=func, meta="elementwise(self)", block=text, kernels="", **fields)


@pytest.mark.parametrize(
    ("func", "text", "target"),
    [
        (TWO, "self * other", "numpy.multiply"),
        (TWO, "self < other", "numpy.less"),
        (TWO, "self and other", "numpy.logical_and"),
        (TWO, '"larger(self, other)"', "numpy.maximum"),
        (TWO, '"larger(other, self)"', "made.f"),
        (ONE, "-self", "numpy.negative"),
        (ONE, "not self", "numpy.logical_not"),
        (ONE, "gelu(self)", "elements.gelu"),
        (ONE, "self * self", "made.f"),
        (ONE, "self * 2", "made.f"),
        (SCALED, "self * other", "made.f"),
        (SCALED, "[self + other, self + alpha * other]", "made.f"),
    ],
)
def test_one_step_is_its_function(native: Path, problems: Problems, func: str, text: str, target: str) -> None:
    problems(block(func, text))
    (op,) = (op for op in read_schema(native)[0].ops if op.name == "f")
    kernel = op.kernel("cpu")
    assert kernel is not None and kernel.target == target


@pytest.mark.parametrize(
    ("func", "text", "body", "decorator"),
    [
        (ONE, "self * self", ["return np.multiply(self, self, out=out)"], ""),
        (ONE, "-sqrt(self)", ["return np.negative(np.sqrt(self), out=out)"], "few_passes"),
        (ONE, "1 - gelu(self)", ["return np.subtract(1, elements.gelu(self), out=out)"], "many_passes"),
        (ONE, "self == infinity", ["return self == np.inf"], ""),
        (TWO, "self < 0 and not other", ["return (self < 0) & ~(other != 0)"], ""),
        (ONE, "largest - self", ["return np.subtract(np.finfo(self.dtype).max, self, out=out)"], "few_passes"),
        (TWO, "0 if self < 1 else other", ["return chosen(self < 1, 0, other, out=out)"], "many_passes"),
        (
            ONE,
            "self * (1 if self > 0 else 0)",
            ["return np.multiply(self, (self > 0).astype(self.dtype), out=out)"],
            "few_passes",
        ),
        (
            ONE,
            "self * (2 if self > 0 else nan)",
            ["return np.multiply(self, chosen(self > 0, 2, number(np.nan, self)), out=out)"],
            "many_passes",
        ),
        (
            ONE,
            "sqrt(self + 1) / (1 - sqrt(self + 1)) * (self + 1)",
            [
                "part1 = self + 1",
                "part = np.sqrt(part1)",
                "return np.multiply(part / (1 - part), part1, out=out)",
            ],
            "many_passes",
        ),
        (
            SCALED,
            "[self + other, self + alpha * other]",
            [
                "if alpha == 1:",
                "    return np.add(self, other, out=out)",
                "alpha = number(alpha, self)",
                "return np.add(self, alpha * other, out=out)",
            ],
            "few_passes",
        ),
        (
            NAMED,
            "[{-self: {flag: true}}, self * self]",
            [
                "if how == 'a' and flag:",
                "    return np.negative(self, out=out)",
                "if how == 'a' and not flag:",
                "    return np.multiply(self, self, out=out)",
                'raise ValueError("f: no expression for these arguments")',
            ],
            "",
        ),
        (
            BETWEEN,
            '["larger(self, low)", self * high, self * self]',
            [
                "if low is not None and high is None:",
                "    return np.maximum(self, low, out=out)",
                "if low is None and high is not None:",
                "    high = number(high, self)",
                "    return np.multiply(self, high, out=out)",
                "return np.multiply(self, self, out=out)",
            ],
            "",
        ),
    ],
)
def test_lines(native: Path, problems: Problems, func: str, text: str, body: list[str], decorator: str) -> None:
    assert problems(block(func, text)) == []
    schema, _ = read_schema(native)
    made = arrays.function(schema.ops[0], dict(schema.elements))
    assert list(made.body) == body
    assert made.decorator == decorator
    assert made.parameters.endswith("out=None") == ("out" in body[-2 if "raise" in body[-1] else -1])


@pytest.mark.parametrize(
    ("func", "text", "message"),
    [
        (
            ONE,
            "1 - sine(self)",
            "'sine' is not in elements.py, so that no kernel in numpy can be made; name one for cpu",
        ),
        (
            SCALED,
            "self * other",
            "says nothing of other values of 'alpha', so that no kernel can be made; name one for cpu",
        ),
        (
            NAMED,
            "self * self",
            "says nothing of other values of 'flag', so that no kernel can be made; name one for cpu",
        ),
        (
            BETWEEN,
            '"larger(self, low)"',
            "says nothing of other values of 'high', so that no kernel can be made; name one for cpu",
        ),
    ],
)
def test_where_no_kernel_can_be_made(native: Path, problems: Problems, func: str, text: str, message: str) -> None:
    found = problems(block(func, text))
    assert [line.partition(": f: ")[2] for line in found] == [message]


def test_a_named_kernel_is_taken(native: Path, problems: Problems) -> None:
    assert problems(entry(func=ONE, meta="elementwise(self)", block="self * self", kernels="{cpu: numpy.square}")) == []
    (op,) = read_schema(native)[0].ops
    assert not arrays.is_made(op)


def test_a_short_cut_by_the_block_needs_one(native: Path, problems: Problems) -> None:
    assert problems(block(ONE, "self * self", fast="block")) == []
    (found,) = problems(entry(func=ONE, meta="elementwise(self)", kernels="{cpu: numpy.square}", fast="block"))
    assert found.endswith("f: 'fast: block' needs a block")
