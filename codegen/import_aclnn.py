"""Writes schema/aclnn.yaml from a file of facts about CANN's headers.

    python -m codegen.import_aclnn FACTS.yaml [NAME ...]

The prototypes that schema/aclnn.yaml holds are read again from the facts, and those of the given names (`Abs` or `aclnnAbs`) are
added. FACTS maps, under `ops`, a name to its `args`: `{name, type, dir, role}` in C order. The trailing workspace size and executor
are the same for every function and are left out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

TARGET = Path("schema/aclnn.yaml")
HEADER = """\
# Prototypes of the aclnn functions that operators bind: first phase, without the trailing workspace size and executor.
#
#     aclnnName: [[C type, argument, in | out | inout], ...]
#
# Facts of CANN's headers (8.1.RC1 and the operator repositories of 2026), written by `python -m codegen.import_aclnn`.
# A kernel of an entry passes what is not `out`, in this order; `inout` is a tensor that is changed in place.

"""


def direction(argument: dict[str, str], position: int) -> str:
    """`in`, `out` or `inout`. Facts taken from names alone are trusted only where the C type does not say otherwise."""
    given = argument.get("dir", "in")
    if given == "inout":
        # The headers name the changed tensor `selfRef`; the const ones beside it are read only.
        changed = argument["name"].endswith("Ref") or not argument["type"].startswith("const") or position == 0
        return "inout" if changed else "in"
    return given


def prototype(facts: dict[str, list[dict[str, str]]]) -> str:
    """One flow sequence for the arguments of a function."""
    arguments = [argument for argument in facts["args"] if argument.get("role") != "trailer"]
    rows = [f"[{a['type']}, {a['name']}, {direction(a, i)}]" for i, a in enumerate(arguments)]
    return f"[{', '.join(rows)}]"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m codegen.import_aclnn", description=__doc__)
    parser.add_argument("facts", type=Path, help="YAML file of facts")
    parser.add_argument("names", nargs="*", help="functions to add")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="project root")
    options = parser.parse_args(argv)
    facts = yaml.load(options.facts.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))["ops"]
    target = options.root / TARGET
    known = yaml.safe_load(target.read_text(encoding="utf-8")) or {} if target.exists() else {}
    names = sorted({name.removeprefix("aclnn") for name in (*known, *options.names)})
    unknown = [name for name in names if name not in facts]
    if unknown:
        print(f"{options.facts}: no prototype of {', '.join(unknown)}", file=sys.stderr)
        return 1
    target.write_text(HEADER + "".join(f"aclnn{name}: {prototype(facts[name])}\n" for name in names), encoding="utf-8")
    print(f"{TARGET}: {len(names)} prototypes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
