"""The emulator refuses what the chip refuses, by the table of dtypes and CANN's documents; and what the backend does about it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import acl_loader, aclnn, dtypes
from mindtorch_v2._backends.npu.creation import empty
from mindtorch_v2._backends.npu.function import Function
from mindtorch_v2._dtype import DTYPES
from mindtorch_v2._generated.npu import functions

pytestmark = pytest.mark.skipif(not acl_loader.emulated(), reason="it asks the emulator what chips say")
F = torch.nn.functional
TABLE = Path(__file__).resolve().parents[2] / "schema/aclnn_dtypes.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
BOUND = {name: function for name, function in vars(functions).items() if isinstance(function, Function)}
CONTRADICTED = {
    (
        "aclnnBatchMatMul",
        "self",
    ): "what was read lacks float32, which the document lists, and which `out` was read to take",
    ("aclnnBatchMatMul", "mat2"): "the same",
    ("aclnnNeg", "*"): "what was read lacks bfloat16, which the document lists for Atlas A2 and A3",
    ("aclnnSign", "*"): "the same",
}
"""Rows of which the sources were read otherwise than CANN's documents have it: the documents count, for the reason given."""
SCALARS = {"float64": 1.5, "int64": 2, "bool": True, "complex128": 1j}


def test_the_rows_that_documents_contradict_are_these() -> None:
    assert {(row[0], row[1]) for row in ROWS if row[2] == "documents" and len(row) == 5} == set(CONTRADICTED)
    taken = {(row[0], row[1]): (set(row[3].split()), set(row[4].split())) for row in ROWS if len(row) == 5}
    assert all(
        read < documented for documented, read in taken.values()
    )  # what documents add is taken, nothing is dropped


def _value(kind: str, dtype: str) -> Any:
    if kind == "tensor":
        return empty((2, 2), None, DTYPES[dtype], torch.device("npu", 0))
    if kind == "scalar":
        return next((v for name, v in SCALARS.items() if name == dtype), 1.5)
    plain: dict[str, Any] = {
        "ints": [0],
        "int": 0,
        "uint": 0,
        "bool": False,
        "float": 1.0,
        "single": 1.0,
        "bools": [True, True, True],
        "text": "",
        "dtype": DTYPES[dtype],
    }
    if kind == "tensors":
        return [_value("tensor", dtype)]
    return plain.get(kind, [1.0])


def _lacking(name: str, parameter: str, taken: list[str]) -> tuple[int, list[str]]:
    """The place of a parameter, and the dtypes that can be tried there and are not taken."""
    function = BOUND[name]
    place = function.kinds.index("tensor") if parameter == "*" else function.parameters.index(parameter)
    known = SCALARS if function.kinds[place] == "scalar" else dtypes.ACL_DTYPES
    return place, [dtype for dtype in known if dtype not in taken]


CHECKED = [
    (row[0], row[1], row[3].split())
    for row in ROWS
    if row[0] in BOUND
    and (row[2] != "list" or "tensor" in BOUND[row[0]].kinds)
    and (row[1] in BOUND[row[0]].parameters or row[1] == "*")
    and _lacking(row[0], row[1], row[3].split())[1]
]


@pytest.mark.parametrize(
    ("name", "parameter", "taken"), CHECKED, ids=[f"{name} {parameter}" for name, parameter, _ in CHECKED]
)
def test_a_dtype_that_a_function_lacks_is_161002(name: str, parameter: str, taken: list[str]) -> None:
    function = BOUND[name]
    place, candidates = _lacking(name, parameter, taken)
    others = {row[1]: row[3].split() for row in ROWS if row[0] == name}
    usual = [_usual(others.get(p, taken)) for p in function.parameters]
    for dtype in candidates:
        args = [_value(kind, of) for kind, of in zip(function.kinds, usual, strict=True)]
        args[place] = _value(function.kinds[place], dtype)
        with pytest.raises(RuntimeError, match="161002") as error:
            aclnn.launch(function, *args)
        assert f"{name}: {function.parameters[place]} has dtype" in str(error.value) or parameter == "*"


