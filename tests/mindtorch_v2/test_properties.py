"""Every operator of the schema, on arguments drawn by the strategy of its rule.

For each: the CPU and meta agree on shape, dtype, strides and errors; function, method, in-place and `out=` form and the general path of the
dispatcher agree on values. `EXAMPLES=1000` explores further than the fixed examples of a usual run: Hypothesis draws a tenth of them, a seed
the others, at half the price.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import random
import re
from typing import Any

import ml_dtypes  # noqa: F401 - numpy prints and compares bfloat16 with it
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from strategies import STRATEGIES, Case, Operand, Picker, Row, draw_case, read_rows
from strategies.operands import OnDevice, show
from strategies.outcomes import Failure, attempt, geometry, is_tensor, leaves
from strategies.shrinking import recorded, replayed, shrunk

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import dispatcher, ops
from mindtorch_v2._dispatch.operator import Operator
from mindtorch_v2._generated import tables
from mindtorch_v2._pending import settled
from mindtorch_v2._rules.promotion import can_cast

ROWS = [
    row for row in read_rows() if row.family not in ("sparse", "collectives") and not row.names_a_file
]  # whose arguments and results are sparse: test_sparse.py
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
SEEDED = EXAMPLES - EXAMPLES // 10 if EXAMPLES >= 100 else 0
SETTINGS = settings(
    max_examples=EXAMPLES - SEEDED or 12,
    deadline=None,
    derandomize=not EXAMPLES,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)

EXCLUDED: dict[str, str] = {
    "_shape_as_tensor": "its result is on the CPU, wherever the tensor is",
    "_fused_sdp_choice": "it gives a number for tensors of any devices",
}
"""By operator: why it fails today. One that passes fails the run."""


OPERATORS: dict[str, Operator] = {}
_TABLES: dict[str, tuple[str, str]] = {}
"""The module and the name that an operator's record has."""


def _read_tables() -> None:
    for module in pkgutil.iter_modules(tables.__path__):
        for name, value in vars(importlib.import_module(f"{tables.__name__}.{module.name}")).items():
            if isinstance(value, Operator):
                OPERATORS[value.full_name] = value
                _TABLES[value.full_name] = (module.name, name)


_read_tables()
VARIETY = 3
"""Once in how many cases an argument is made unusual."""

_INTEGERS: dict[tuple[int, int], st.SearchStrategy[int]] = {}


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    made = _INTEGERS.get((low, high))
    if made is None:
        made = _INTEGERS[low, high] = st.integers(low, high)
    return made


@st.composite
def cases(draw: Any, row: Row) -> Case:
    """Calls of an operator."""
    return draw_case(Picker(lambda low, high: draw(_integers(low, high)), variety=VARIETY), row)


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
    for number in range(SEEDED):
        integer, notes = recorded(random.Random(f"{row.name} {number}").randint)
        if problem_of(draw_case(Picker(integer, variety=VARIETY), row)):
            raise AssertionError(smallest_problem(row, notes))

    @SETTINGS
    @given(cases(row))
    def explore(case: Case) -> None:
        check(case)

    explore()


def test_every_rule_has_a_strategy() -> None:
    missing = sorted({row.rule for row in ROWS if row.is_ruled} - set(STRATEGIES))
    assert not missing, f"rules without a strategy of their name in tests/mindtorch_v2/strategies: {missing}"


def test_exclusions_name_operators() -> None:
    assert not set(EXCLUDED) - {row.name for row in ROWS}


# One case


def run(case: Case, device: str = "cpu", function: Any = None) -> Any:
    """The outcome of a call with fresh arguments and a fresh seed."""
    positional, keywords = case.build(torch, device)
    torch.manual_seed(0)
    return attempt(lambda: (function or getattr(ops, case.row.base_name))(*positional, **keywords))


def problem_of(case: Case) -> str | None:
    """What does not hold for one call, and how to see it."""
    cpu = run(case)
    for form, differs in FORMS.items():
        problem = differs(case, cpu)
        if problem:
            return f"{problem}\n{reproduction(case, form, cpu)}"
    return None


def check(case: Case) -> None:
    """All that must hold for one call."""
    problem = problem_of(case)
    if problem:
        raise AssertionError(problem)


def smallest_problem(row: Row, notes: list[int]) -> str | None:
    """The problem of the smallest failing case near that of the notes."""

    def problem(notes: list[int]) -> str | None:
        return problem_of(draw_case(Picker(replayed(notes), variety=VARIETY), row))

    return problem(shrunk(notes, lambda smaller: problem(smaller) is not None))


# How a failure is reproduced


def reproduction(case: Case, form: str, cpu: Any) -> str:
    """Two lines that run as they stand: the call on the CPU, and the other form of it."""
    row = case.row
    public = getattr(torch, row.base_name, None) is getattr(ops, row.base_name) and row.namespace == "torch"
    callee = f"torch.{row.base_name}" if public else f"ops.{row.base_name}"
    start = "import mindtorch_v2 as torch; " + ("" if public else "from mindtorch_v2._dispatch import ops; ")
    if not _comparable(row) or row.is_random:
        start += "torch.manual_seed(0); "
    return f"reproduce: {start}print({case.show(callee)})\n{form}: {start}{_other(case, form, callee, cpu)}"


