"""Writes docs/conformance.md: how much of PyTorch is here, by PyTorch's own lists, and why each left-over is left.

    make conformance CONFORMANCE=DIR ARRAY_API=DIR

where DIR is the operator harness and a checkout of the array API's suite. Of runs that are done it is this file alone. The reasons stand in conformance.yaml beside
this file; a left-over without one fails the run. Runs in the environment with PyTorch; what
is asked of this library is asked in a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import importlib
import json
import re
import subprocess
import sys
import types
import warnings
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/conformance.md"
REASONS = Path(__file__).with_suffix(".yaml")
SCORED = {"error_message", "stride", "repr"}  # measured by the operator harness, and not required
HEADER = """\
<!-- Written by `make conformance` (benchmarks/conformance.py); never edited by hand. Reasons stand in benchmarks/conformance.yaml. -->

# Conformance

What of PyTorch {version} is here, measured by PyTorch's own databases and lists, and why the rest is not.
"""


class Reasons:
    """The rules of conformance.yaml, which of them were used, and what no rule explains."""

    def __init__(self, rules: list[dict[str, Any]]):
        self.rules = rules
        self.used: set[int] = set()
        self.unexplained: list[str] = []

    def of(self, name: str, checks: set[str]) -> str:
        for number, rule in enumerate(self.rules):
            fits = any(fnmatch.fnmatchcase(name, pattern) for pattern in rule.get("units", ()))
            fits = fits or any(re.search(pattern, name) for pattern in rule.get("tests", ()))
            if fits and checks <= set(rule.get("checks", checks)):
                self.used.add(number)
                return rule["because"]
        self.unexplained.append(f"{name} ({', '.join(sorted(checks))})" if checks else name)
        return "?"

    def problems(self) -> Iterator[str]:
        yield from (f"no reason for {name}" for name in self.unexplained)

    def unneeded(self) -> Iterator[str]:
        """Rules that explain nothing, which may be chance: some tests draw what they look at."""
        for number, rule in enumerate(self.rules):
            if number not in self.used:
                yield f"nothing needs the reason of {rule.get('units') or rule.get('tests')}"


def operators(results: dict[str, Any], reasons: Reasons) -> list[str]:
    """The section on PyTorch's databases of operators, modules and optimizers."""
    lines = ["", "## Operators, modules and optimizers of PyTorch's test databases", ""]
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    failed: dict[str, set[str]] = {}
    for name, entry in results["results"].items():
        counted = {
            check: tally
            for checks in entry["dtypes"].values()
            for check, tally in sorted(
                checks.items(), key=lambda pair: pair[1]["passed"] == pair[1]["total"], reverse=True
            )
            if tally["total"] and check not in SCORED
        }
        if not counted:
            continue
        suite = {"module": "modules", "optim": "optimizers"}.get(name.partition(":")[0], "operators")
        failing = {
            check
            for checks in entry["dtypes"].values()
            for check, tally in checks.items()
            if check not in SCORED and tally["passed"] < tally["total"]
        }
        totals[suite][0] += not failing
        totals[suite][1] += 1
        if failing:
            failed[name] = failing
    lines += ["| suite | pass every required check | of |", "|---|---|---|"]
    lines += [f"| {suite} | {passed} | {total} |" for suite, (passed, total) in totals.items()]
    lines += ["", "| left | check | reason |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {', '.join(sorted(checks))} | {reasons.of(name, checks)} |"
        for name, checks in sorted(failed.items())
    ]
    return lines


def outcomes(file: Path) -> dict[str, str]:
    """Test by test, "passed", "failed" or "skipped", of a JUnit file."""
    found = {}
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        found[name] = "skipped" if "skipped" in kinds else "failed" if kinds & {"failure", "error"} else "passed"
    return found


def array_api(ours: dict[str, str], theirs: dict[str, str], reasons: Reasons) -> list[str]:
    """The section on the array API's suite: what PyTorch passes and this library does not is explained."""
    lines = ["", "## The array API's test suite (2024.12, through array-api-compat)", ""]
    for name, found in (("mindtorch_v2", ours), ("PyTorch", theirs)):
        counts = [list(found.values()).count(kind) for kind in ("passed", "failed", "skipped")]
        lines.append("* {}: {} passed, {} failed, {} skipped".format(name, *counts))
    left = sorted(name for name, outcome in ours.items() if outcome == "failed" and theirs.get(name) != "failed")
    lines += ["", "What PyTorch passes or skips, and this library fails:", "", "| test | reason |", "|---|---|"]
    lines += [f"| `{name}` | {reasons.of(name, set())} |" for name in left]
    return lines


