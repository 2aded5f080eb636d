"""Record what PyTorch says of sparse tensors, for tests/mindtorch_v2/test_sparse.py.

Run in an environment with PyTorch, from the root of the repository: `python tests/record_sparse.py`. It rewrites
tests/mindtorch_v2/data/sparse.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

TESTS = Path(__file__).resolve().parent / "mindtorch_v2"
sys.path.insert(0, str(TESTS))

import sparse_cases as cases  # noqa: E402


def main() -> None:
    names = cases.Names(torch)
    recorded = {call: cases.outcome(names, call) for call in cases.CASES}
    target = TESTS / "data" / "sparse.json"
    target.write_text(json.dumps(recorded, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
