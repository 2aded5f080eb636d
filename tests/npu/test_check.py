"""The check that users run: it finds nothing on the emulator, and what is wrong where something is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader
from mindtorch_v2.npu import check

pytestmark = pytest.mark.skipif(
    not acl_loader.emulated(), reason="it is for users with an NPU; here the emulator is one"
)


def test_some_operators_are_as_on_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        "add",
        "mul",
        "softmax",
        "_softmax",
        "matmul",
        "npu_swiglu",
        "cumsum",
        "gather",
        "sort",
        "native_layer_norm",
    ]
    status = check.main([text for name in names for text in ("--operator", name)])
    page = capsys.readouterr().out
    assert status == 0, page
    assert " 0 differ, 0 failed" in page and "chip Ascend910B1" in page and "x + y [4, 4]" in page
    assert len(page.splitlines()) < 60
    assert "float64" not in page.splitlines()[3]


def test_what_differs_fails_or_is_lacking_is_said() -> None:
    report = check.Report(
        same=3, operators=4, wrong={"a float32": "1 of 2 elements differ"}, failed={"b float16": "RuntimeError: no"}
    )
    text = check.page(report, [f"aclnnNew{n}" for n in range(20)], [("x + y", 0.5, "")], 1.0, False)
    assert "a float32: 1 of 2 elements differ" in text and "b float16: RuntimeError: no" in text
    assert "functions that this CANN lacks (20):" in text and "... and 12 more (--all)" in text
    assert check._difference(torch.ones(2), torch.tensor([1.0, 2.0])) == "1 of 2 elements differ, by at most 1"
    assert "became" in (check._difference(torch.ones(2), torch.ones(3)) or "")
    assert check._difference(torch.ones(2), torch.ones(2)) is None


def test_without_an_npu_it_says_why() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MINDTORCH_NPU_EMULATOR"}
    done = subprocess.run(
        [sys.executable, "-m", "mindtorch_v2.npu.check"], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 2 and "no NPU is available" in done.stderr