def public(namespace: str) -> list[str]:
    """PyTorch's public names of a namespace: what it says itself, or what is defined there."""
    if namespace == "torch.Tensor":
        return sorted(
            n for n in dir(importlib.import_module("torch").Tensor) if n.startswith("__") or not n.startswith("_")
        )
    module = importlib.import_module(namespace)
    said = getattr(module, "__all__", None)
    if said is not None and namespace != "torch":
        return sorted(n for n in said if not isinstance(getattr(module, n, None), types.ModuleType))
    found = []
    for name in dir(module):
        value = getattr(module, name, None)
        home = getattr(value, "__module__", None)
        foreign = isinstance(home, str) and not home.startswith(
            namespace if isinstance(value, type | types.FunctionType) else "torch"
        )
        if (
            not name.startswith("_")
            and not isinstance(value, types.ModuleType)
            and not foreign
            and name != "TYPE_CHECKING"
        ):
            found.append(name)
    return found


ASK = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
from mindtorch_v2._torch_proxy import install
install()
import torch
from mindtorch_v2._torch_proxy.placeholders import reason
asked, answers = json.load(sys.stdin), {}
for namespace, names in asked["names"].items():
    try:
        place = torch.Tensor if namespace == "torch.Tensor" else importlib.import_module(namespace)
    except ImportError:
        place = None
    for name in names:
        try:
            answers[namespace + "." + name] = reason(getattr(place, name)) or ""
        except AttributeError:
            answers[namespace + "." + name] = None
for name in asked["overloads"]:
    packet, _, overload = name.partition(".")
    found = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
    answers["aten::" + name] = None if found is None else str(found._schema)
json.dump(answers, sys.stdout)
"""


def names(rules: dict[str, Any], problems: list[str]) -> list[str]:
    """The sections on names and overloads."""
    torch = importlib.import_module("torch")
    left_out = [re.compile(rule["names"]) for rule in rules["left_out"]]
    asked = {
        namespace: [name for name in public(namespace) if not any(pattern.fullmatch(name) for pattern in left_out)]
        for namespace in rules["namespaces"].split()
    }
    core = {}
    for name in torch._C._dispatch_get_all_op_names():
        packet, _, overload = name.removeprefix("aten::").partition(".")
        found = (
            getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if name.startswith("aten::")
            else None
        )
        if found is not None and torch.Tag.core in found.tags:
            core[name.removeprefix("aten::")] = str(found._schema)
    request = json.dumps({"names": asked, "overloads": sorted(core)})
    run = subprocess.run([sys.executable, "-c", ASK], input=request, stdout=subprocess.PIPE, text=True, check=True)
    answers: dict[str, str | None] = json.loads(run.stdout)
    total = [f"{namespace}.{name}" for namespace, own in asked.items() for name in own]
    absent = [name for name in total if answers[name] is None]
    raising = {name: answers[name] for name in total if answers[name]}
    same = [name for name, schema in core.items() if answers[f"aten::{name}"] == schema]
    share = 100 * (len(total) - len(absent)) / len(total)
    lines = ["", "## Public names", ""]
    lines.append(
        f"Of {len(total)} public names of {len(asked)} namespaces, {len(total) - len(absent)} are here ({share:.1f} %); the others raise AttributeError."
    )
    lines.append("Not counted: " + "; ".join(rule["because"] for rule in rules["left_out"]) + ".")
    by_place: dict[str, list[str]] = defaultdict(list)
    for name in absent:
        by_place[name.rpartition(".")[0]].append(name.rpartition(".")[2])
    lines += ["", "| namespace | absent |", "|---|---|"]
    lines += [f"| `{place}` | {' '.join(own)} |" for place, own in by_place.items()]
    lines += [
        "",
        f"These {len(raising)} can be imported, and raise when they are called:",
        "",
        "| name | reason |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {reason} |" for name, reason in raising.items()]
    lines += [
        "",
        "## Overloads of `torch.ops.aten`",
        "",
        f"Of {len(core)} overloads that PyTorch tags as core, {len(same)} are here with PyTorch's signature.",
    ]
    if share < 97:
        problems.append(f"{share:.1f} % of the names are less than 97 %")
    problems.extend(f"core overload {name} differs" for name in core if name not in same)
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", type=Path, required=True, help="what the operator harness wrote with --json")
    parser.add_argument(
        "--array-api", type=Path, required=True, help="what the array API's suite wrote with --junitxml"
    )
    parser.add_argument("--array-api-torch", type=Path, required=True, help="the same of PyTorch")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rules = yaml.safe_load(REASONS.read_text(encoding="utf-8"))
    results = json.loads(options.operators.read_text(encoding="utf-8"))
    reasons, tests = Reasons(rules["operators"]), Reasons(rules["array_api"])
    problems: list[str] = []
    lines = [HEADER.format(version=str(results["torch"]).partition("+")[0]).rstrip("\n")]
    lines += operators(results, reasons)
    lines += array_api(outcomes(options.array_api), outcomes(options.array_api_torch), tests)
    with contextlib.redirect_stdout(sys.stderr):
        lines += names(rules["names"], problems)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    problems += [*reasons.problems(), *tests.problems()]
    for note in (*problems, *reasons.unneeded(), *tests.unneeded()):
        print(note, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
