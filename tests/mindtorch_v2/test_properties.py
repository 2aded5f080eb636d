"""Every operator of the schema, on arguments drawn by the strategy of its rule.

For each: the CPU and meta agree on shape, dtype, strides and errors; function, method, in-place and `out=` form and the general path of the
dispatcher agree on values. `EXAMPLES=1000` explores further than the fixed examples of a usual run.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from typing import Any

import ml_dtypes  # noqa: F401 - numpy prints and compares bfloat16 with it
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from strategies import STRATEGIES, Case, Operand, Picker, Row, draw_case, read_rows
from strategies.outcomes import Failure, attempt, geometry, is_tensor, leaves

import mindtorch_v2 as torch
from mindtorch_v2._backends.meta import rules
from mindtorch_v2._dispatch import dispatcher, ops
from mindtorch_v2._dispatch.operator import Operator
from mindtorch_v2._generated import tables
from mindtorch_v2._promotion import can_cast

ROWS = read_rows()
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
SETTINGS = settings(
    max_examples=EXAMPLES or 12,
    deadline=None,
    derandomize=not EXAMPLES,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)

EXCLUDED: dict[str, str] = {}
"""By operator: why it fails today. One that passes fails the run."""


def _operators() -> dict[str, Operator]:
    found = {}
    for module in pkgutil.iter_modules(tables.__path__):
        for value in vars(importlib.import_module(f"{tables.__name__}.{module.name}")).values():
            if isinstance(value, Operator):
                found[value.full_name] = value
    return found


OPERATORS = _operators()
_INTEGERS: dict[tuple[int, int], st.SearchStrategy[int]] = {}


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    made = _INTEGERS.get((low, high))
    if made is None:
        made = _INTEGERS[low, high] = st.integers(low, high)
    return made


@st.composite
def cases(draw: Any, row: Row) -> Case:
    """Calls of an operator."""
    return draw_case(Picker(lambda low, high: draw(_integers(low, high))), row)


def rows_with_reasons() -> list[Any]:
    return [
        pytest.param(
            row,
            id=row.name,
            marks=[pytest.mark.xfail(strict=True, reason=EXCLUDED[row.name])] if row.name in EXCLUDED else [],
        )
        for row in ROWS
    ]


@pytest.mark.parametrize("row", rows_with_reasons())
def test_operator(row: Row) -> None:
    @SETTINGS
    @given(cases(row))
    def explore(case: Case) -> None:
        check(case)

    explore()


def test_every_rule_has_a_strategy() -> None:
    missing = [name for name in rules.__all__ if name not in STRATEGIES and any(row.rule == name for row in ROWS)]
    assert not missing, f"rules without a strategy of their name in tests/mindtorch_v2/strategies: {missing}"


def test_exclusions_name_operators() -> None:
    assert not set(EXCLUDED) - {row.name for row in ROWS}


# One case


def run(case: Case, device: str = "cpu", function: Any = None) -> Any:
    """The outcome of a call with fresh arguments and a fresh seed."""
    positional, keywords = case.build(torch, device)
    torch.manual_seed(0)
    return attempt(lambda: (function or getattr(ops, case.row.base_name))(*positional, **keywords))


def check(case: Case) -> None:
    """All that must hold for one call."""
    cpu = run(case)
    problem = (
        _meta_differs(case, cpu)
        or _general_path_differs(case, cpu)
        or _method_differs(case, cpu)
        or _inplace_differs(case, cpu)
        or _out_differs(case, cpu)
    )
    if problem:
        raise AssertionError(f"{problem}\nreproduce: {case.show(f'ops.{case.row.base_name}')}")


def _text(outcome: Any) -> str:
    return str(outcome) if isinstance(outcome, Failure) else str(geometry(outcome))


def _meta_differs(case: Case, cpu: Any) -> str | None:
    meta = run(case, "meta")
    if isinstance(cpu, Failure) or isinstance(meta, Failure):
        if cpu == meta or _depends_on_data(case.row, cpu, meta):
            return None
        return f"cpu: {_text(cpu)}\nmeta: {_text(meta)}"
    if "data_dependent" in case.row.tags:
        return f"meta knows what depends on data: {_text(meta)}"
    if any(is_tensor(m) and m.device.type != "meta" for m in leaves(meta)):
        return "the result of meta tensors is not on meta"
    # numpy does not move the pointer of a view without elements, so such views have no offset to compare
    views = "view" in case.row.tags and all(leaf.numel() for leaf in leaves(cpu) if is_tensor(leaf))
    if geometry(cpu, views) != geometry(meta, views):
        return f"cpu: {geometry(cpu, views)}\nmeta: {geometry(meta, views)}"
    for c, m in zip(leaves(cpu), leaves(meta)):
        if is_tensor(c) and (c._base is None) != (m._base is None):
            return f"a view on one device only: cpu {c._base is not None}, meta {m._base is not None}"
    return None


def _depends_on_data(row: Row, cpu: Any, meta: Any) -> bool:
    """Whether meta rightly says that it cannot know the result (or, of a composite, cannot read its arguments)."""
    if not isinstance(meta, Failure):
        return False
    if "data_dependent" in row.tags:
        return meta.kind == "NotImplementedError" and not isinstance(cpu, Failure)
    numbers = not isinstance(cpu, Failure) and any(not is_tensor(leaf) and leaf is not None for leaf in leaves(cpu))
    if not numbers and row.rule in rules.__all__:
        return False
    return meta.kind in ("NotImplementedError", "RuntimeError") and bool(re.search(r"data|meta", meta.message))


def _comparable(row: Row) -> bool:
    """Whether two runs give the same values: with equal seeds random operators do too, but not in another layout."""
    return not row.is_random and not row.base_name.startswith(("empty", "new_empty", "_empty"))


def _array(tensor: Any) -> np.ndarray:
    array = tensor.detach()._data
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def _same_values(a: Any, b: Any) -> bool:
    if not is_tensor(a):
        return a == b
    first, second = _array(a), _array(b)
    return first.shape == second.shape and np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def _differ(row: Row, expected: Any, found: Any, what: str, exact: bool = True) -> str | None:
    if isinstance(expected, Failure) or isinstance(found, Failure):
        if isinstance(expected, Failure) and isinstance(found, Failure):
            same = expected.kind == found.kind or "TypeError" in (expected.kind, found.kind)
            return None if same else f"function: {expected}\n{what}: {found}"
        return f"function: {_text(expected)}\n{what}: {_text(found)}"
    if not exact and [_shape_of(leaf) for leaf in leaves(expected)] != [_shape_of(leaf) for leaf in leaves(found)]:
        return f"function: {geometry(expected)}\n{what}: {geometry(found)}"
    if exact and geometry(expected) != geometry(found):
        return f"function: {geometry(expected)}\n{what}: {geometry(found)}"
    if _comparable(row):
        for a, b in zip(leaves(expected), leaves(found)):
            if not _same_values(a, b):
                return f"function: {a}\n{what}: {b}"
    return None


def _shape_of(result: Any) -> Any:
    return (str(result.dtype), tuple(result.shape)) if is_tensor(result) else type(result).__name__


def _general_path_differs(case: Case, cpu: Any) -> str | None:
    """The overload itself, without fast paths and overload resolution, gives the same."""
    op = OPERATORS[case.row.name]
    if op.is_inplace or isinstance(cpu, Failure):
        return None
    positional, keywords = case.build(torch)
    given = dict(zip([p.name for p in op.params], positional)) | keywords
    args = tuple(given.get(p.name, p.default) for p in op.params)
    torch.manual_seed(0)
    return _differ(case.row, cpu, attempt(lambda: dispatcher.call(op, args)), "general path")


def _method_differs(case: Case, cpu: Any) -> str | None:
    row = case.row
    if not row.has("method") or row.is_inplace or not row.has("function") or row.parameters[0].name != "self":
        return None
    if not isinstance(case.first, Operand):
        return None
    return _differ(row, cpu, run(case, function=getattr(torch.Tensor, row.public)), "method")


def _overlaps(operand: Operand) -> bool:
    return any(step == 0 and size > 1 for size, step in zip(operand.shape, operand.stride)) and 0 not in operand.shape


def _inplace_differs(case: Case, cpu: Any) -> str | None:
    row = case.row
    if not row.has("inplace") or row.is_inplace or not isinstance(case.first, Operand):
        return None
    positional, keywords = case.build(torch)
    target = positional[0]
    before = geometry(target)
    method = getattr(torch.Tensor, f"{row.public}_", None) or getattr(ops, f"{row.base_name}_")
    torch.manual_seed(0)
    found = attempt(lambda: method(*positional, **keywords))
    if isinstance(cpu, Failure):
        return None if isinstance(found, Failure) else f"function: {cpu}\nin place: {_text(found)}"
    if "view" in row.tags:
        return _differ(row, cpu, found, "in place")
    fits = tuple(cpu.shape) == case.first.shape and can_cast(cpu.dtype, target.dtype)
    if isinstance(found, Failure):
        if fits and not _overlaps(case.first) and case.first.shape:
            return f"function: {_text(cpu)}\nin place: {found}"
        return None if found.kind in ("RuntimeError", "NotImplementedError") or not fits else f"in place: {found}"
    if not fits:
        return f"function: {_text(cpu)}\nin place, which cannot hold it: {_text(found)}"
    if _overlaps(case.first):
        return f"in place on memory that overlaps itself: {_text(found)}"
    if found is not target or geometry(found) != before:
        return f"in place gave another tensor: {_text(found)} in place of {before}"
    return _differ(row, cpu.to(target.dtype), found, "in place", exact=False)


def _out_differs(case: Case, cpu: Any) -> str | None:
    row = case.row
    if not row.has("out"):
        return None
    results = [] if isinstance(cpu, Failure) else leaves(cpu)
    if isinstance(cpu, Failure):
        count = len([r for r in row.returns if r == "Tensor"])
        buffers = tuple(torch.empty(0) for _ in range(count))
        found = _with_out(case, buffers if count > 1 else buffers[0])
        return None if isinstance(found, Failure) else f"function: {cpu}\nout=: {_text(found)}"
    buffers = tuple(torch.empty(0, dtype=r.dtype) for r in results)
    found = _with_out(case, buffers if len(buffers) > 1 else buffers[0])
    exact = "contiguous_out" not in row.tags
    problem = _differ(row, cpu, found, "out=", exact=exact)
    if problem or isinstance(found, Failure) or len(results) > 1:
        return problem
    if found is not buffers[0]:
        return "out= gave another tensor"
    return _strided_out_differs(case, results[0])


def _strided_out_differs(case: Case, result: Any) -> str | None:
    """A buffer of the right shape keeps its own strides and dtype."""
    shape = tuple(result.shape)
    wide = torch.complex128 if result.dtype.is_complex else torch.float64
    if any(tag.startswith("exact_out") for tag in case.row.tags) or case.row.rule not in (
        "elementwise",
        "comparison",
        "division",
        "subtraction",
    ):
        wide = result.dtype
    step, stride = 1, []
    for size in shape:
        stride.append(step)
        step *= max(size, 1)
    buffer = torch.empty_strided(shape, tuple(stride), dtype=wide)
    found = _with_out(case, buffer)
    problem = _differ(case.row, result.to(wide), found, "out= of another layout", exact=False)
    if problem is None and found.stride() != tuple(stride) and found.numel():
        return f"out= lost its strides {tuple(stride)}: {found.stride()}"
    return problem


def _with_out(case: Case, out: Any) -> Any:
    positional, keywords = case.build(torch)
    torch.manual_seed(0)
    return attempt(lambda: getattr(ops, case.row.base_name)(*positional, **keywords, out=out))
