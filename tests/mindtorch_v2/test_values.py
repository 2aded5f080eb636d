"""Values, dtypes, shapes, strides and errors against those recorded from PyTorch 2.13.0 by tests/record_values.py."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hand_picked import EXPRESSIONS, evaluate
from strategies import Case, Row, read_rows, unpack
from strategies.outcomes import attempt
from strategies.results import close, difference

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops

DATA = Path(__file__).parent / "data"
ROWS = {row.name: row for row in read_rows()}

DIFFERENT: dict[str, str] = {}
"""By operator (or expression): why it does not give PyTorch's outcome today. One that does fails the run."""


def _read(path: Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


FILES = {path.name.split(".")[0]: _read(path) for path in sorted((DATA / "values").glob("*.json.gz"))}
RECORDED = {name: cases for content in FILES.values() for name, cases in content["operators"].items()}
ABSENT = {name for content in FILES.values() for name in content["absent"]}
EXPECTED = _read(DATA / "hand_picked.json.gz")


def _marks(name: str) -> list:
    return [pytest.mark.xfail(strict=True, reason=DIFFERENT[name])] if name in DIFFERENT else []


def run(row: Row, arguments: dict) -> tuple[Case, Any]:
    """A recorded case, and its outcome here."""
    case = Case(row, {name: unpack(value) for name, value in arguments.items()})
    positional, keywords = case.build(torch)
    torch.manual_seed(0)
    return case, attempt(lambda: getattr(ops, row.base_name)(*positional, **keywords))


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in ROWS])
def test_operator(name: str) -> None:
    if name in ABSENT:
        pytest.skip("PyTorch has no such operator, or none that can be called")
    if name not in RECORDED:
        pytest.skip("no values recorded: run tests/record_values.py where PyTorch is installed")
    problems = []
    for arguments, expected in RECORDED[name]:
        case, found = run(ROWS[name], arguments)
        if problem := difference(expected, found):
            problems.append(f"{problem}\n  in {case.show(f'ops.{ROWS[name].base_name}')}")
    assert not problems, f"{len(problems)} of {len(RECORDED[name])} cases:\n" + "\n".join(problems)


@pytest.mark.parametrize("text", [pytest.param(text, marks=_marks(text)) for text in EXPRESSIONS])
def test_expression(text: str) -> None:
    problem = difference(EXPECTED[text], evaluate(text, torch))
    assert problem is None, problem


def test_records_are_of_the_reference() -> None:
    assert {content["torch"] for content in FILES.values()} == {"2.13.0"}


def test_records_cover_the_schema() -> None:
    """Most operators have several recorded cases, and errors are among them."""
    assert len(RECORDED) > 0.85 * len(ROWS)
    errors = sum("error" in expected for cases in RECORDED.values() for _, expected in cases)
    assert errors > 300
    assert not set(DIFFERENT) - set(ROWS) - set(EXPRESSIONS)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1.0, 1.0 + 1e-6, True),
        (1.0, 1.001, False),
        (float("nan"), float("nan"), True),
        (float("nan"), 0.0, False),
        (float("inf"), float("-inf"), False),
        (1 + 1j, 1 + 1.001j, False),
        (1, 2, False),
    ],
)
def test_comparison_can_fail(one: Any, other: Any, expected: bool) -> None:
    assert close(one, other, 1.3e-6, 1e-5) is expected


def test_differences_are_seen() -> None:
    recorded = {"dtype": "float32", "shape": [2], "stride": [1], "values": [1.0, 2.0]}
    assert difference(recorded, torch.tensor([1.0, 2.0])) is None
    assert "dtype" in difference(recorded, torch.tensor([1, 2]))
    assert "shape" in difference(recorded, torch.tensor([[1.0, 2.0]]))
    assert "element 1" in difference(recorded, torch.tensor([1.0, 2.1]))
    assert "strides" in difference(recorded, torch.tensor([1.0, 0.0, 2.0])[::2])
    assert "expected RuntimeError" in difference({"error": "RuntimeError", "message": "no"}, torch.tensor(1))
    assert "results" in difference({"items": [recorded]}, (torch.tensor([1.0, 2.0]),) * 2)