def _usual(taken: list[str]) -> str:
    return next((d for d in ("float32", "int64", "int32", "bool") if d in taken), taken[0])


def test_most_of_the_table_is_bound() -> None:
    read = [row for row in ROWS if row[2] == "read"]
    assert len([row for row in read if row[0] in BOUND]) > 110 and len(read) > 120


@pytest.mark.parametrize(
    ("call", "function", "remedy"),
    [
        (lambda x: x @ x, "matmul", "aclnnMatmul does not take float64 for self .* bfloat16, float16, float32"),
        (lambda x: torch.sort(x, stable=True), "sort.stable", "float32"),
        (lambda x: torch.median(x), "median", "float32"),
        (lambda x: torch.roll(x, 1, 0), "roll", "float32"),
        (lambda x: torch.max(x, 0), "max.dim", "float32"),
        (lambda x: F.layer_norm(x, (2,)), "native_layer_norm|layer_norm", "float32"),
    ],
)
def test_float64_is_refused_by_the_operators_name_with_the_remedy(call: Any, function: str, remedy: str) -> None:
    with pytest.raises(RuntimeError, match=rf"(?s)({function}).*161002.*{remedy}"):
        call(torch.ones(2, 2, dtype=torch.float64, device="npu"))


WORKAROUNDS = {
    "max of int32": lambda d: torch.max(torch.tensor([[1, 5, 2], [7, 3, 7]], dtype=torch.int32, device=d), 1),
    "min of uint8": lambda d: torch.min(torch.tensor([[1, 5, 2], [7, 3, 7]], dtype=torch.uint8, device=d), 0),
    "norm of order 4": lambda d: torch.linalg.vector_norm(torch.arange(6.0, device=d).reshape(2, 3), 4, 1),
    "norm of order -1": lambda d: torch.linalg.vector_norm(torch.arange(1.0, 7.0, device=d), -1),
    "norm of order 3": lambda d: torch.linalg.vector_norm(torch.arange(6.0, device=d), 3),
    "norm of float64": lambda d: torch.linalg.vector_norm(torch.arange(6.0, device=d, dtype=torch.float64)),
    "cummax of one": lambda d: torch.cummax(torch.tensor(3.0, device=d), 0),
    "dilated pool": lambda d: F.max_pool2d(torch.arange(72.0, device=d).sin().reshape(2, 6, 6), 2, 1, 1, 2, return_indices=True),
    "any of complex": lambda d: torch.any(torch.tensor([0j, 1j], device=d)),
    "all of complex": lambda d: torch.all(torch.tensor([[0j, 1j], [1, 2]], device=d), 1),
    "gather of complex": lambda d: torch.gather(torch.tensor([[1j, 2j], [3, 4]], device=d), 1, torch.tensor([[1], [0]], device=d)),
    "nonzero of complex": lambda d: torch.nonzero(torch.tensor([0j, 1j, 0, 2], device=d)),
    "tril of complex": lambda d: torch.tril(torch.ones(2, 3, 3, dtype=torch.complex64, device=d) * 1j, -1),
    "argsort of bool": lambda d: torch.argsort(torch.tensor([True, False, True], device=d), stable=True),
    "repeat of five": lambda d: torch.arange(4.0, device=d).reshape(1, 2, 1, 2, 1).repeat(2, 1, 3, 1, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKAROUNDS)
def test_what_is_worked_around_on_the_device(name: str) -> None:
    found, expected = WORKAROUNDS[name]("npu"), WORKAROUNDS[name]("cpu")
    pairs = [(found, expected)] if isinstance(found, torch.Tensor) else list(zip(found, expected, strict=True))
    for a, b in pairs:
        assert a.device.type == "npu" and a.dtype is b.dtype and a.shape == b.shape
        torch.testing.assert_close(a.cpu(), b)


def test_ctc_rounds_the_states_up() -> None:
    probs = torch.randn(10, 2, 8).log_softmax(-1)
    targets = torch.tensor([[1, 2, 3], [4, 5, 0]])
    sides = []
    for device in ("cpu", "npu"):
        leaf = probs.to(device).detach().requires_grad_()
        loss = F.ctc_loss(leaf, targets.to(device), [10, 9], [3, 2], reduction="none")
        (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        sides.append((loss.detach().cpu(), gradient.cpu()))
    for a, b in zip(*sides, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def _run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("soc", ["Ascend910A", "Ascend310P3"])
def test_older_chips_lower_float32_and_refuse_bfloat16(soc: str) -> None:
    code = (
        "import mindtorch_v2 as torch\n"
        "x = torch.ones(2, 2, device='npu')\n"
        "print((x @ x).sum().item(), torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 1, 2, 2, device='npu')] * 3).sum().item())\n"
        "from mindtorch_v2._backends.npu import aclnn\n"
        "from mindtorch_v2._generated.npu.functions import aclnnMatmul\n"
        "try:\n    aclnn.launch(aclnnMatmul, x._payload, x._payload, x._payload, 0)\nexcept RuntimeError as error:\n    print('refused', '161002' in str(error))\n"
        "try:\n    torch.ones(2, device='npu', dtype=torch.bfloat16)\nexcept RuntimeError as error:\n    print('refused', '161002' in str(error))\n"
    )
    done = _run(code, MINDTORCH_NPU_EMULATOR_SOC=soc)
    assert done.stdout.split("\n")[:3] == ["8.0 4.0", "refused True", "refused True"], done.stderr


def test_hf32_is_asked_for_where_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindtorch_v2._backends.npu import precision

    assert (precision.mode("matmul"), precision.mode("conv")) == (0, 1)
    monkeypatch.setitem(precision.ALLOW_HF32, "matmul", True)
    assert precision.mode("matmul") == 1


def test_errors_of_a_device_stay_until_it_is_reset() -> None:
    code = (
        "import ctypes, mindtorch_v2 as torch\n"
        "from mindtorch_v2._backends.npu import acl_loader\n"
        "from mindtorch_v2._backends.npu.runtime import get_runtime\n"
        "own = acl_loader.load().own\n"
        "a = torch.ones(2, device='npu')\n"
        "own('emFault', None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)(b'kernel:aclnnExp', 1, 0)\n"
        "a.exp()\n"
        "for _ in range(2):\n"
        "    try:\n        torch.npu.synchronize()\n    except RuntimeError as error:\n        print('507015' in str(error))\n"
        "get_runtime().call('aclrtResetDevice', 0)\n"
        "get_runtime().call('aclrtSetDevice', 0)\n"
        "torch.npu.synchronize()\n"
        "print('well')\n"
    )
    done = _run(code)
    assert done.stdout.split() == ["True", "True", "well"], done.stderr
    assert _run(code, MINDTORCH_NPU_EMULATOR_STICKY="0").stdout.split() == ["True", "well"]


def test_a_failure_that_was_seen_is_not_told_again_at_the_end() -> None:
    code = (
        "import ctypes, mindtorch_v2 as torch\n"
        "from mindtorch_v2._backends.npu import acl_loader\n"
        "fault = acl_loader.load().own('emFault', None, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)\n"
        "a = torch.ones(2, device='npu')\n"
        "fault(b'kernel:aclnnExp', 1, 0)\n"
        "try:\n    a.exp().tolist()\nexcept RuntimeError:\n    print('seen')\n"
    )
    done = _run(code)
    assert done.stdout == "seen\n" and "507015" not in done.stderr and "leaked" not in done.stderr, done.stderr


def test_refusals_leave_no_executor_behind() -> None:
    live = acl_loader.load().own("emLive", ctypes.c_int64, ctypes.c_char_p)
    before = live(b"executors"), live(b"tensors")
    with pytest.raises(RuntimeError, match="161002"):
        torch.ones(2, 2, dtype=torch.float64, device="npu").mm(torch.ones(2, 2, dtype=torch.float64, device="npu"))
    assert (live(b"executors"), live(b"tensors")) == before