def _other(case: Case, form: str, callee: str, cpu: Any) -> str:
    row = case.row
    call = case.show(callee)
    if form == "meta":
        return f"print({case.show(callee, 'meta')})"
    if form == "mixed devices":
        return f"print({_mixed(case).show(callee)})"
    if form == "method":
        return f"print({case.show(f'torch.Tensor.{row.public}')})"
    if form == "in place":
        method = f"torch.Tensor.{row.public}_"
        if getattr(torch.Tensor, f"{row.public}_", None) is None:
            method = f"__import__('mindtorch_v2._dispatch.ops', fromlist=['ops']).{row.base_name}_"
        return f"print({case.show(method)})"
    if form == "general path":
        positional, keywords = case.split()
        given = {p.name: value for p, value in (*positional, *keywords)}
        args = [show(given[p.name]) if p.name in given else repr(p.default) for p in OPERATORS[row.name].params]
        module, name = _TABLES[row.name]
        return (
            f"from mindtorch_v2._dispatch import dispatcher; from mindtorch_v2._generated.tables import {module}; "
            f"print(dispatcher.call({module}.{name}, ({', '.join(args)},)))"
        )
    results = [] if isinstance(cpu, Failure) else leaves(cpu)
    buffers = [f"torch.empty(0, dtype={r.dtype})" for r in results] or [
        "torch.empty(0)" for r in row.returns if r == "Tensor"
    ]
    if form == "out= of another layout":
        shape, stride, wide = _layout_of_out(row, results[0])
        buffers = [f"torch.empty_strided({shape}, {stride}, dtype={wide})"]
    out = buffers[0] if len(buffers) == 1 else f"({', '.join(buffers)})"
    opened = call[:-1]
    return f"print({opened}{'' if opened.endswith('(') else ', '}out={out}))"


def _text(outcome: Any) -> str:
    return str(outcome) if isinstance(outcome, Failure) else str(geometry(outcome))


def _meta_differs(case: Case, cpu: Any) -> str | None:
    meta = run(case, "meta")
    # In PyTorch, lists of meta tensors meet no kernel that does not know their dtype.
    if case.row.base_name.startswith("_foreach_") and isinstance(cpu, Failure) and cpu.kind == "NotImplementedError":
        return None
    if isinstance(cpu, Failure) or isinstance(meta, Failure):
        if isinstance(cpu, Failure) and _has_no_cpu_dtype(meta):
            return None if "not supported on the CPU" in cpu.message else f"cpu: {cpu}\nmeta: {_text(meta)}"
        if isinstance(cpu, Failure) and "complex32 are not supported on the CPU" in cpu.message:
            return None  # of a result on the way
        if isinstance(cpu, Failure) and not isinstance(meta, Failure) and _OF_VALUES.search(cpu.message):
            return None
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


_OF_VALUES = re.compile(
    "|".join(
        (
            r"index -?\d+ is out of bounds for dimension",
            r"is out of bounds$",
            r"Target -?\d+ is out of bounds",
            r"^INDICES element is out of DATA bounds",
            r"^index out of range in self$",
            r"tried to access index",
            r"same number of elements as the mask",
            r"^value cannot be converted to type \w+ without overflow$",
            r"^repeats can not be negative$",
            r"^all elements of (input|target) should be between 0 and 1$",
            r"is zero[ ,]|ZeroDivisionError$",
            r"singular|single nonzero value|it must hold|Boolean value of Tensor|not positive-definite|failed to converge|should not contain infs or NaNs",
            r"^pivots passed to lu_unpack must be between|^Pivots given to lu_solve must all|sorter index out of range",
            r"which is not in the valid range|Expected idx >= 0 && idx <|^offsets\[|^segment_reduce\(\): Expected (all rows|segments)|^lengths contains negative",
            r"^Found an invalid max index|Unknown error code",
        )
    )
)
"""What values are wrong, which meta does not know: indices, and matrices without an inverse."""


def _has_no_cpu_dtype(result: Any) -> bool:
    """Whether a result is of a dtype that meta can hold and numpy cannot."""
    return not isinstance(result, Failure) and any(is_tensor(leaf) and leaf.dtype.np is None for leaf in leaves(result))


def _depends_on_data(row: Row, cpu: Any, meta: Any) -> bool:
    """Whether meta rightly says that it cannot know the result (or, of a composite, cannot read its arguments)."""
    if not isinstance(meta, Failure):
        return False
    masks = any(p.type == "Tensor?[]" for p in row.parameters)  # a list of indices, among which masks may be
    if "data_dependent" in row.tags or masks:
        fails = isinstance(cpu, Failure) and not cpu.message.startswith("shape mismatch: indexing tensors")
        return meta.kind == "NotImplementedError" and not fails
    numbers = not isinstance(cpu, Failure) and any(not is_tensor(leaf) and leaf is not None for leaf in leaves(cpu))
    if not numbers and row.is_ruled:
        return False
    return meta.kind in ("NotImplementedError", "RuntimeError") and bool(re.search(r"data|meta", meta.message))


