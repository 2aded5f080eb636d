"""The field `block`: what an author sees of a mistake, and the C that an expression becomes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from conftest import Problems
from test_checks import entry

from codegen.blocks import Loops, translate
from codegen.schema import read_schema

HEADERS = {
    "ieee.h": "INLINED T NAME(sqrt)(T x)\n{\n    return x;\n}\n",
    "vecmath.h": """\
        INLINED T NAME(parts)(T x, T *low)
        {
            return FMA(x, x, x);
        }

        INLINED T NAME(exponential)(T x)
        {
            return NAME(parts)(x, &low);
        }
    """,
    "pointwise_math.h": "INLINED T NAME(larger)(T a, T b)\n{\n    return NAME(chosen)(a > b, a, b);\n}\n",
}
SIGNATURE = "mul(Tensor self, Tensor other, Scalar n=1, bool flag=False) -> Tensor"


@pytest.fixture
def native(tree: Path) -> Path:
    """A source tree with functions of one element."""
    folder = tree / "native/kernels"
    folder.mkdir(parents=True)
    for name, text in HEADERS.items():
        (folder / name).write_text(textwrap.dedent(text))
    (tree / "src/mindtorch_v2/_backends/cpu/ops/pointwise.py").write_text("def mul(self, *others): ...\n")
    return tree


def block(text: str, **fields: str) -> str:
    return entry(**({"func": SIGNATURE, "kernels": "{cpu: pointwise.mul}"} | fields), block=text)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("self * othr", 17, "unknown name 'othr'; did you mean 'other'?"),
        ("exponentail(self)", 10, "unknown function 'exponentail'; did you mean 'exponential'?"),
        ("self + exponential(self, other)", 17, "'exponential' takes 1 number, 2 given"),
        ("larger(self)", 10, "'larger' takes 2 numbers, 1 given"),
        ("self + (self < other)", 18, "a comparison is no number; write '1 if ... else 0'"),
        ("self ** 2", 10, "'self ** 2' is no expression of an element"),
        ("self < other < 3", 10, "'self < other < 3' is no expression of an element"),
        ("self.sum()", 10, "'self.sum()' is no expression of an element"),
        ("self if flag else other", 18, "'flag' is of the type bool, no operand"),
        ("exponential(x=self)", 10, "'exponential(x=self)' is no expression of an element"),
        ("'\"text\"'", 11, "'\"text\"' is no expression of an element"),
        ("n * 2", 10, "reads no tensor"),
    ],
)
def test_wrong_expressions(native: Path, problems: Problems, text: str, column: int, message: str) -> None:
    assert problems(block(text)) == [f"schema/ops/f.yaml:6:{column}: mul: block: {message}"]


def test_expressions_that_are_none(native: Path, problems: Problems) -> None:
    (found,) = problems(block("self +"))
    assert found.startswith("schema/ops/f.yaml:6:") and "mul: block: not an expression" in found
    (found,) = problems(block("[[self]]"))
    assert found.endswith("mul: 'block' must be expressions, or map them to {parameter: value}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{self * other: {flg: true}}", "unknown parameter 'flg'; did you mean 'flag'?"),
        ("{self * other: {other: 2}}", "'other' is an operand and cannot have a value"),
        ("-self", "'other' is no operand and has no default; say its value as {other: ...}"),
    ],
)
def test_wrong_conditions(native: Path, problems: Problems, text: str, message: str) -> None:
    found = problems(block(text))
    assert [line.partition("mul: ")[2] for line in found] == [f"block: {message}"]


@pytest.mark.parametrize(
    "fields",
    [
        {"func": SIGNATURE.replace("-> Tensor", "-> (Tensor, Tensor)")},
        {"func": SIGNATURE.replace("-> Tensor", "-> bool")},
        {"mutates": "self"},
    ],
)
def test_operators_that_have_no_loop(native: Path, problems: Problems, fields: dict[str, str]) -> None:
    found = [line for line in problems(block("self * other", **fields)) if "block" in line]
    assert [line.partition("mul: ")[2] for line in found] == [
        "a block is of an operator with a rule and one fresh tensor as its result"
    ]


@pytest.mark.parametrize(
    ("text", "expression", "kinds", "to_bool"),
    [
        ("self * other", "(a * b)", "TT", False),
        ("other - n * self", "(b - (c * a))", "TTS", False),
        ("self / 2 + -0.5", "((a / (T)2) + (-(T)0.5))", "T", False),
        ("self == infinity", "(a == (T)INFINITY) ? (T)1 : (T)0", "T", True),
        ("self and not other", "((a != 0) & (!(b != 0))) ? (T)1 : (T)0", "TT", True),
        ("sqrt(self) if self < 0 else n", "NAME(chosen)((a < (T)0), NAME(sqrt)(a), b)", "TS", False),
        ("larger(self, exponential(other))", "NAME(larger)(a, NAME(exponential)(b))", "TT", False),
    ],
)
def test_translation(native: Path, problems: Problems, text: str, expression: str, kinds: str, to_bool: bool) -> None:
    problems(block(f'{{"{text}": {{other: 1}}}}' if "other" not in text else f'"{text}"'))
    schema, found = read_schema(native)
    assert found == []
    loop = translate(schema.ops[0].block[0], schema.ops[0], schema.native_functions).loop
    assert (loop.expression, loop.kinds, loop.to_bool) == (expression, kinds, to_bool)


def test_operators_share_loops(native: Path, problems: Problems) -> None:
    more = block("[self * other, self * n: {other: 2}]").replace("mul(", "scale(")
    text = block("self * other") + more + block('["larger(self, other)": {n: 3}]').replace("mul(", "top(")
    assert problems(text) == []
    loops = Loops(read_schema(native)[0])
    assert list(loops.names.values()) == ["loop_mul", "loop_scale", "loop_top"]
    first, second, third = loops.records["mul"], loops.records["scale"], loops.records["top"]
    assert [(r.opcode, r.operands, r.conditions) for r in first] == [(0, (0, 1), ((2, "1"), (3, "False")))]
    assert [(r.opcode, r.operands, r.conditions) for r in second] == [
        (0, (0, 1), ((2, "1"), (3, "False"))),
        (1, (0, 2), ((1, "2"), (3, "False"))),
    ]
    assert third[0].conditions == ((2, "3"), (3, "False"))


def test_cheap_loops_of_two_take_numbers(native: Path, problems: Problems) -> None:
    assert problems(block("[self * other, exponential(self) * other, -self: {other: 0}]")) == []
    loops = Loops(read_schema(native)[0])
    assert [name for name, *_ in loops.functions_in_c] == [
        "loop_mul",
        "loop_mul_n1",
        "loop_mul_n2",
        "loop_mul_v2",
        "loop_mul_v3",
    ]
    assert loops.functions_in_c[1] == ("loop_mul_n1", "ARRAY(a, 0) NUMBER(b, 1)", "ELEMENT(a)", "(a * b)")


@pytest.mark.parametrize(
    ("text", "kernel", "exact"),
    [
        ("self * other", "numpy.multiply(self, other)", True),
        ("self * other", "pointwise.mul", False),
        ("self * 2: {other: 1}", "numpy.multiply(self, other)", False),
        ("self * other + self", "numpy.multiply(self, other)", False),
        ("sqrt(self): {other: 1}", "numpy.sqrt(self)", True),
        ("exponential(self): {other: 1}", "numpy.exp(self)", False),
    ],
)
def test_single_operations_are_left_to_ufuncs(
    native: Path, problems: Problems, text: str, kernel: str, exact: bool
) -> None:
    assert problems(block(f"[{text}]", kernels=f'{{cpu: "{kernel}"}}')) == []
    assert [r.exact for r in Loops(read_schema(native)[0]).records["mul"]] == [exact]


def test_another_table_has_another_version(native: Path, problems: Problems) -> None:
    versions = []
    for text in ("self * other", "self + other", "self * other"):
        assert problems(block(text)) == []
        versions.append(Loops(read_schema(native)[0]).version)
    assert versions[0] == versions[2] != versions[1]
