"""Writes docs/transformers.md: of the tests of transformers, what passes here of what passes with PyTorch.

    python benchmarks/transformers_tests.py run --tests TREE RUNS/5.24.0 models/bert trainer/test_trainer_callback.py ...
    python benchmarks/transformers_tests.py again --tests TREE RUNS/5.24.0
    python benchmarks/transformers_tests.py page RUNS

`run` and `again` are for the interpreter of an environment with transformers, pytest and pytest-timeout, in which `import torch` is this library (see
`torch-wheel`) or PyTorch; TREE is a checkout of transformers of that version. `run` takes models and files of tests; `again` runs what failed with this library (of some of them, if they are named):
with PyTorch to see what passes there, and with this library after a repair. The results are JUnit files, from which `page` writes the page; what RUNS has no
results of stays there as it is. Tests that fail for want of the network count as skipped. A test that passes with PyTorch and not here must have a reason in transformers_tests.yaml beside this file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

TITLES = {"models": "Models", "trainer": "Trainer", "generation": "Generation"}
ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/transformers.md"
REASONS = Path(__file__).with_suffix(".yaml")
OURS, THEIRS = "mindtorch_v2", "torch"
RANKS = (
    "test_tp_",
    "test_fsdp2_",
    "test_hsdp_",
    "test_ep_",
)  # tests of several ranks, of which each takes minutes on a small machine
NETWORK = (
    "huggingface.co",
    "OfflineModeIsEnabled",
)  # in the words of an error that nothing but a network helps against
HEADER = """\
<!-- Written by benchmarks/transformers_tests.py; never edited by hand. Reasons stand in benchmarks/transformers_tests.yaml. -->

# The tests of transformers

What passes here of what passes with PyTorch 2.13.0 on a CPU, without a network: "103 of 104" says that of 104 tests which PyTorch passes this library passes 103. PyTorch ran at least what
fails here for another reason than the network; what passes here is taken to pass there unless it was seen to fail. Tests of several ranks (tensor parallel, fully sharded) are left out, and tests of
which a part is skipped are not counted. Published packages do not have the files of tests by model: those of 5.24.0 are of a checkout near to it, whose common parts were replaced by the package's.
"""


def library() -> str:
    """Which torch this interpreter has."""
    import torch

    return OURS if "mindtorch" in str(torch.__version__) else THEIRS


def outcomes(folder: Path) -> dict[str, dict[str, str]]:
    """By what was run, test by test "passed", "failed" or "skipped"; a later run of a test stands in place of the first."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(folder.glob("*.xml"), key=lambda file: (file.stem.endswith(".again"), file.name)):
        tests = found.setdefault(file.stem.removesuffix(".again"), {})
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            kinds = {child.tag for child in case}
            if case.get("name", "").startswith(RANKS):
                continue
            name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
            said = "".join(case.itertext())
            if kinds & {"failure", "error"}:
                tests[name] = "skipped" if any(word in said for word in NETWORK) else "failed"
            else:
                tests[name] = "skipped" if "skipped" in kinds else "passed"
    return found


def pytest(tree: Path, what: list[str], junit: Path, timeout: int) -> None:
    """One run of pytest in the tree."""
    junit.parent.mkdir(parents=True, exist_ok=True)
    given = [sys.executable, "-m", "pytest", "-q", "--tb=short", f"--timeout={timeout}", "-p", "no:cacheprovider", f"--junitxml={junit}", *what]  # fmt: skip
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with open(junit.with_suffix(".log"), "w", encoding="utf-8") as log:
        subprocess.run(given, cwd=tree, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)


def file_of(item: str) -> str:
    """The file with an item's tests: `models/bert` are those of its modeling."""
    kind, _, name = item.partition("/")
    return f"tests/models/{name}/test_modeling_{name}.py" if kind == "models" else f"tests/{item}"


def run(options: argparse.Namespace) -> None:
    for item in options.items:
        junit = options.runs / library() / f"{item.removesuffix('.py').replace('/', '.')}.xml"
        pytest(options.tests, [file_of(item), "-k", f"not ({' or '.join(RANKS)})"], junit.resolve(), options.timeout)


