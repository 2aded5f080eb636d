"""Values, dtypes, shapes, strides and errors against those recorded from PyTorch 2.13.0 by tests/record_values.py."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from differences import DIFFERENT
from hand_picked import EXPRESSIONS, evaluate
from strategies import Case, Row, read_rows, unpack
from strategies.outcomes import Failure, attempt
from strategies.results import close, difference

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import ops

DATA = Path(__file__).parent / "data"
ROWS = {row.name: row for row in read_rows()}


def _read(path: Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


FILES = {path.name.split(".")[0]: _read(path) for path in sorted((DATA / "values").glob("*.json.gz"))}
RECORDED = {name: cases for content in FILES.values() for name, cases in content["operators"].items()}
ABSENT = {name for content in FILES.values() for name in content["absent"]}
EXPECTED = _read(DATA / "hand_picked.json.gz")


def run(row: Row, arguments: dict) -> tuple[Case, Any]:
    """A recorded case, and its outcome here."""
    stale = set(arguments) - {p.name for p in row.parameters}
    assert not stale, (
        f"recorded with parameters that it has no more, {sorted(stale)}: run tests/record_values.py {row.name}"
    )
    case = Case(row, {name: unpack(value) for name, value in arguments.items()})
    positional, keywords = case.build(torch)
    torch.manual_seed(0)
    return case, attempt(lambda: getattr(ops, row.base_name)(*positional, **keywords))


def judge(name: str, problems: list[tuple[str, str]]) -> None:
    """Fail for differences that nothing explains, and for explanations that no difference needs."""
    allowed = DIFFERENT.get(name, {})
    unexplained = [text for kind, text in problems if kind not in allowed]
    assert not unexplained, f"{len(unexplained)} differences:\n" + "\n".join(unexplained)
    gone = set(allowed) - {kind for kind, _ in problems}
    assert not gone, f"differences of these kinds are gone; strike them from DIFFERENT: {sorted(gone)}"


@pytest.mark.parametrize("name", ROWS)
def test_operator(name: str) -> None:
    if name in ABSENT:
        pytest.skip("PyTorch has no such operator, or none that can be called")
    if name not in RECORDED:
        pytest.skip("no values recorded: run tests/record_values.py where PyTorch is installed")
    problems = []
    for arguments, expected in RECORDED[name]:
        case, found = run(ROWS[name], arguments)
        if problem := difference(expected, found):
            kind, text = problem
            problems.append((kind, f"{text}\n  in {case.show(f'ops.{ROWS[name].base_name}')}"))
    judge(name, problems)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(text: str) -> None:
    problem = difference(EXPECTED[text], evaluate(text, torch))
    judge(text, [problem] if problem else [])


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

    def kind(expected: dict, found: Any) -> str:
        return difference(expected, found)[0]

    assert difference(recorded, torch.tensor([1.0, 2.0])) is None
    assert kind(recorded, torch.tensor([1, 2])) == "dtype"
    assert kind(recorded, torch.tensor([[1.0, 2.0]])) == "shape"
    assert kind(recorded, torch.tensor([1.0, 2.1])) == "values"
    assert kind(recorded, torch.tensor([1.0, 0.0, 2.0])[::2]) == "strides"
    assert kind({"error": "RuntimeError", "message": "no"}, torch.tensor(1)) == "error"
    assert kind({"error": "RuntimeError", "message": "no"}, Failure("RuntimeError", "yes", "yes")) == "message"
    assert kind({"items": [recorded]}, (torch.tensor([1.0, 2.0]),) * 2) == "result"


def test_explanations_are_strict() -> None:
    with pytest.raises(AssertionError, match="1 differences"):
        judge("no operator", [("values", "one")])
    DIFFERENT["no operator"] = {"values": "a reason"}
    try:
        judge("no operator", [("values", "one")])
        with pytest.raises(AssertionError, match="strike them"):
            judge("no operator", [])
    finally:
        del DIFFERENT["no operator"]
