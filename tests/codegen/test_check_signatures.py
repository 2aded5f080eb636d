"""The comparison with PyTorch's list, against a list of a few operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.check_signatures import main

NATIVE = """\
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  variants: function, method
  structured_delegate: add.out
- func: add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  variants: method
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
- func: relu(Tensor self) -> Tensor
  variants: function, method
  autogen: relu.out
- func: relu_(Tensor(a!) self) -> Tensor(a!)
- func: cat(Tensor[] tensors, int dim=0) -> Tensor
- func: max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
- func: max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)
- func: power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
- func: power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
- func: gamma(int n, Tensor self) -> Tensor
- func: gamma_(Tensor(a!) self, int n) -> Tensor(a!)
- func: odd(Tensor self, int n) -> Tensor
- func: odd_(Tensor(a!) self, int n, int m) -> Tensor(a!)
"""
MAX_DIM = "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"


@pytest.mark.parametrize(
    ("entry", "lines"),
    [
        ("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor|function, method, inplace, out", []),
        ("relu(Tensor self) -> Tensor|method, inplace, out", []),
        ("relu_(Tensor(a!) self) -> Tensor(a!)|function", []),
        (f"{MAX_DIM}|out", []),
        ("power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor|inplace", []),
        ("gamma(int n, Tensor self) -> Tensor|inplace", []),
        (
            "max.dim(Tensor self, SymInt dim, bool keepdim=False) -> (Tensor values, Tensor indices)|function",
            ["PyTorch's signature is " + MAX_DIM],
        ),
        ("relo(Tensor self) -> Tensor|function", ["PyTorch has no such operator; did you mean 'relu'?"]),
        ("odd(Tensor self, int n) -> Tensor|method", ["PyTorch has no variant 'method'"]),
        ("cat(Tensor[] tensors, int dim=0) -> Tensor|out", ["PyTorch has no out form"]),
        (
            f"{MAX_DIM}|inplace",
            ["PyTorch has no 'max_'"],
        ),
        (
            "odd(Tensor self, int n) -> Tensor|inplace",
            ["the in-place form takes other arguments: odd_(Tensor(a!) self, int n, int m) -> Tensor(a!)"],
        ),
    ],
)
def test_a_difference(tree: Path, capsys: pytest.CaptureFixture[str], entry: str, lines: list[str]) -> None:
    (tree / "native.yaml").write_text(NATIVE)
    func, _, variants = entry.partition("|")
    name = func.partition("(")[0]
    text = f"- func: {func}\n  variants: [{variants}]\n  missing: x\n"
    arguments = ["--native", str(tree / "native.yaml"), "--root", str(tree)]
    (tree / "schema/ops/f.yaml").write_text(text)
    assert main(arguments) == (1 if lines else 0)
    *printed, total = capsys.readouterr().out.splitlines()
    assert printed == [f"schema/ops/f.yaml:1:9: {name}: {line}" for line in lines]
    assert total == f"1 signatures: 0 differences with a reason, {len(lines)} without"
    # With a reason it is told, and allowed; a reason for nothing is a mistake.
    (tree / "schema/ops/f.yaml").write_text(text + "  differs: because\n")
    assert main(arguments) == (0 if lines else 1)
    *printed, _ = capsys.readouterr().out.splitlines()
    expected = [f"schema/ops/f.yaml:1:9: {name}: {line} (because)" for line in lines]
    assert printed == (expected or [f"schema/ops/f.yaml:4:12: {name}: does not differ from PyTorch; drop 'differs'"])
