"""The operators of the package: what the schema gives for free, and a few values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.codegen.properties import cases

HERE = Path(__file__).resolve().parent.parent
torch.ops.import_module("my_ops.generated")  # where the package is not installed


@pytest.mark.parametrize("case", cases("my_ops.generated"), ids=str)
def test_operator(case):
    case.check()


def test_values():
    x = torch.tensor([[3.0, 4.0], [0.0, 2.0]], requires_grad=True)
    normed, rms = torch.ops.my_ops.rms_pair(x, 0.0)
    torch.testing.assert_close(rms.detach() ** 2, torch.tensor([[12.5], [2.0]]))
    normed.sum().backward()
    assert x.grad is not None and type(normed.grad_fn).__name__ == "MyOpsRmsPairBackward0"
    y = torch.ops.my_ops.contrast(x.detach(), torch.ones(2))
    torch.testing.assert_close(y, 2 * torch.tanh(x.detach() - 1))
    target = torch.zeros(2)
    assert torch.ops.my_ops.scaled_tanh_(target, scale=3) is target
    assert str(torch.ops.my_ops.scaled_tanh_.default._schema) == (
        "my_ops::scaled_tanh_(Tensor(a!) self, *, Scalar scale=1) -> Tensor(a!)"
    )
    assert torch.plan(lambda: torch.ops.my_ops.rms_pair(torch.ones(4, 8))).flops == 4 * 32


def test_generated_is_what_the_schema_says():
    command = [
        sys.executable,
        "-m",
        "mindtorch_v2.codegen",
        "--schema",
        "my_ops/schema",
        "--out",
        "my_ops/generated",
        "--check",
    ]
    subprocess.run(command, cwd=HERE, check=True)
