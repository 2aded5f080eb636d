"""Every mistake that an entry may have, with the exact line that an author sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Problems

from codegen.__main__ import main
from codegen.checks import OP_CHECKS, SCHEMA_CHECKS

GOOD = """\
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  variants: [function, method, inplace, out]
  operators: [__add__, __radd__]
  aliases: plus
  meta: elementwise(self, other)
  grad: {self: grad, other: grad * alpha}
  kernels:
    cpu: numpy.add(self, other)
    npu: aclnnAdd(self, other, alpha)
  fast: ufunc
  tags: [pointwise]
  sample: {self: positive, alpha: 2}
- func: sum.dim(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
  variants: [function, method]
  meta: reduction(self, dim, keepdim, dtype=dtype)
  grad:
    self: sum_backward(grad, self.shape, dim, keepdim)
  kernels: {cpu: reduction.sum}
  fast: reduction.fast_sum
- func: transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
  variants: [method]
  meta: transpose(self, dim0, dim1)
  grad: {self: "transpose(grad, dim0, dim1)"}
- func: flatten(Tensor self, int start, *, int end=-1) -> Tensor
  composite: shapes.flatten
- func: inverse(Tensor self) -> Tensor
  missing: needs a factorisation
"""


def entry(**fields: str) -> str:
    """An entry that is right but for the given fields; a field that is empty is left out."""
    lines = {
        "func": "mul(Tensor self, Tensor other, int n=1) -> Tensor",
        "variants": "[function, method]",
        "meta": "elementwise(self, other)",
        "grad": "none",
        "kernels": "{cpu: reduction.three}",
    } | fields
    return "- " + "\n  ".join(f"{name}: {text}" for name, text in lines.items() if text) + "\n"


def test_a_schema_without_mistakes(problems: Problems) -> None:
    assert problems(GOOD) == []


CASES = {
    "unknown field": (entry(gard="none"), "6:3: mul: unknown field 'gard'; did you mean 'grad'?"),
    "missing func": ("- grad: none\n", "1:3: an entry must have a 'func'"),
    "func is a list": ("- func: [a]\n", "1:9: 'func' must be a signature"),
    "bad signature": (
        entry(func="mul(Tensor self, Tensr other) -> Tensor"),
        "1:26: mul: bad signature: unknown type 'Tensr'; did you mean 'Tensor'?",
    ),
    "entry is a text": ("- add\n", "1:3: an entry must be a mapping that starts with 'func'"),
    "file is a mapping": ("func: f() -> ()\n", "1:1: a schema file must be a list of entries"),
    "duplicate key": (entry() + "  grad: none\n", "6:3: duplicate key 'grad'; the first is on line 4"),
    "name twice": (entry(variants="[method, method]"), "2:22: mul: 'method' stands twice in 'variants'"),
    "list of lists": (entry(tags="[[a]]"), "6:10: mul: 'tags' must be a list of names"),
    "text field is a list": (entry(fast="[a]"), "6:9: mul: 'fast' must be a text"),
    # Forms and names
    "unknown variant": (
        entry(variants="[function, methd]"),
        "2:24: mul: unknown variant 'methd'; did you mean 'method'?",
    ),
    "method without self": (
        entry(func="mul(Tensor a, Tensor b, int n=1) -> Tensor", meta="elementwise(a, b)"),
        "2:24: mul: a method needs an argument 'self'",
    ),
    "inplace of in-place": (
        entry(func="mul_(Tensor(a!) self, Tensor other, int n=1) -> Tensor(a!)", variants="[method, inplace]"),
        "2:22: mul_: the signature is in-place already; drop the variant 'inplace'",
    ),
    "out of in-place": (
        entry(func="mul_(Tensor(a!) self, Tensor other, int n=1) -> Tensor(a!)", variants="[method, out]"),
        "2:22: mul_: an in-place operator has no 'out' form",
    ),
    "out twice": (
        entry(
            func="mul(Tensor self, Tensor other, *, Tensor? out=None) -> Tensor",
            variants="[out]",
            kernels="{cpu: reduction.three}",
        ),
        "2:14: mul: the signature has an argument 'out' already; drop the variant 'out'",
    ),
    "inplace without tensor self": (
        entry(func="mul(Tensor other, int self) -> Tensor", variants="[inplace]", kernels="{cpu: reduction.two}"),
        "2:14: mul: an in-place form needs a tensor 'self'",
    ),
    "in-place without underscore": (
        entry(func="mul(Tensor(a!) self, Tensor other, int n=1) -> Tensor(a!)"),
        "1:9: mul: writes its 'self', so its name must be 'mul_'",
    ),
    "operator name": (
        entry(operators="[__mul__, mul]"),
        "6:24: mul: unknown Python operator 'mul'; did you mean '__mul__'?",
    ),
    "operator that Python has not": (
        entry(operators="[__frob__]"),
        "6:15: mul: unknown Python operator '__frob__'; did you mean '__ror__'?",
    ),
    "unknown tag": (
        entry(tags="[numbers, pointwse]"),
        "6:19: mul: unknown tag 'pointwse'; did you mean 'pointwise'?",
    ),
    "computed again of what is not saved": (
        entry(grad="{self: grad * other, other: grad * self}", tags="[recomputed]"),
        "6:10: mul: recomputed: no derivative reads 'n', so no node saves it",
    ),
    "unknown word of out": (
        entry(variants="[function, out]", out="exct"),
        "6:8: mul: unknown word of 'out' 'exct'; did you mean 'exact'?",
    ),
    "out of nothing": (
        entry(out="exact"),
        "6:8: mul: says how a buffer is treated, but there is no variant 'out'",
    ),
    "alias": (entry(aliases="[a-b]"), "6:13: mul: alias 'a-b' is no name"),
    "alias of an operator": (entry(aliases="[mul]"), "6:13: mul: alias 'mul' is an operator of its own"),
    "namespace": (entry(namespace="linalgs"), "6:14: mul: unknown namespace 'linalgs'; did you mean 'linalg'?"),
    "mutates": (entry(mutates="slef"), "6:12: mul: mutates: unknown argument 'slef'; did you mean 'self'?"),
    "mutates a number": (entry(mutates="[self, n]"), "6:19: mul: mutates: 'n' is an int, not a tensor"),
    # Completeness
    "kernels and composite": (
        entry(
            meta="",
            composite="shapes.flatten",
            func="mul(Tensor self, int s, *, int end) -> Tensor",
            kernels="{cpu: reduction.three}",
        ),
        "5:14: mul: has both 'kernels' and 'composite'",
    ),
    "meta and composite": (
        entry(kernels="", composite="shapes.flatten", func="mul(Tensor self, Tensor other, *, int end) -> Tensor"),
        "5:14: mul: has both 'meta' and 'composite'",
    ),
    "nothing": (
        entry(meta="", grad="", kernels=""),
        "1:9: mul: needs 'meta' and 'kernels', or 'composite', or 'missing' with a reason",
    ),
    "kernels without meta": (
        entry(meta="", kernels="{cpu: reduction.three}"),
        "4:12: mul: has kernels but no 'meta' rule",
    ),
    "no grad": (entry(grad=""), "3:9: mul: needs 'grad': a formula for each differentiable input, or 'none'"),
    "missing with kernels": (entry(missing="later"), "6:12: mul: is 'missing' but has 'kernels'"),
    # Rules
    "unknown rule": (
        entry(meta="elementwse(self)"),
        "3:9: mul: unknown meta rule 'elementwse'; did you mean 'elementwise'?",
    ),
    "private rule": (
        entry(meta="_helper()"),
        "3:9: mul: unknown meta rule '_helper'; the function in _rules/pointwise.py lacks @rule",
    ),
    "rule without a mark": (
        entry(meta="not_marked(self, n)"),
        "3:9: mul: unknown meta rule 'not_marked'; the function in _rules/shapes.py lacks @rule",
    ),
    "no call": (entry(meta="elementwise"), "3:9: mul: meta: expected a call like 'name(self)', found 'elementwise'"),
    "no expression": (entry(meta="elementwise(self"), "3:20: mul: meta: not an expression: '(' was never closed"),
    "star": (entry(meta='"elementwise(*self, n)"'), "3:22: mul: meta: '*' is not allowed in the arguments"),
    "too many arguments": (
        entry(meta="transpose(self, n, n, n)", kernels=""),
        "3:31: mul: rule 'transpose' takes at most 3 positional arguments, 4 given",
    ),
    "too few arguments": (entry(meta="transpose(self, n)", kernels=""), "3:9: mul: rule 'transpose' needs 'dim1'"),
    "unknown keyword": (
        entry(meta="elementwise(self, other, dtype=n)"),
        "3:40: mul: rule 'elementwise' has no parameter 'dtype'; did you mean 'dtypes'?",
    ),
    "argument twice": (
        entry(meta="transpose(self, n, n, dim1=n)", kernels=""),
        "3:36: mul: rule 'transpose' gets 'dim1' twice",
    ),
    "unknown argument": (
        entry(meta="elementwise(self, othr)"),
        "3:27: mul: meta: unknown argument 'othr'; did you mean 'other'?",
    ),
    # Kernels
    "unknown device": (entry(kernels="{gpu: numpy.multiply}"), "5:13: mul: unknown device 'gpu'; did you mean 'npu'?"),
    "unknown reason of a fallback": (
        entry(fallback="no_ft"),
        "6:13: mul: unknown reason 'no_ft'; did you mean 'no_fft'?",
    ),
    "fallback beside a kernel": (
        entry(fallback="no_fft", kernels='{cpu: reduction.three, npu: "aclnnAdd(self, other, n)"}'),
        "6:13: mul: has both 'fallback' and a kernel 'npu'",
    ),
    "fallback on nothing": (
        entry(fallback="no_fft", kernels='{npu: "aclnnAdd(self, other, n)"}'),
        "6:13: mul: has a 'fallback' but no kernel 'cpu' to fall back on",
    ),
    "kernels is a text": (entry(kernels="numpy.multiply"), "5:12: mul: 'kernels' must map devices to functions"),
    "unknown ufunc": (
        entry(kernels="{cpu: numpy.multply}"),
        "5:18: mul: unknown kernel 'numpy.multply'; did you mean 'numpy.multiply'?",
    ),
    "ufunc of one operand": (
        entry(kernels="{cpu: numpy.sin}"),
        "5:18: mul: kernel 'numpy.sin' takes 1 argument, the operator has 3",
    ),
    "unknown kernel": (
        entry(kernels="{cpu: reduction.sm}"),
        "5:18: mul: unknown kernel 'reduction.sm'; did you mean 'reduction.sum'?",
    ),
    "unknown kernel module": (
        entry(kernels="{cpu: reductions.sum}"),
        "5:18: mul: unknown kernel module 'reductions'; did you mean 'reduction'?",
    ),
    "kernel without module": (
        entry(kernels="{cpu: sum}"),
        "5:18: mul: kernel 'sum' must be given as 'module.function'",
    ),
    "kernel is no name": (entry(kernels="{cpu: a-b}"), "5:18: mul: 'a-b' is no function name"),
    "kernel of four parameters": (
        entry(kernels="{cpu: reduction.sum}"),
        "5:18: mul: kernel 'reduction.sum' takes 4 arguments, the operator has 3",
    ),
    "kernel of an assignment": (
        entry(kernels="{cpu: reduction.mean}"),
        "5:18: mul: kernel 'reduction.mean' takes 4 arguments, the operator has 3",
    ),
    "kernel call": (
        entry(kernels='{cpu: "reduction.two(self)"}'),
        "5:18: mul: kernel 'reduction.two' needs 'dim'",
    ),
    "unknown aclnn": (
        entry(kernels='{npu: "aclnnAd(self, other, n)"}'),
        "5:18: mul: unknown aclnn function 'aclnnAd'; did you mean 'aclnnAdd'?",
    ),
    "aclnn arguments": (
        entry(kernels='{npu: "aclnnMatmul(self, other)"}'),
        "5:18: mul: 'aclnnMatmul' takes 3 arguments (self, mat2, cubeMathType), 2 given",
    ),
    "aclnn without arguments": (
        entry(kernels="{npu: aclnnAdd}"),
        "5:18: mul: 'aclnnAdd' needs its arguments, in the order of schema/aclnn.yaml",
    ),
    "aclnn with keywords": (
        entry(kernels='{npu: "aclnnAdd(self, other, alpha=n)"}'),
        "5:47: mul: aclnn functions take their arguments by position",
    ),
    "aclnn argument of another type": (
        entry(kernels='{npu: "aclnnAdd(self, n, n)"}'),
        "5:34: mul: 'n' is an int, the C parameter 'other' a const aclTensor*",
    ),
    "aclnn with too few results": (
        entry(
            func="mul(Tensor self, Tensor other, int n=1) -> (Tensor, Tensor)",
            kernels='{npu: "aclnnAdd(self, other, n)"}',
        ),
        "5:18: mul: 'aclnnAdd' gives 1 results, the operator has 2",
    ),
    "npu function that is not there": (
        entry(kernels="{npu: shapes.three}"),
        "5:18: mul: unknown kernel module 'shapes'",
    ),
    "aclnn of an unknown name": (
        entry(kernels='{npu: "aclnnAdd(self, other, alpha)"}'),
        "5:41: mul: kernels.npu: unknown argument 'alpha'",
    ),
    # Sparse tensors
    "unknown layout": (entry(sparse="{co: products.mul}"), "6:12: mul: unknown layout 'co'; did you mean 'coo'?"),
    "sparse is a text": (
        entry(sparse="products.mul"),
        "6:11: mul: 'sparse' must map layouts to functions, or be 'values'",
    ),
    "unknown sparse kernel": (
        entry(sparse="{coo: products.mull}"),
        "6:17: mul: unknown kernel 'products.mull'; did you mean 'products.mul'?",
    ),
    "sparse kernel of other arguments": (
        entry(sparse="{coo: values, csr: products.mm}"),
        "6:30: mul: kernel 'products.mm' takes 2 arguments, the operator has 3",
    ),
    "sparse kernel is a call": (
        entry(sparse="{coo: 'products.mul(self)'}"),
        "6:17: mul: sparse.coo must be 'module.function', or 'values'",
    ),
    "sparse kernels alone without derivative": (
        entry(meta="", kernels="", grad="", sparse="{coo: products.mul}"),
        "3:11: mul: needs 'grad': a formula for each differentiable input, or 'none'",
    ),
    "unknown composite": (
        entry(meta="", kernels="", composite="shapes.flaten"),
        "4:14: mul: unknown composite 'shapes.flaten'; did you mean 'shapes.flatten'?",
    ),
    "unknown composite module": (
        entry(meta="", kernels="", composite="shape.flatten"),
        "4:14: mul: unknown composite module 'shape'; did you mean 'shapes'?",
    ),
    "composite of other arguments": (
        entry(func="mul(Tensor self, *, int end) -> Tensor", meta="", kernels="", composite="shapes.flatten"),
        "4:14: mul: composite 'shapes.flatten' takes 2 arguments, the operator has 1",
    ),
    "unknown fast path": (
        entry(fast="reduction.fast_sun"),
        "6:9: mul: unknown fast path 'reduction.fast_sun'; did you mean 'reduction.fast_sum'?",
    ),
    "fast ufunc without ufunc": (
        entry(
            func="mul(Tensor self, int n) -> Tensor",
            meta="elementwise(self, n)",
            kernels="{cpu: reduction.two}",
            fast="ufunc",
        ),
        "6:9: mul: 'fast: ufunc' needs a numpy ufunc as the cpu kernel",
    ),
    "unknown function of batches": (
        entry(vmap="prodct(self, other)"),
        "6:9: mul: vmap: unknown function 'prodct'; did you mean 'product'?",
    ),
    "a function of batches with too many arguments": (
        entry(vmap="product(self, other, n)"),
        "6:30: mul: 'product' takes at most 2 positional arguments, 3 given",
    ),
    "a function of batches of what is no argument": (
        entry(vmap="product(self, othr)"),
        "6:23: mul: vmap: unknown argument 'othr'; did you mean 'other'?",
    ),
    "unknown fast ufunc": (
        entry(fast="numpy.multply"),
        "6:9: mul: unknown fast path 'numpy.multply'; did you mean 'numpy.multiply'?",
    ),
    "fast path that is no ufunc": (entry(fast="numpy.where"), "6:9: mul: 'numpy.where' is no ufunc"),
    "fast ufunc of another rule": (
        entry(func="mul(Tensor self, int n, bool k) -> Tensor", meta="reduction(self, n, k)", fast="numpy.multiply"),
        "6:9: mul: a ufunc as the fast path needs a rule that says 'inline'; 'reduction' does not",
    ),
    # Derivatives
    "grad is a list": (entry(grad="[self]"), "4:9: mul: 'grad' must map inputs to formulas, or be 'none'"),
    "grad is a word": (entry(grad="maybe"), "4:9: mul: 'grad' must map inputs to formulas, or be 'none'"),
    "formula is a list": (
        entry(grad="{self: [grad]}"),
        "4:16: mul: grad of 'self' must be a formula; quote it when it has brackets",
    ),
    "unknown input": (entry(grad="{slef: grad}"), "4:10: mul: grad: unknown input 'slef'; did you mean 'self'?"),
    "unknown second input": (
        entry(grad='{"self, othr": "(grad, grad)"}'),
        "4:17: mul: grad: unknown input 'othr'; did you mean 'other'?",
    ),
    "input twice": (
        entry(grad='{self: grad, "self, other": "(grad, grad)"}'),
        "4:23: mul: grad: input 'self' has two formulas",
    ),
    "number as input": (
        entry(grad="{self: grad, n: grad}"),
        "4:22: mul: grad: input 'n' is an int, not differentiable",
    ),
    "unknown name": (
        entry(grad="{self: grad * othr.shape}"),
        "4:23: mul: grad of 'self': unknown name 'othr'; did you mean 'other'?",
    ),
    "unknown function": (
        entry(grad='{self: "sum_backwards(grad, n)"}'),
        "4:17: mul: grad of 'self': unknown name 'sum_backwards'; did you mean 'sum_backward'?",
    ),
    "bad formula": (entry(grad="{self: grad ) n}"), "4:21: mul: grad of 'self': not an expression: unmatched ')'"),
    "result number": (
        entry(grad="{self: grad * result1}"),
        "4:23: mul: grad of 'self': 'result1' is none of the 1 results",
    ),
    "number of gradients": (
        entry(grad='{"self, other": "(grad, grad, grad)"}'),
        "4:25: mul: grad of 'self, other': 3 gradients for 2 inputs",
    ),
    # Samples
    "sample is a list": (entry(sample="[self]"), "6:11: mul: 'sample' must map arguments to hints"),
    "sample of an unknown argument": (
        entry(sample="{slef: positive}"),
        "6:12: mul: sample: unknown argument 'slef'; did you mean 'self'?",
    ),
    "unknown hint": (
        entry(sample="{self: positiv}"),
        "6:12: mul: sample: unknown hint 'positiv' for 'self'; did you mean 'positive'?",
    ),
    "two entries of one name": (
        entry() + entry(),
        "6:9: mul: duplicate overload; the first is at schema/ops/f.yaml:1:9",
    ),
    "two namespaces": (
        entry(namespace="nn") + entry(func="mul.n(Tensor self, Tensor other, int n=1) -> Tensor", namespace="fft"),
        "12:14: mul.n: namespace 'fft' differs from 'nn' of mul",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_line_of_a_mistake(problems: Problems, name: str) -> None:
    text, line = CASES[name]
    expected = [line] if isinstance(line, str) else line
    assert problems(text) == [f"schema/ops/f.yaml:{one}" for one in expected]


def test_a_duplicate_overload_in_another_file(problems: Problems) -> None:
    assert problems(entry(), g=entry()) == [
        "schema/ops/g.yaml:1:9: mul: duplicate overload; the first is at schema/ops/f.yaml:1:9"
    ]


def test_a_position_in_a_folded_formula(problems: Problems) -> None:
    text = entry(grad="\n    self:\n      grad\n      * othr")
    assert problems(text) == [
        "schema/ops/f.yaml:7:9: mul: grad of 'self': unknown name 'othr'; did you mean 'other'?",
    ]


def test_names_bound_inside_a_formula_are_known(problems: Problems) -> None:
    assert problems(entry(grad='{self: "sum_backward(*[g * n for g in grads], *map(lambda x: x, needs))"}')) == []


def test_a_result_may_be_passed_to_aclnn(problems: Problems) -> None:
    assert problems(entry(kernels='{npu: "aclnnAdd(self, other, out[0].ndim)"}')) == []


def test_where_one_entry_says_why_it_has_no_kernel_all_do(problems: Problems) -> None:
    silent = entry(func="sub(Tensor self, Tensor other, int n=1) -> Tensor")
    assert problems(silent) == []
    assert problems(entry(fallback="no_fft") + silent) == [
        "schema/ops/f.yaml:7:9: sub: has a kernel 'cpu', and needs one 'npu', or a 'fallback' that says why not"
    ]


def test_an_aclnn_parameter_of_an_unknown_direction(problems: Problems, tree: Path) -> None:
    (tree / "schema/aclnn.yaml").write_text("aclnnA: [[int64_t, n, inn]]\naclnnB: [[bool, b]]\n")
    assert problems("") == [
        "schema/aclnn.yaml:1:10: aclnnA: unknown direction 'inn'; did you mean 'in'?",
        "schema/aclnn.yaml:2:10: aclnnB: a parameter is [C type, name, in | out | inout]",
    ]


def test_a_runtime_file_that_is_no_python(problems: Problems, tree: Path) -> None:
    (tree / "src/mindtorch_v2/_autograd/formulas.py").write_text("def f(:\n")
    assert problems("") == ["src/mindtorch_v2/_autograd/formulas.py:1:7: not valid Python: invalid syntax"]


def test_all_mistakes_of_a_run_are_printed_and_the_status_is_one(
    problems: Problems, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problems(entry(meta="elementwse(self, other)", namespace="toch"), g="- add\n")
    assert main(["check", "--root", str(tree)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "schema/ops/g.yaml:1:3: an entry must be a mapping that starts with 'func'",  # what cannot be read comes first
        "schema/ops/f.yaml:3:9: mul: unknown meta rule 'elementwse'; did you mean 'elementwise'?",
        "schema/ops/f.yaml:6:14: mul: unknown namespace 'toch'; did you mean 'torch'?",
        "3 problems in the schema; nothing was written",
    ]


def test_every_check_is_registered() -> None:
    import codegen.checks
    import codegen.kernel_checks

    named = {
        name for module in (codegen.checks, codegen.kernel_checks) for name in vars(module) if name[:6] == "check_"
    }
    assert named == {rule.__name__ for rule in (*OP_CHECKS, *SCHEMA_CHECKS)}
