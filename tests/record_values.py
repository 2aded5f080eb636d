"""Record what PyTorch gives for every operator of the schema that it has.

Run where PyTorch 2.13.0 is installed: `python tests/record_values.py [operator ...]`. It writes tests/mindtorch_v2/data/values/FAMILY.json.gz and
data/hand_picked.json.gz; test_values.py compares with them. The operators are those of generated/test_table.py, the arguments those of the property
tests' strategies from fixed seeds, so no list of operators is kept here. With names, only these are recorded anew.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import traceback
import types
from functools import partial
from pathlib import Path
from typing import Any

import torch

TESTS = Path(__file__).resolve().parent / "mindtorch_v2"
sys.path.insert(0, str(TESTS))

from hand_picked import EXPRESSIONS, evaluate  # noqa: E402
from strategies import Case, Row, draw_case, read_rows, seeded  # noqa: E402
from strategies.outcomes import Failure, attempt  # noqa: E402
from strategies.results import pack_result, size_of  # noqa: E402

DATA = TESTS / "data"
CASES = 20
LARGEST = 100
"""Elements of a result that is worth keeping."""


def callables_of(row: Row) -> list[Any]:
    """The public function or method of PyTorch, and the operator in torch.ops.aten; those that exist."""
    spaces = {
        "torch": (torch, torch.special),
        "nn": (torch._C._nn, torch),
        "linalg": (torch.linalg,),
        "special": (torch.special,),
        "fft": (torch.fft,),
    }
    public = [getattr(space, row.public, None) for space in spaces[row.namespace]] if row.has("function") else []
    # What is written in Python there (broadcast_tensors, unique_consecutive) takes other arguments than the operator.
    found = [function for function in public if isinstance(function, types.BuiltinFunctionType)][:1]
    if not found and row.has("method") and callable(getattr(torch.Tensor, row.public, None)):
        found = [getattr(torch.Tensor, row.public)]
    name, _, overload = row.name.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    operator = getattr(packet, overload or "default", None) if packet is not None else None
    return [*found, *([operator] if operator is not None else [])]


def outcome_of(case: Case, functions: list[Any]) -> Any:
    """What PyTorch gives for a case, or None where that depends on its build.

    The operator itself answers where the public form has another signature, and says so by a TypeError.
    """
    results = []
    for function in functions:
        positional, keywords = case.build(torch)
        torch.manual_seed(0)
        results.append(attempt(partial(function, *positional, **keywords)))
        if not (isinstance(results[-1], Failure) and results[-1].kind == "TypeError"):
            break
    succeeded = [r for r in results if not (isinstance(r, Failure) and r.kind == "TypeError")]
    result = succeeded[-1] if succeeded else results[0]
    if isinstance(result, Failure):
        internal = any(text in result.message for text in ("INTERNAL ASSERT", "Could not run", "Unrecognized"))
        return None if internal or not result.message else result
    return result if size_of(result) <= LARGEST else None


def keeps_values(row: Row) -> bool:
    """Uninitialised memory has no values to keep; random streams have tests of their own."""
    return not row.is_random and not row.base_name.startswith(("empty", "new_empty", "_empty"))


def record(row: Row, functions: list[Any], skipped: set[int], progress: Any) -> list:
    """Cases and outcomes of one operator: as many that succeed as there are, and a few that fail. `progress(n)` tells which case comes next."""
    rows: list = []
    seen = set()
    failures = 0
    for number in range(4 * CASES):
        case = draw_case(seeded(f"{row.name}#{number}"), row)
        arguments = case.pack()
        key = json.dumps(arguments)
        if key in seen or len(key) > 2500 or number in skipped:
            continue
        seen.add(key)
        progress(number)
        result = outcome_of(case, functions)
        if result is None or isinstance(result, Failure) and failures >= CASES // 3:
            continue
        failures += isinstance(result, Failure)
        rows.append([arguments, pack_result(result, keeps_values(row))])
        if len(rows) == CASES:
            break
    return rows


def record_apart(row: Row, functions: list[Any]) -> list:
    """`record` in a process of its own, since some wrong arguments kill it (a division by zero in C++); such cases are left out."""
    skipped: set[int] = set()
    while True:
        with tempfile.TemporaryFile("w+") as file:
            child = os.fork()
            if child == 0:
                try:
                    rows = record(row, functions, skipped, lambda n: print(n, file=file, flush=True))
                    print(json.dumps(rows), file=file, flush=True)
                    os._exit(0)
                except Exception:  # noqa: BLE001 - the child may not return, whatever happens
                    traceback.print_exc()
                    os._exit(1)
            status = os.waitpid(child, 0)[1]
            file.seek(0)
            lines = file.read().splitlines()
        if os.WIFSIGNALED(status):
            print(f"{row.name}: case {lines[-1]} ends the process with signal {os.WTERMSIG(status)}")
            skipped.add(int(lines[-1]))
        elif status:
            raise RuntimeError(f"{row.name}: recording failed")
        else:
            return json.loads(lines[-1])


def write(path: Path, content: Any) -> None:
    """JSON, compressed; equal content gives equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, 9, mtime=0))


def main(names: list[str]) -> int:
    families: dict[str, dict] = {}
    rows = read_rows()
    for row in rows:
        families.setdefault(row.family, {"torch": torch.__version__.split("+")[0], "operators": {}, "absent": []})
    for family, content in families.items():
        path = DATA / "values" / f"{family}.json.gz"
        if names and path.exists():
            content |= json.loads(gzip.decompress(path.read_bytes()))
        own = [row for row in rows if row.family == family]
        for row in own:
            if names and row.name not in names:
                continue
            functions = callables_of(row)
            recorded = record_apart(row, functions) if functions else []
            content["operators"].pop(row.name, None)
            content["absent"] = [name for name in content["absent"] if name != row.name]
            if recorded:
                content["operators"][row.name] = recorded
            else:
                content["absent"].append(row.name)
        write(path, content)
        print(f"{family}: {len(content['operators'])} operators, {len(content['absent'])} absent")
    if not names:
        write(DATA / "hand_picked.json.gz", {text: pack_result(evaluate(text, torch)) for text in EXPRESSIONS})
    print(f"{sum(f.stat().st_size for f in (DATA / 'values').iterdir()) / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    if torch.__version__.split("+")[0] != "2.13.0":
        sys.exit(f"values are recorded from PyTorch 2.13.0, not {torch.__version__}")
    sys.exit(main(sys.argv[1:]))
