"""Every operator that runs on an NPU, by a kernel or by the CPU's, on arguments drawn by the strategy of its rule: the CPU's results and errors."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from strategies import Picker, draw_case, read_rows
from strategies.outcomes import Failure, attempt, geometry, is_tensor, leaves

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops
from mindtorch_v2._generated.npu import FALLBACKS, FAMILIES
from mindtorch_v2._pending import settled

ROWS = [row for row in read_rows() if row.name in FAMILIES or row.name in FALLBACKS]
EXAMPLES = int(os.environ.get("EXAMPLES", "0")) or 25
REFUSED = "161002"  # aclnn's documentation allows fewer dtypes than PyTorch
TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float16": 4e-3,
    "bfloat16": 3e-2,
}


@pytest.mark.filterwarnings("ignore:.*the CPU computes it")
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_operator(row: Any) -> None:
    source = random.Random(f"npu {row.name}")
    compared = 0
    for _ in range(EXAMPLES):
        case = draw_case(Picker(source.randint, valid=source.random() < 0.7), row)
        problem, counts = differs(case)
        assert problem is None, f"{problem}\nreproduce: {case.show(f'ops.{case.row.base_name}')}"
        compared += counts
    assert compared, f"{row.name}: no case was compared"


def run(case: Any, device: str) -> Any:
    positional, keywords = case.build(torch, device)
    torch.manual_seed(0)
    found = attempt(lambda: getattr(ops, case.row.base_name)(*positional, **keywords))
    if not isinstance(found, Failure):
        torch.npu.synchronize()
    return found


def differs(case: Any) -> tuple[str | None, bool]:
    """(what differs, whether results were compared)."""
    cpu, npu = run(case, "cpu"), run(case, "npu:0")
    if isinstance(npu, Failure) and REFUSED in npu.message:
        return (None, False) if not isinstance(cpu, Failure) else (None, False)
    if isinstance(cpu, Failure) or isinstance(npu, Failure):
        if isinstance(cpu, Failure) and isinstance(npu, Failure):
            return (None, True) if cpu.kind == npu.kind or "NpuError" in npu.kind else (f"cpu: {cpu}\nnpu: {npu}", True)
        return f"cpu: {_text(cpu)}\nnpu: {_text(npu)}", True
    if geometry(cpu) != geometry(npu):
        return f"cpu: {geometry(cpu)}\nnpu: {geometry(npu)}", True
    if case.row.is_random or case.row.base_name.startswith(("empty", "new_empty")):
        return None, True
    if case.row.base_name == "_linalg_svd":  # singular vectors are determined up to a phase, or a basis
        cpu, npu = ([t[1], _product(*t)] if t[0].numel() else t for t in (leaves(cpu), leaves(npu)))
    for a, b in zip(leaves(cpu), leaves(npu)):
        if not is_tensor(a):
            if a != b:
                return f"cpu: {a}\nnpu: {b}", True
        elif b.device.type != "npu":
            return f"the result is on {b.device}", True
        elif not _close(a, b.cpu()):
            return f"cpu: {a}\nnpu: {b.cpu()}", True
    return None, True


def _product(u: Any, s: Any, vh: Any) -> Any:
    count = s.shape[-1]
    host = (u.cpu()[..., :count] * s.cpu().unsqueeze(-2)) @ vh.cpu()[..., :count, :]
    return host.to(u.device)


def _close(a: Any, b: Any) -> bool:
    name = str(a.dtype).rpartition(".")[2]
    first, second = _array(a), _array(b)
    if name not in TOLERANCES:
        return np.array_equal(first, second)
    limit = TOLERANCES[name]
    return np.allclose(first, second, rtol=limit, atol=limit, equal_nan=True)


def _array(t: Any) -> np.ndarray:
    data = settled(t.detach())
    return data.astype(np.float32) if data.dtype.kind == "V" or data.dtype.num >= 256 else data


def _text(outcome: Any) -> str:
    return str(outcome) if isinstance(outcome, Failure) else str(geometry(outcome))
