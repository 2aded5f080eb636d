"""Records from PyTorch what calls with a slip in them are answered with: tests/mindtorch_v2/data/wrong_calls.json. The calls follow from the schema's
signatures: an argument of another kind, too few, too many, an unknown name, an `out=` that is no tensor.

make record
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "mindtorch_v2"))

import _wrong_calls  # noqa: E402

DATA = ROOT / "tests" / "mindtorch_v2" / "data" / "wrong_calls.json"
COUNT = 900
NAMESPACES = {"torch": "", "linalg": "linalg.", "fft": "fft.", "special": "special."}
STATEFUL = re.compile("from_file|set_num|manual_seed|storage|resize_|hash_tensor")
X = "T.ones(2,3)"
GOOD = {
    "Tensor": X,
    "int": "1",
    "SymInt": "1",
    "float": "0.5",
    "bool": "True",
    "Scalar": "2",
    "str": '"none"',
    "ScalarType": "T.float32",
    "Device": '"cpu"',
}
GOOD_LISTS = {"Tensor": f"[{X},{X}]", "float": "[1.5]", "bool": "[True]"}
WRONG = (
    "'a' None [1,2] 1.5 object() (1,'x') T.ones(2,3) T.ones(3,dtype=T.int64) {} -7 5 True 1j [] T.float32 T.ones(4,5) T.ones(2,dtype=T.bool)"
).split(" ")
OUTS = ("5", "T.ones(2,3,dtype=T.int64)", "[1]", "'a'")
SLIPS = ("wrong", "wrong", "wrong", "wrong", "few", "many", "unknown", "out", "keyword")


def rows() -> list[dict[str, Any]]:
    spec = importlib.util.spec_from_file_location("test_table", ROOT / "generated" / "test_table.py")
    assert spec is not None and spec.loader is not None
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    return [row for row in table.ROWS if row["namespace"] in NAMESPACES and not row["name"].startswith("_")]


def draw(pick: random.Random, row: dict[str, Any]) -> str | None:
    """A call of an operator with one slip; None where it has no such place."""
    positional = [p for p in row["parameters"] if not p[3]]
    keywords = [p[0] for p in row["parameters"] if p[3]]
    args = [_good(p[1]) for p in positional if not p[2] or pick.random() < 0.3]
    name = NAMESPACES[row["namespace"]] + row["public"]
    is_method = "method" in row["forms"] and bool(args) and args[0] == X and pick.random() < 0.4
    slip, named = pick.choice(SLIPS), ""
    first = 1 if is_method else 0
    if slip == "wrong" and len(args) > first:
        args[pick.randrange(first, len(args))] = pick.choice(WRONG)
    elif slip == "few" and len(args) > first:
        args.pop()
    elif slip == "many":
        args += pick.sample(WRONG, 2)
    elif slip == "unknown":
        named = "foo=1"
    elif slip == "out":
        named = f"out={pick.choice(OUTS)}"
    elif slip == "keyword" and keywords:
        named = f"{pick.choice(keywords)}={pick.choice(WRONG)}"
    else:
        return None
    given = ", ".join([*args[first:], *([named] if named else [])])
    return f"{X}.{row['public']}({given})" if is_method else f"T.{name}({given})"


def _good(kind: str) -> str:
    base = kind.replace("?", "").partition("[")[0]
    return GOOD_LISTS.get(base, "[1]") if "[" in kind else GOOD.get(base, "None")


def calls() -> Iterator[str]:
    pick, table, seen = random.Random("wrong calls"), rows(), set()
    while True:
        call = draw(pick, pick.choice(table))
        if call is not None and call not in seen and not STATEFUL.search(call):
            seen.add(call)
            yield call


def by_hand() -> None:
    """The calls of the list, but those that are no mistake, or of which PyTorch says what no other library can."""
    _wrong_calls.prepare(torch)
    found = {}
    for call in _wrong_calls.calls():
        signal.alarm(20)
        kind, text = _wrong_calls.answer(torch, call)
        signal.alarm(0)
        if kind != "no error" and "frame #0" not in text:
            found[call] = [kind, text]
    _wrong_calls.RECORD.write_text(json.dumps(found, indent=0) + "\n")


def main() -> None:
    warnings.simplefilter("ignore")
    by_hand()
    found: dict[str, list[str]] = {}
    for call in calls():
        if len(found) == COUNT:
            break
        signal.alarm(10)
        try:
            eval(call, {"T": torch})
        except AttributeError as error:
            if "has no attribute" not in str(error):
                found[call] = ["AttributeError", str(error)]
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the record
            if re.search(" at 0x[0-9a-f]", str(error)) is None:
                found[call] = [type(error).__name__, str(error)]
        signal.alarm(0)
    DATA.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    main()
