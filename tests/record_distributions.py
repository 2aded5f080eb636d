"""Record what PyTorch says of distributions, for tests/mindtorch_v2/test_distribution_values.py.

Run in an environment with PyTorch, from the root of the repository: `python tests/record_distributions.py`. It rewrites
tests/mindtorch_v2/data/distributions.json.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

TESTS = Path(__file__).resolve().parent / "mindtorch_v2"
sys.path.insert(0, str(TESTS))

import distribution_cases as cases  # noqa: E402


def main() -> None:
    warnings.simplefilter("ignore")
    made = cases.made(torch)
    recorded: dict[str, Any] = {"answers": {}, "gradients": {}, "divergences": {}}
    for name, distribution in made.items():
        shown = repr(cases.made(torch)[name])  # it shows what has been computed already, too
        asked = cases.answers(torch, distribution)
        recorded["answers"][name] = {question: cases.outcome(call) for question, call in asked.items()}
        recorded["answers"][name]["repr"] = shown
        if (
            name in cases.PARAMETERS and distribution.has_rsample and name != "Wishart"
        ):  # PyTorch cannot differentiate it
            recorded["gradients"][name] = cases.gradients(torch, name)
    for p in made:
        for q in made:
            value = cases.outcome(lambda p=p, q=q: torch.distributions.kl_divergence(made[p], made[q]))
            if not isinstance(value, dict):
                recorded["divergences"][f"{p} / {q}"] = value
    target = TESTS / "data" / "distributions.json"
    target.write_text(json.dumps(recorded, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
