"""Record what PyTorch's modules, initializers, optimizers and schedules give, for the tests of nn and optim.

Run in an environment with PyTorch, from the root of the repository: `python tests/record_nn.py`. It rewrites
tests/mindtorch_v2/data/nn.json with the outcome of every expression in tests/mindtorch_v2/nn_cases.py and optim_function_cases.py.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

TESTS = Path(__file__).parent / "mindtorch_v2"
sys.path.insert(0, str(TESTS))

import nn_cases  # noqa: E402
import optim_function_cases  # noqa: E402


def plain(value: Any) -> Any:
    """`value` as JSON: a tensor as shape, dtype and numbers of eight digits."""
    if isinstance(value, torch.Tensor):
        numbers = value.detach().reshape(-1).tolist()
        if value.is_floating_point():
            numbers = [float(f"{number:.8g}") for number in numbers]
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch."), "values": numbers}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def main() -> None:
    warnings.simplefilter("ignore")
    record = {
        "modules": [plain(nn_cases.run_module(torch, *case)) for case in nn_cases.MODULES],
        "inits": [plain(nn_cases.run_init(torch, math, *case)) for case in nn_cases.INITS],
        "optimizers": [],
        "functions": [
            plain(optim_function_cases.run_function(torch, *case)) for case in optim_function_cases.FUNCTIONS
        ],
        "schedules": [],
    }
    for expression in nn_cases.OPTIMIZERS:
        optimizer, params = nn_cases.run_optimizer(torch, expression)
        state = optimizer.state_dict()
        record["optimizers"].append(
            {
                "repr": repr(optimizer),
                "params": plain(params),
                "state": {number: sorted(entries) for number, entries in state["state"].items()},
                "groups": [sorted(group) for group in state["param_groups"]],
            }
        )
    for expression in nn_cases.SCHEDULES:
        scheduler, _, history = nn_cases.run_schedule(torch, expression)
        record["schedules"].append({"history": history, "keys": sorted(scheduler.state_dict())})
    lines = [
        f'"{kind}": [\n' + ",\n".join(json.dumps(entry) for entry in entries) + "\n]"
        for kind, entries in record.items()
    ]
    (TESTS / "data" / "nn.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
