"""What `wide.py` makes of its rows: text, the page docs/performance.md with a plot, and the comparison with ratios of an earlier run. Needs neither library."""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
PLOT = PAGE.with_suffix(".svg")
RATIOS = HERE / "ratios.yaml"


class Row(NamedTuple):
    """A case: seconds of PyTorch and of this library, None where `problem` says why there are none."""

    family: str
    name: str
    theirs: float | None
    ours: float | None
    problem: str = ""

    @property
    def ratio(self) -> float | None:
        """Our time by PyTorch's."""
        return None if self.theirs is None or self.ours is None else self.ours / self.theirs

    def line(self) -> str:
        """The row as text."""
        if self.ratio is None:
            return f"{self.family:26} {self.name:32} {self.problem}"
        return (
            f"{self.family:26} {self.name:32} {self.theirs * 1e3:10.4f} ms {self.ours * 1e3:10.4f} ms {self.ratio:6.2f}"
        )


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs))


def by_family(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows that have ratios, by family in order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.ratio is not None:
            found.setdefault(row.family, []).append(row)
    return found


def ratios_of(rows: Iterable[Row]) -> list[float]:
    """The ratios."""
    return [row.ratio for row in rows if row.ratio is not None]


def text_of(rows: list[Row]) -> str:
    """Families with counts, geometric means and the worst case, and all together."""
    lines = []
    for family, members in by_family(rows).items():
        ratios = ratios_of(members)
        lines.append(f"{family:26} {len(ratios):3} cases  {mean(ratios):5.2f}  worst {max(ratios):5.2f}")
    ratios = ratios_of(rows)
    if ratios:
        lines.append(f"{'all':26} {len(ratios):3} cases  {mean(ratios):5.2f}  worst {max(ratios):5.2f}")
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------------------- comparison


def store(rows: list[Row], file: Path = RATIOS) -> None:
    """Write the geometric means by family."""
    lines = [
        "# Our time by PyTorch's, geometric means by family: `wide.py --store` writes them, `make check-speed` compares."
    ]
    lines += [f"{family}: {mean(ratios_of(members)):.3f}" for family, members in by_family(rows).items()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def stored(file: Path = RATIOS) -> dict[str, float]:
    """The geometric means of an earlier run."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {family: float(value) for family, _, value in (line.rpartition(":") for line in lines)}


def regressions(rows: list[Row], before: Mapping[str, float], margin: float) -> list[str]:
    """What is wrong: families that are `margin` times worse than before or were not there, and cases without times."""
    found = [f"{row.family}: {row.name}: {row.problem}" for row in rows if row.ratio is None]
    for family, members in by_family(rows).items():
        now = mean(ratios_of(members))
        if family not in before:
            found.append(f"{family}: no stored ratio; `wide.py --store` writes it")
        elif now > margin * before[family]:
            found.append(f"{family}: {now:.2f} of PyTorch's time, {before[family]:.2f} before")
    return found


# ---------------------------------------------------------------------------------------------------------------- page


def processor() -> str:
    """The processor's name, as the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def write(rows: list[Row], versions: Mapping[str, str], page: Path = PAGE, plot: Path = PLOT) -> None:
    """The page and its plot."""
    page.write_text(page_of(rows, versions, plot.name), encoding="utf-8")
    plot.write_text(plot_of(rows), encoding="utf-8")


def page_of(rows: list[Row], versions: Mapping[str, str], plot: str) -> str:
    """docs/performance.md."""
    where = f"{processor()}, Python {platform.python_version()}, " + ", ".join(f"{k} {v}" for k, v in versions.items())
    lines = [
        "# Speed",
        "",
        f"Our time by PyTorch's: below 1 is faster. One run of `make benchmarks` on {datetime.date.today().isoformat()}: {where}; one thread, both libraries by turns in one process,",
        "medians of thread CPU time. `benchmarks/cases.py` has the cases, `make check-speed` compares a run with the stored ratios.",
        "",
        f"![Ratios by family]({plot})",
        "",
        "| family | cases | geometric mean | at or below 1 | worst |",
        "|---|---|---|---|---|",
    ]
    for family, members in [*by_family(rows).items(), ("all", [row for row in rows if row.ratio is not None])]:
        ratios = ratios_of(members)
        worst = max(members, key=lambda row: row.ratio or 0)
        below = sum(ratio <= 1 for ratio in ratios)
        lines.append(f"| {family} | {len(ratios)} | {mean(ratios):.2f} | {below} | {worst.ratio:.2f}, {worst.name} |")
    missing = [row for row in rows if row.ratio is None]
    if missing:
        lines += ["", "Without a ratio: " + "; ".join(f"{row.name} ({row.problem})" for row in missing) + "."]
    for family, members in by_family(rows).items():
        lines += [
            "",
            f"## {family[0].upper()}{family[1:]}",
            "",
            "| case | mindtorch_v2 | torch | ratio |",
            "|---|---|---|---|",
        ]
        for row in members:
            lines.append(f"| {row.name} | {_time(row.ours)} | {_time(row.theirs)} | {row.ratio:.2f} |")
    return "\n".join(lines) + "\n"


def _time(seconds: float | None) -> str:
    assert seconds is not None
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


_LEFT, _RIGHT, _STEP, _TOP = 220, 640, 26, 34
_LOWEST, _HIGHEST = 1 / 16, 4.0


def _across(ratio: float) -> float:
    """Where a ratio stands from left to right, by its logarithm."""
    kept = min(max(ratio, _LOWEST), _HIGHEST)
    return _LEFT + (_RIGHT - _LEFT) * math.log(kept / _LOWEST) / math.log(_HIGHEST / _LOWEST)


def plot_of(rows: list[Row]) -> str:
    """The plot as SVG: a bar for the geometric mean of each family, and a dot for each case. Its colours read on light and dark pages."""
    families = by_family(rows)
    height = _TOP + _STEP * len(families) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_RIGHT + 60} {height}" font-family="sans-serif" font-size="12">',
        "<title>Our time by PyTorch's, by family</title>",
    ]
    for tick in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4):
        x, mark = _across(tick), 1.5 if tick == 1 else 0.4
        parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{height - 10}" stroke="#888" stroke-width="{mark}"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle" fill="#888">{tick:g}</text>')
    for number, (family, members) in enumerate(families.items()):
        y = _TOP + _STEP * number
        average = mean(ratios_of(members))
        colour = "#2a9d5c" if average <= 1 else "#d0653a"
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 14}" text-anchor="end" fill="#888">{escape(family)}</text>')
        parts.append(
            f'<rect x="{_LEFT}" y="{y + 3}" width="{_across(average) - _LEFT:.1f}" height="14" fill="{colour}" fill-opacity="0.55"/>'
        )
        for row in members:
            title = escape(f"{row.name}: {row.ratio:.2f}")
            parts.append(
                f'<circle cx="{_across(row.ratio or 1):.1f}" cy="{y + 10}" r="2.4" fill="{colour}"><title>{title}</title></circle>'
            )
        parts.append(f'<text x="{_RIGHT + 8}" y="{y + 14}" fill="#888">{average:.2f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
