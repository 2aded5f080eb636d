"""What the strategies draw: every rule meets every kind of argument that it admits; and a failure prints how to see it again."""

from __future__ import annotations

import contextlib
import io
from collections import defaultdict
from collections.abc import Iterator

import pytest
from strategies import Case, Operand, Parameter, Row, draw_case, read_rows, seeded
from strategies.cases import INTERNAL
from strategies.operands import contiguous
from strategies.outcomes import Failure
from strategies.variation import DTYPES, as_dtype, is_dim
from test_properties import FORMS, check, reproduction, run

from mindtorch_v2._dispatch import ops
from mindtorch_v2.library import custom_op

DRAWS = 1200
"""Per rule, over its operators: enough for every kind to occur at the rates at which they are drawn."""

NEVER_FAIL = ("alias", "like", "nan_to_num", "reverse_dims")
"""Rules that take any tensor."""

BY_RULE: dict[str, list[Row]] = defaultdict(list)
for _row in read_rows():
    if _row.is_ruled:
        BY_RULE[_row.rule].append(_row)


def _tensors(case: Case) -> Iterator[Operand]:
    for value in case.arguments.values():
        if isinstance(value, Operand):
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if isinstance(item, Operand))


def _kinds(case: Case) -> Iterator[str]:
    """The kinds of argument that a case has."""
    tensors = list(_tensors(case))
    for tensor in tensors:
        if 0 in tensor.shape:
            yield "no elements"
        if not tensor.shape:
            yield "no dimensions"
        if any(step == 0 and size > 1 for size, step in zip(tensor.shape, tensor.stride)):
            yield "expanded"
        if tensor.offset:
            yield "offset"
        if tensor.numel and any(
            step != plain and size > 1
            for size, step, plain in zip(tensor.shape, tensor.stride, contiguous(tensor.shape))
        ):
            yield "not contiguous"
        yield f"dtype {tensor.dtype}"
    if len(tensors) > 1 and any(tensor.shape != tensors[0].shape for tensor in tensors[1:]):
        yield "other shape"
        if any(0 in tensor.shape for tensor in tensors):
            yield "other shape, no elements"
        if any(not tensor.shape for tensor in tensors):
            yield "other shape, no dimensions"
    ndim = max(tensors[0].ndim, 1) if tensors else 1
    for name, value in case.arguments.items():
        if is_dim(name, value):
            yield "negative dim" if -ndim <= value < 0 else "dim" if 0 <= value < ndim else "dim out of range"


def _wanted(rows: list[Row], cases: list[Case]) -> set[str]:
    """The kinds that a rule admits: those of tensors where there is one, those of dimensions where there is one."""
    most = max(len(list(_tensors(case))) for case in cases)
    if all(row.base_name.startswith(INTERNAL) for row in rows):  # which take nothing but contiguous tensors for granted
        return set()
    wanted = set()
    if most:
        wanted |= {"no elements", "no dimensions", "offset"}
        wanted |= {f"dtype {dtype}" for dtype in DTYPES}
        if rows[0].rule not in NEVER_FAIL:
            wanted.add("fails")
    if any(tensor.numel > 1 for case in cases for tensor in _tensors(case)):
        wanted |= {"expanded", "not contiguous"}
    if most > 1:
        wanted |= {"other shape", "other shape, no elements", "other shape, no dimensions"}
    if any(is_dim(name, value) for case in cases for name, value in case.arguments.items()):
        wanted |= {"negative dim", "dim out of range"}
    return wanted


@pytest.mark.parametrize("start", "abcdefghijklmnopqrstuvwxyz")
def test_rules_meet_every_kind_of_argument(start: str) -> None:
    for rule, rows in BY_RULE.items():
        if not rule.startswith(start):
            continue
        cases, found = [], set()
        for i in range(DRAWS):
            case = draw_case(seeded(f"{rule} {i}", variety=3), rows[i % len(rows)])
            cases.append(case)
            found.update(_kinds(case))
            if "fails" not in found and isinstance(run(case, "meta"), Failure):
                found.add("fails")
        missing = _wanted(rows, cases) - found
        assert not missing, f"{rule} never meets: {sorted(missing)}"


