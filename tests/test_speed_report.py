"""What the benchmarks make of their rows, and that their cases run; how fast they are is no matter of tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """(report, cases) of the benchmarks."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("report", "cases"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import cases  # type: ignore[import-not-found]
    import report  # type: ignore[import-not-found]

    return report, cases


def rows_of(report: Any) -> list[Any]:
    return [
        report.Row("calls", "add", 1e-6, 0.25e-6),
        report.Row("calls", "mul <&>", 1e-6, 1e-6),
        report.Row("sums", "sum", 2e-3, 4e-3),
        report.Row("sums", "mean", None, None, "differs"),
    ]


def test_page_and_plot(benchmarks: tuple[Any, Any], tmp_path: Path) -> None:
    report, _ = benchmarks
    page, plot = tmp_path / "speed.md", tmp_path / "speed.svg"
    report.write(rows_of(report), {"mindtorch_v2": "1", "torch": "2"}, page, plot)
    text = page.read_text(encoding="utf-8")
    assert "| calls | 2 | 0.50 | 2 | 1.00, mul <&> |" in text and "| all | 3 | 0.79 | 2 | 2.00, sum |" in text
    assert (
        "Without a ratio: mean (differs)." in text and "| add | 0.2 us | 1.0 us | 0.25 |" in text and "torch 2" in text
    )
    assert "![Ratios by family](speed.svg)" in text
    tree = ElementTree.fromstring(plot.read_text(encoding="utf-8"))
    titles = [e.text for e in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert "mul <&>: 1.00" in titles and len(titles) == 4
    bars = [float(e.attrib["width"]) for e in tree.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(bars) == 2 and 0 < bars[0] < bars[1]


def test_comparison(benchmarks: tuple[Any, Any], tmp_path: Path) -> None:
    report, _ = benchmarks
    rows = rows_of(report)
    file = tmp_path / "ratios.yaml"
    report.store(rows, file)
    before = report.stored(file)
    assert before == {"calls": 0.5, "sums": 2.0}
    assert report.regressions(rows[:3], before, 1.5) == []
    assert report.regressions(rows, before, 1.5) == ["sums: mean: differs"]
    slower = [row._replace(ours=row.ours * 1.6) for row in rows[:2]]
    assert report.regressions(slower, before, 1.5) == ["calls: 0.80 of PyTorch's time, 0.50 before"]
    assert "no stored ratio" in report.regressions(rows[:2], {}, 1.5)[0]


def test_every_family_has_a_ratio_and_cases_that_run(benchmarks: tuple[Any, Any]) -> None:
    import mindtorch_v2 as torch

    report, cases = benchmarks
    families = {case.family: case for case in cases.CASES if "1e7" not in case.family and "bytes" not in case.family}
    assert set(report.stored()) == {case.family for case in cases.CASES}
    assert len({(case.family, case.name) for case in cases.CASES}) == len(cases.CASES)
    for case in families.values():
        work = case.make(torch)
        assert work() is not None or case.family == "training"
