"""Operators of a package of its own on an NPU: the example's, by a function of aclnn and by Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mindtorch_v2 as torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/operator_package"))


@pytest.mark.parametrize("form", ["function", "inplace", "out"])
@pytest.mark.parametrize(("name", "count", "named"), [("scaled_tanh", 1, {"scale": 2}), ("difference", 2, {})])
def test_as_on_the_cpu(name, count, named, form):
    torch.ops.import_module("my_ops.generated")
    namespace = torch.ops.my_ops
    given = [torch.arange(6.0).reshape(2, 3) / (5 + number) for number in range(count)]
    expected = getattr(namespace, name)(*given, **named)
    moved = [tensor.to("npu") for tensor in given]
    if form == "function":
        found = getattr(namespace, name)(*moved, **named)
    elif form == "inplace":
        found = getattr(namespace, f"{name}_")(*moved, **named)
        assert found is moved[0]
    else:
        out = torch.empty(0, device="npu")
        found = getattr(namespace, name)(*moved, **named, out=out)
        assert found is out
    torch.testing.assert_close(found.cpu(), expected)


def test_without_a_kernel():
    torch.ops.import_module("my_ops.generated")
    given = torch.arange(6.0).reshape(2, 3)
    with pytest.warns(
        UserWarning, match="aten::my_ops_rms_pair has no kernel on NPUs .*the package that it is of binds no kernel"
    ):
        found = torch.ops.my_ops.rms_pair(given.to("npu"))
    torch.testing.assert_close([t.cpu() for t in found], list(torch.ops.my_ops.rms_pair(given)))
