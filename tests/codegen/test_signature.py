"""The signature grammar, against lines of PyTorch's own list and against lines that are wrong."""

from __future__ import annotations

import pytest

from codegen.model import Alias, Type
from codegen.signature import SignatureError, parse_signature

LINES = [
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    "_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "stft(Tensor self, int n_fft, int? hop_length=None, Tensor? window=None, bool? onesided=None) -> Tensor",
    "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int? divisor_override=None) -> Tensor",
    "flip_dims(Tensor self, int[2] dims=[0,1]) -> Tensor",
    "fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
    "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    "clone(Tensor self, *, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "max.dim_max(Tensor self, int dim, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
    "norm.name(Tensor self, str p='fro', float eps=1e-05, Scalar a=-1.5, str b=\"L\") -> Tensor",
    "quoted(str a='\"\\'\\\\', str b=\"\\\"'\\\\\") -> str",
    "randint_like(ScalarType dtype=long) -> Tensor",
    "grid(Tensor theta) -> Tensor grid",
    "rnn.input(Tensor[] params, float[]? scale) -> (Tensor, Tensor, Tensor, Tensor[])",
    "empty() -> ()",
    "__and__.Tensor(Tensor self, Tensor other) -> Tensor",
]


@pytest.mark.parametrize("line", LINES)
def test_a_signature_prints_as_it_was_read(line: str) -> None:
    assert str(parse_signature(line)) == line


def test_parts_of_a_signature() -> None:
    signature = parse_signature("a.b(Tensor(a!) self, int[2]? dim, *, Tensor?[] rest=None) -> (Tensor(a!) x, int[] y)")
    assert (signature.name, signature.overload, signature.full_name) == ("a", "b", "a.b")
    self, dim, rest = signature.arguments
    assert self.alias == Alias("a", write=True)
    assert (self.is_written, self.is_tensor, self.has_default, self.kwarg_only) == (True, True, False, False)
    assert dim.type == Type("int", optional=True, list=True, size=2)
    assert rest.type == Type("Tensor", list=True, element_optional=True)
    assert (rest.is_tensor, rest.is_tensor_like, rest.default, rest.kwarg_only) == (False, True, "None", True)
    assert signature.return_names == ("x", "y")


def test_an_argument_that_is_a_python_keyword() -> None:
    signature = parse_signature("random_.from(Tensor(a!) self, int from, int? to) -> Tensor(a!)")
    assert signature.arguments[1].python_name == "from_"
    assert signature.argument("from_") is signature.arguments[1]


def test_symbolic_defaults_in_python() -> None:
    signature = parse_signature(
        "f(int r=Mean, ScalarType d=long, int[2] s=[0,1], MemoryFormat m=contiguous_format) -> Tensor"
    )
    assert [a.python_default for a in signature.arguments] == ["1", "int64", "[0,1]", "contiguous_format"]


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("", 0, "expected an operator name, found the end"),
        ("add", 3, "expected '(' before the arguments, found the end"),
        ("add.(Tensor self) -> Tensor", 4, "expected an overload name after '.', found '('"),
        ("add(Tensr self) -> Tensor", 4, "unknown type 'Tensr'; did you mean 'Tensor'?"),
        ("add(Tensor) -> Tensor", 10, "expected an argument name, found ')'"),
        ("add(Tensor self Tensor other) -> Tensor", 16, "expected ',' or ')' after an argument, found 'Tensor'"),
        ("add(Tensor self, Tensor self) -> Tensor", 17, "duplicate argument 'self'"),
        ("add(Tensor self, *) -> Tensor", 17, "'*' must be followed by an argument"),
        ("add(*, int a, *, int b) -> Tensor", 14, "a second '*' among the arguments"),
        ("add(int a=) -> Tensor", 10, "expected a default value, found ')'"),
        ("add(bool a=Flase) -> Tensor", 11, "unknown default 'Flase'; did you mean 'False'?"),
        ("add(int[2 a) -> Tensor", 10, "expected ']' after a list type, found 'a'"),
        ("add(int[-1] a) -> Tensor", 8, "expected a list size, found '-1'"),
        ("add(Tensor(a! self) -> Tensor", 14, "expected ')' after an alias mark, found 'self'"),
        ("add(Tensor self) Tensor", 17, "expected '->' before the returns, found 'Tensor'"),
        ("add(Tensor self) ->", 19, "expected a type, found the end"),
        ("add(Tensor self) -> (Tensor a, Tensor a)", 31, "duplicate return 'a'"),
        ("add(Tensor self) -> Tensor x y", 29, "expected the end of the signature, found 'y'"),
        ("add(Tensor self; int b) -> Tensor", 15, "unexpected character ';'"),
    ],
)
def test_an_error_names_its_column(line: str, column: int, message: str) -> None:
    with pytest.raises(SignatureError) as caught:
        parse_signature(line)
    assert (caught.value.column, caught.value.message) == (column, message)
