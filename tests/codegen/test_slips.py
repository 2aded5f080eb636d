"""Slips of authors that once passed, or whose cause came last: each is refused, by the first line that is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Problems

from codegen.__main__ import main
from codegen.schema import read_schema

RIGHT = {
    "func": "mul(Tensor self, Tensor other, int n=1) -> Tensor",
    "variants": "[function, method]",
    "meta": "elementwise(self, other)",
    "grad": "none",
    "kernels": "{cpu: reduction.three}",
}
ADD = {
    "func": "add(Tensor self, Tensor other, Scalar alpha=1) -> Tensor",
    "kernels": "{cpu: reduction.three, npu: 'aclnnAdd(self, other, alpha)'}",
}
SLIPS: dict[str, tuple[dict[str, str], str]] = {
    # What an entry without kernels is
    "no kernel": ({"kernels": ""}, "needs 'kernels' or a 'block'"),
    "no kernel, two numbers": (
        {"func": "zzop(Tensor self, Tensor other) -> Tensor", "kernels": "", "grad": "{self: grad}"},
        "rule 'elementwise', which costs something, makes none",
    ),
    "a view with kernels": ({"tags": "[view]"}, "is tagged 'view' but has kernels"),
    "a composite that is a view": (
        {"func": "flatten(Tensor self, int start, *, int end=-1) -> Tensor", "meta": "", "grad": "", "kernels": "", "composite": "shapes.flatten", "tags": "[view]"},
        "is tagged 'view' but has a composite",
    ),
    # Forms
    "inplace without method": ({"variants": "[function, inplace]"}, "'inplace' gives a method, so it needs 'method'"),
    "inplace alone": ({"variants": "[inplace]"}, "'inplace' gives a method, so it needs 'method'"),
    "unknown tag": ({"tags": "[pointwize]"}, "unknown tag 'pointwize'; did you mean 'pointwise'?"),
    "unknown variant": ({"variants": "[function, methods]"}, "unknown variant 'methods'; did you mean 'method'?"),
    "unknown Python operator": ({"operators": "[__mull__]"}, "unknown Python operator '__mull__'; did you mean '__mul__'?"),
    "out without out": ({"out": "[exact]"}, "there is no variant 'out'"),
    "field": ({"gard": "none"}, "unknown field 'gard'; did you mean 'grad'?"),
    "device": ({"kernels": "{cpv: reduction.three}"}, "unknown device 'cpv'; did you mean 'cpu'?"),
    "namespace": ({"namespace": "linlag"}, "unknown namespace 'linlag'; did you mean 'linalg'?"),
    "alias that is an operator": ({"aliases": "mul"}, "alias 'mul' is an operator of its own"),
    "alias that is no name": ({"aliases": "a-b"}, "alias 'a-b' is no name"),
    "mutates what is not there": ({"mutates": "slef"}, "unknown argument 'slef'; did you mean 'self'?"),
    "mutates a number": ({"mutates": "n"}, "'n' is an int, not a tensor"),
    # Rules
    "rule": ({"meta": "elementwize(self, other)"}, "unknown meta rule 'elementwize'; did you mean 'elementwise'?"),
    "rule without its mark": ({"meta": "not_marked(self)"}, "the function in _rules/shapes.py lacks @rule"),
    "rule's argument": ({"meta": "elementwise(self, othr)"}, "unknown argument 'othr'; did you mean 'other'?"),
    "rule's parameter": ({"meta": "elementwise(self, other, flaot=True)"}, "has no parameter 'flaot'; did you mean 'float'?"),
    "rule with too little": ({"meta": "reduction(self, n)"}, "rule 'reduction' needs 'keepdim'"),
    "rule with too much": ({"meta": "reduction(self, n, n, n, n, n)"}, "takes at most 5 positional arguments, 6 given"),
    "rule twice": ({"meta": "reduction(self, n, n, dim=n)"}, "rule 'reduction' gets 'dim' twice"),
    # Derivatives
    "result misspelt": ({"grad": "{self: grad * reslt}"}, "unknown name 'reslt'; did you mean 'result'?"),
    "argument misspelt": ({"grad": "{self: grad * othr}"}, "unknown name 'othr'; did you mean 'other'?"),
    "gradient misspelt": ({"grad": "{self: gard * 2}"}, "unknown name 'gard'; did you mean 'grad'?"),
    "an operator for an argument": ({"grad": "{self: grad * mul}"}, "'mul' is a function, and is not called"),
    "formula misspelt": ({"grad": "{self: 'sum_backwards(grad, n, n, n)'}"}, "unknown name 'sum_backwards'; did you mean 'sum_backward'?"),
    "formula that is not exported": ({"grad": "{self: hidden_backward(grad)}"}, "add it to '__all__' in src/mindtorch_v2/_autograd/formulas/more.py"),
    "input misspelt": ({"grad": "{slef: grad}"}, "unknown input 'slef'; did you mean 'self'?"),
    "input that has no gradient": ({"grad": "{n: grad}"}, "input 'n' is an int, not differentiable"),
    "a second result": ({"grad": "{self: grad * result2}"}, "'result2' is none of the 1 results"),
    "formula that is none": ({"grad": "{self: 'grad *'}"}, "not an expression"),
    "no grad": ({"grad": ""}, "needs 'grad'"),
    # Kernels
    "kernel": ({"kernels": "{cpu: reduction.tree}"}, "unknown kernel 'reduction.tree'; did you mean 'reduction.three'?"),
    "kernel's module": ({"kernels": "{cpu: reductoin.three}"}, "unknown kernel module 'reductoin'; did you mean 'reduction'?"),
    "kernel of other arguments": ({"kernels": "{cpu: reduction.two}"}, "takes 2 arguments, the operator has 3"),
    "numpy's name": ({"kernels": "{cpu: 'numpy.multipy(self, other)'}"}, "unknown kernel 'numpy.multipy'; did you mean 'numpy.multiply'?"),
    "composite with kernels": ({"composite": "shapes.flatten"}, "composite 'shapes.flatten' takes 2 arguments, the operator has 3"),
    "missing with kernels": ({"missing": "because"}, "is 'missing' but has 'kernels'"),
    "fast": ({"fast": "reduction.fast_sun"}, "unknown fast path 'reduction.fast_sun'; did you mean 'reduction.fast_sum'?"),
    "fast block": ({"fast": "block"}, "'fast: block' needs a block"),
    "block's function": ({"kernels": "", "block": "exq(self)"}, "exq"),
    "sparse layout": ({"sparse": "{cooo: products.mul}"}, "unknown layout 'cooo'; did you mean 'coo'?"),
    "sparse kernel": ({"sparse": "{coo: products.mull}"}, "unknown kernel 'products.mull'; did you mean 'products.mul'?"),
    "vmap": ({"vmap": "prodct(self, other)"}, "unknown function 'prodct'; did you mean 'product'?"),
    "sample": ({"sample": "{self: positiv}"}, "unknown hint 'positiv' for 'self'; did you mean 'positive'?"),
    "sample's argument": ({"sample": "{slf: positive}"}, "unknown argument 'slf'; did you mean 'self'?"),
    # aclnn
    "aclnn function": ({**ADD, "kernels": "{cpu: reduction.three, npu: 'aclnnAd(self, other, alpha)'}"}, "unknown aclnn function 'aclnnAd'; did you mean 'aclnnAdd'?"),
    "aclnn: a number for a tensor": (
        {**ADD, "kernels": "{cpu: reduction.three, npu: 'aclnnAdd(self, 1.0, other)'}"},
        "1.0 is a float, the C parameter 'other' a const aclTensor*",
    ),
    "aclnn: a text for a number": (
        {**ADD, "kernels": "{cpu: reduction.three, npu: \"aclnnAdd(self, other, 'x')\"}"},
        "'x' is a str, the C parameter 'alpha' a const aclScalar*; did you mean 'alpha'?",
    ),
    "aclnn: too few": ({**ADD, "kernels": "{cpu: reduction.three, npu: 'aclnnAdd(self, other)'}"}, "takes 3 arguments (self, other, alpha), 2 given"),
    "aclnn: by name": ({**ADD, "kernels": "{cpu: reduction.three, npu: 'aclnnAdd(self, other, alpha=alpha)'}"}, "by position"),
    "aclnn: argument": ({**ADD, "kernels": "{cpu: reduction.three, npu: 'aclnnAdd(self, other, alpa)'}"}, "unknown argument 'alpa'; did you mean 'alpha'?"),
    "aclnn: an int for a tensor": ({**ADD, "func": "add(Tensor self, int other, Scalar alpha=1) -> Tensor", "meta": "elementwise(self)", "kernels": "{cpu: reduction.three, npu: 'aclnnAdd(self, other, alpha)'}"}, "'other' is an int, the C parameter 'other'"),
    # Signatures
    "type": ({"func": "mul(Tenser self, Tensor other, int n=1) -> Tensor"}, "unknown type 'Tenser'; did you mean 'Tensor'?"),
    "no result": ({"func": "mul(Tensor self, Tensor other, int n=1)"}, "bad signature"),
    "writes self": ({"func": "mul(Tensor(a!) self, Tensor other, int n=1) -> Tensor(a!)"}, "its name must be 'mul_'"),
    "a word of Python": ({"func": "None(Tensor self, Tensor other, int n=1) -> Tensor"}, "'None' is a word of Python"),
    "method of nothing": ({"func": "mul(Tensor a, Tensor other, int n=1) -> Tensor", "meta": "elementwise(a, other)"}, "a method needs an argument 'self'"),
}  # fmt: skip


def entry(fields: dict[str, str]) -> str:
    return "- " + "\n  ".join(f"{name}: {text}" for name, text in (RIGHT | fields).items() if text) + "\n"


@pytest.fixture(autouse=True)
def formulas(tree: Path) -> None:
    """A package of formulas, one module of which has a function that it does not export."""
    folder = tree / "src/mindtorch_v2/_autograd/formulas"
    (folder.with_suffix(".py")).unlink()
    folder.mkdir()
    (folder / "__init__.py").write_text("from .more import *\n")
    (folder / "more.py").write_text(
        '__all__ = ["sum_backward"]\ndef sum_backward(grad, shape, dim, keepdim): ...\ndef hidden_backward(grad): ...\n'
    )


def test_there_are_enough() -> None:
    assert len(SLIPS) >= 47


@pytest.mark.parametrize("name", SLIPS)
def test_the_first_line_says_what_it_is(problems: Problems, name: str) -> None:
    fields, sentence = SLIPS[name]
    found = problems(entry(fields))
    assert found and sentence in found[0], found
    assert found[0].startswith("schema/ops/f.yaml:")


def test_an_entry_without_slips(problems: Problems) -> None:
    assert problems(entry({})) == []
    assert problems(entry(ADD)) == []


def test_a_second_owner_of_an_operator(problems: Problems) -> None:
    text = entry({"operators": "[__mul__]"}) + entry(
        {"func": "times(Tensor self, Tensor other, int n=1) -> Tensor", "operators": "[__mul__]"}
    )
    assert problems(text) == [
        "schema/ops/f.yaml:12:15: times: '__mul__' is the operator of mul already, at schema/ops/f.yaml:6:14"
    ]


def test_one_slip_of_yaml_is_one_line(problems: Problems) -> None:
    used = entry({}) + "".join(
        entry(
            {"func": f"f{n}(Tensor self, Tensor other, int n=1) -> Tensor", "grad": "{self: 'lost(mul(grad, other))'}"}
        )
        for n in range(20)
    )
    found = problems(used, g=entry({"func": "lost(Tensor self) -> Tensor", "meta": "[elementwise(self"}))
    assert len(found) == 1 and found[0].startswith("schema/ops/g.yaml:"), found


def test_a_name_that_is_exported_but_not_there(tree: Path, problems: Problems) -> None:
    more = tree / "src/mindtorch_v2/_autograd/formulas/more.py"
    more.write_text(more.read_text().replace('"sum_backward"', '"sum_backwrd", "sum_backward"'))
    assert problems(entry({})) == [
        "src/mindtorch_v2/_autograd/formulas/more.py:1:12: '__all__' names 'sum_backwrd', which is not here; did you mean 'sum_backward'?"
    ]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("list", ["mul", "schema/ops/f.yaml"]),
        ("rules", ["elementwise(*operands", "Broadcasts."]),
        ("functions", ["sum_backward(grad, shape, dim, keepdim)", "formulas", "composites"]),
    ],
)
def test_commands_that_list(
    problems: Problems, tree: Path, capsys: pytest.CaptureFixture[str], command: str, words: list[str]
) -> None:
    problems(entry({}))
    assert main([command, "--root", str(tree)]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in words), printed


def test_lists_may_be_narrowed(problems: Problems, tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problems(entry({}) + entry({"func": "other(Tensor self, Tensor other, int n=1) -> Tensor"}))
    assert main(["list", "oth", "--root", str(tree)]) == 0
    assert [line.split("(")[0] for line in capsys.readouterr().out.splitlines()] == ["other"]


FUNC = "- func: f(Tensor self) -> Tensor\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (FUNC + "  tags: &t [*t]\n", "2:9: anchors and aliases are not read; write the value where it belongs"),
        (FUNC + "  tags: !!timestamp x\n", "2:9: YAML's tag 'tag:yaml.org,2002:timestamp' is not read"),
        (FUNC + "  tags: " + "[" * 5000 + "]" * 5000 + "\n", "2:19: lists and mappings are in each other more than 12 deep"),
        (FUNC + "---\n" + FUNC, "2:1: a second document; a file has one"),
    ],
)  # fmt: skip
def test_what_yaml_has_and_a_schema_has_not(problems: Problems, text: str, line: str) -> None:
    assert problems(text) == [f"schema/ops/f.yaml:{line}"]


def test_bytes_that_are_no_text(tree: Path) -> None:
    (tree / "schema/ops/f.yaml").write_bytes(b"- func: a\n  me\xffta: b\n")
    assert [str(problem) for problem in read_schema(tree)[1]] == ["schema/ops/f.yaml:2:5: not UTF-8 text: invalid start byte"]  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("(yield)", "'yield' has no place here"),
        ("(x := grad)", "'x := grad' has no place here"),
        ("grad" + " + grad" * 200, "it is more than 100 deep"),
        ("-" * 3000 + "grad", "it is too deep"),
        ("(" * 300 + "grad" + ")" * 300, "too many nested parentheses"),
    ],
)
def test_formulas_that_are_none(problems: Problems, formula: str, sentence: str) -> None:
    found = problems(entry({"grad": f"{{self: '{formula}'}}"}))
    assert sentence in found[0] and len(found[0]) < 600, found