RARE = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")
PAIRS = [(one, other) for one in DTYPES for other in DTYPES]
PAIRS += [
    pair for rare in RARE for other in (rare, "float32", "int64", "bool") for pair in {(rare, other), (other, rare)}
]


def _case_of_two_tensors(row: Row) -> Case | None:
    for i in range(20):
        case = draw_case(seeded(f"pairs {row.name} {i}", valid=True), row)
        if len([value for value in case.arguments.values() if isinstance(value, Operand)]) > 1:
            return case
    return None


@pytest.mark.parametrize("start", "abcdefghijklmnopqrstuvwxyz")
def test_rules_of_two_tensors_agree_on_every_pair_of_dtypes(start: str) -> None:
    """The CPU and meta give the same for each pair of dtypes, or the same error."""
    for rule, rows in BY_RULE.items():
        case = next(filter(None, map(_case_of_two_tensors, rows)), None)
        if not rule.startswith(start) or case is None:
            continue
        first, second = [name for name, value in case.arguments.items() if isinstance(value, Operand)][:2]
        for one, other in PAIRS:
            arguments = {
                **case.arguments,
                first: as_dtype(case.arguments[first], one),
                second: as_dtype(case.arguments[second], other),
            }
            paired = Case(case.row, arguments)
            problem = FORMS["meta"](paired, cpu := run(paired))
            assert not problem, f"{problem}\n{reproduction(paired, 'meta', cpu)}"


# How a failure is shown


def _row(name: str) -> Row:
    return Row(
        name,
        "pointwise",
        "torch",
        name,
        "none",
        ("function",),
        (Parameter("self", "Tensor", False, False),),
        ("Tensor",),
        {},
        (),
        (),
        (),
    )


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Row:
    """An operator whose fake implementation gives one row too many."""
    operator = custom_op("strategies::broken_double", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    operator.register_fake(lambda x: x.new_empty((x.shape[0] + 1, *x.shape[1:])))
    monkeypatch.setattr(ops, "broken_double", operator, raising=False)
    return _row("broken_double")


def _output(line: str) -> str:
    """What a line prints when it is run as it stands."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(line, {})
    return printed.getvalue()


LAYOUTS = [
    Operand((1.0, 2.0, 3.0, 4.0), "float32", (2, 2), (1, 2)),
    Operand((9.0, 1.0, 2.0), "float64", (2,), (1,), 1),
    Operand((float("nan"), float("inf")), "float32", (2, 3), (1, 0)),
    Operand((complex(1, -2),), "complex64", (1,), (1,)),
    Operand((True, False), "bool", (2,), (1,)),
    Operand((), "int64", (0, 2), (2, 1)),
]


@pytest.mark.parametrize("operand", LAYOUTS, ids=lambda operand: operand.dtype)
def test_printed_lines_reproduce_a_failure(broken: Row, operand: Operand) -> None:
    case = Case(broken, {"self": operand})
    with pytest.raises(AssertionError) as caught:
        check(case)
    lines = str(caught.value).split("\n")
    on_cpu, on_meta = (line for line in lines if "import mindtorch_v2 as torch" in line)
    assert on_cpu.startswith("reproduce: ") and on_meta.startswith("meta: ")
    assert _output(on_cpu.removeprefix("reproduce: ")) == f"{run(case)}\n"
    expected = f"{run(case, 'meta')}\n"
    assert _output(on_meta.removeprefix("meta: ")) == expected
    assert f"size=({operand.shape[0] + 1}," in expected


@pytest.mark.parametrize("name", ["add.Tensor", "sum.dim_IntList", "tanh", "sort", "cat", "bernoulli", "mul.Tensor"])
def test_lines_of_every_form_run(name: str) -> None:
    row = next(row for row in read_rows() if row.name == name)
    case = draw_case(seeded(name, valid=True), row)
    cpu = run(case)
    for form in FORMS:
        if (
            form == "mixed devices"
            or "out" in form
            and not row.has("out")
            or form == "method"
            and not row.has("method")
        ):
            continue
        if form == "in place" and not row.has("inplace") or form == "out= of another layout" and len(row.returns) > 1:
            continue
        for line in reproduction(case, form, cpu).split("\n"):
            assert _output(line.partition(": ")[2])
