"""Writes tests/mindtorch_v2/data/aclnn_prototypes.json: the C prototypes that `test_npu_bindings.py` and
`test_emulator_prototypes.py` compare the schema and the emulator with.

    python tests/record_aclnn.py FACTS.yaml [NAME ...]

FACTS maps, under `ops`, a name to its `args`: `{name, type, role}` in C order, as read from CANN's headers. Those that the schema binds, those that the file holds, and the given ones are taken.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(__file__).parent / "mindtorch_v2/data/aclnn_prototypes.json"


def main(facts: str, *names: str) -> None:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    functions = yaml.load(Path(facts).read_text(encoding="utf-8"), loader)["ops"]
    bound = yaml.load((ROOT / "schema/aclnn.yaml").read_text(encoding="utf-8"), loader)
    rows = {}
    for name in sorted({*bound, *names, *json.loads(TARGET.read_text(encoding="utf-8"))}):
        arguments = functions[name.removeprefix("aclnn")]["args"]
        rows[name] = [[a["type"], a["name"]] for a in arguments if a.get("role") != "trailer"]
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(rows)} prototypes")


if __name__ == "__main__":
    main(*sys.argv[1:])