def _comparable(row: Row) -> bool:
    """Whether two runs give the same values: with equal seeds random operators do too, but not in another layout."""
    return not row.is_random and not row.base_name.startswith(("empty", "new_empty", "_empty"))


def _array(tensor: Any) -> np.ndarray:
    array = settled(tensor.detach())
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
    fits &= not ("real_result" in row.tags and target.dtype.is_complex)  # which PyTorch refuses in place
    fits &= "requires" not in row.out or cpu.dtype is target.dtype
    if isinstance(found, Failure):
        if fits and not _overlaps(case.first) and case.first.shape:
            return f"function: {_text(cpu)}\nin place: {found}"
        return None if found.kind in ("RuntimeError", "NotImplementedError") or not fits else f"in place: {found}"
    if not fits:
        return f"function: {_text(cpu)}\nin place, which cannot hold it: {_text(found)}"
    if _overlaps(case.first):
        if "fills" in row.tags:  # whatever elements share gets one value of those that were meant for them
            return None
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
        buffers = tuple(torch.empty(0) for r in row.returns if r.startswith("Tensor"))
        found = _with_out(case, buffers if len(buffers) > 1 or _gives_list(row) else buffers[0])
        return None if isinstance(found, Failure) else f"function: {cpu}\nout=: {_text(found)}"
    buffers = tuple(torch.empty(0, dtype=r.dtype) for r in results)
    if _gives_list(row):  # whose buffers are written, and not given back
        found = _with_out(case, buffers)
        return _differ(row, cpu, buffers if found is None else found, "out=")
    found = _with_out(case, buffers if len(buffers) > 1 else buffers[0])
    exact = "contiguous" not in row.out
    problem = _differ(row, cpu, found, "out=", exact=exact)
    if problem is None and len(results) == 1 and not isinstance(found, Failure) and found is not buffers[0]:
        return "out= gave another tensor"
    return problem


def _gives_list(row: Row) -> bool:
    return row.returns == ("Tensor[]",)


_ANY_WIDTH = {"contiguous", "any_shape", "distinct", "given", "dtype", "castable", "castable_linalg", "castable_torch"}
"""Words for buffers that leave room for a wider dtype."""


def _layout_of_out(row: Row, result: Any) -> tuple[tuple, tuple, Any]:
    """A shape, strides and a dtype that a buffer for a result may have: those in which the first dimension moves fastest."""
    shape = tuple(result.shape)
    wide = torch.complex128 if result.dtype.is_complex else torch.float64
    if set(row.out) - _ANY_WIDTH or row.rule not in (
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
    return shape, tuple(stride), wide


def _strided_out_differs(case: Case, cpu: Any) -> str | None:
    """A buffer of the right shape keeps its own strides and dtype."""
    if not case.row.has("out") or isinstance(cpu, Failure) or len(leaves(cpu)) != 1 or _gives_list(case.row):
        return None
    result = leaves(cpu)[0]
    shape, stride, wide = _layout_of_out(case.row, result)
    buffer = torch.empty_strided(shape, stride, dtype=wide)
    found = _with_out(case, buffer)
    problem = _differ(case.row, result.to(wide), found, "out= of another layout", exact=False)
    if problem is None and not isinstance(found, Failure) and found.stride() != stride and found.numel():
        return f"out= lost its strides {stride}: {found.stride()}"
    return problem


def _with_out(case: Case, out: Any) -> Any:
    positional, keywords = case.build(torch)
    torch.manual_seed(0)
    return attempt(lambda: getattr(ops, case.row.base_name)(*positional, **keywords, out=out))


def _mixed(case: Case) -> Case | None:
    """The case with its first tensor on meta and all others on the CPU; None where they are not two with dimensions."""
    names = [name for name, value in case.arguments.items() if isinstance(value, Operand) and value.ndim]
    if len(names) < 2:
        return None
    return Case(case.row, {**case.arguments, names[0]: OnDevice(case.arguments[names[0]], "meta")})


def _mixes_devices(case: Case, cpu: Any) -> str | None:
    """Tensors of two devices are refused by name, or with the error that the arguments deserve anyway."""
    mixed = _mixed(case)
    if mixed is None or "any_device" in case.row.tags:
        return None
    found = run(mixed)
    if not isinstance(found, Failure):
        return f"a result of tensors on meta and on the CPU: {_text(found)}"
    if "meta" in found.whole and "cpu" in found.whole or found == cpu:
        return None
    return f"the error of tensors on two devices does not name them: {found}"


FORMS = {
    "meta": _meta_differs,
    "general path": _general_path_differs,
    "method": _method_differs,
    "in place": _inplace_differs,
    "out=": _out_differs,
    "out= of another layout": _strided_out_differs,
    "mixed devices": _mixes_devices,
}
"""What is compared with the call on the CPU."""