def again(options: argparse.Namespace) -> None:
    for name, tests in outcomes(options.runs / OURS).items():
        failed = [test for test, outcome in tests.items() if outcome == "failed"]
        item = name.replace(".", "/", 1) if name.startswith("models.") else name.replace(".", "/", 1) + ".py"
        if failed and item in (options.items or [item]):
            file = file_of(item)
            junit = options.runs / library() / f"{name}.again.xml"
            pytest(options.tests, [f"{file}::{test}" for test in failed], junit.resolve(), options.timeout)


def written(text: str) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What a page says: by kind and name the cells of each version, and the rows of what is left."""
    kinds = {f"## {title}": kind for kind, title in TITLES.items()}
    cells: dict[str, dict[str, str]] = {}
    left: list[str] = []
    kind, versions = "", []
    for line in text.splitlines():
        if line.startswith("## "):
            kind = kinds.get(line, "")
        row = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else [""]
        if row[0] == "tests of":
            versions = row[1:]
        elif kind and row[0].strip("-"):
            cells[f"{kind}.{row[0]}"] = {version: cell for version, cell in zip(versions, row[1:], strict=True) if cell}
        elif len(row) == 4 and row[0].strip("-") not in ("", "version"):
            left.append(line)
    return cells, left


def page(options: argparse.Namespace) -> None:
    import yaml

    reasons: dict[str, str] = yaml.safe_load(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    cells, left = written(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else ({}, [])
    for version in sorted(path.name for path in options.runs.iterdir() if path.is_dir()):
        ours, theirs = outcomes(options.runs / version / OURS), outcomes(options.runs / version / THEIRS)
        for name, tests in ours.items():
            reference = theirs.get(name, {})
            missed = [t for t, outcome in tests.items() if outcome != "passed" and reference.get(t) == "passed"]
            unsure = [t for t, outcome in tests.items() if outcome == "failed" and t not in reference]
            if unsure:
                raise SystemExit(f"{version} {name}: {len(unsure)} failed and did not run with PyTorch: {unsure[:3]}")
            # what passes here counts unless it is known to fail with PyTorch
            passed = sum(outcome == "passed" and reference.get(t, "passed") == "passed" for t, outcome in tests.items())
            kind, _, short = name.partition(".")
            row = cells.setdefault(f"{kind}.{short.removeprefix('test_')}", {})
            row.pop(version, None)
            if passed + len(missed):
                row[version] = f"{passed} of {passed + len(missed)}"
            left = [line for line in left if not line.startswith(f"| {version} | `{name}` |")]
            left += [f"| {version} | `{name}` | `{test}` | {reasons[f'{name}::{test}']} |" for test in missed]
    versions = sorted({version for row in cells.values() for version in row})
    lines = [HEADER]
    for kind, title in TITLES.items():
        names = sorted(name for name in cells if name.startswith(f"{kind}.") and cells[name])
        if names:
            lines += [f"## {title}", "", f"| tests of | {' | '.join(versions)} |", f"|---|{'---|' * len(versions)}"]
            lines += [
                f"| {name.partition('.')[2]} | {' | '.join(cells[name].get(v, '') for v in versions)} |"
                for name in names
            ]
            lines.append("")
    sums: dict[str, Counter[str]] = {version: Counter() for version in versions}
    for row in cells.values():
        for version, cell in row.items():
            passed, _, every = cell.partition(" of ")
            sums[version].update(passed=int(passed), all=int(every))
    total = "; ".join(f"{version}: {sums[version]['passed']:,} of {sums[version]['all']:,}" for version in versions)
    lines += [f"All of them: {total}.", ""]
    if left:
        lines += ["## What is left", "", "| version | tests of | test | reason |", "|---|---|---|---|", *left, ""]
    PAGE.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for command in (run, again, page):
        one = commands.add_parser(command.__name__)
        one.add_argument("runs", type=Path, help="the folder of results")
        one.set_defaults(command=command)
        if command is not page:
            one.add_argument("--tests", type=Path, required=True, help="a checkout of transformers")
            one.add_argument("--timeout", type=int, default=300, help="seconds for one test")
            one.add_argument("items", nargs="+" if command is run else "*", help="models/NAME, or files under tests/")
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
