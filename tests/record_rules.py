"""Writes down what PyTorch's CPU says to the calls of tests/mindtorch_v2/rule_cases.py.

Needs PyTorch; the tests do not:

python tests/record_rules.py
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings

import torch

FOLDER = pathlib.Path(__file__).parent / "mindtorch_v2"
sys.path.insert(0, str(FOLDER))

import rule_cases  # noqa: E402


def tensor(text: str) -> torch.Tensor:
    """The tensor of zeros written as `text`."""
    name, shape, stride, offset = rule_cases.parse(text)
    dtype = getattr(torch, name)
    if stride is None:
        return torch.zeros(shape, dtype=dtype)
    span = offset + 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
    return torch.zeros(span, dtype=dtype).as_strided(shape, stride, offset)


def answer(case: str) -> dict[str, object]:
    """PyTorch's results, each as [shape, strides, dtype, offset], or its error."""
    tensors, _, expression = rule_cases.split(case)
    scope = {"torch": torch, **dict(zip("abc", map(tensor, tensors), strict=False))}
    try:
        found = eval(expression, scope)
    except Exception as error:  # noqa: BLE001 - any error is an answer
        return {"error": type(error).__name__, "message": str(error).split("\nException raised from")[0]}
    outputs = [found] if isinstance(found, torch.Tensor) else list(found)
    return {
        "results": [
            [list(one.shape), list(one.stride()), str(one.dtype).removeprefix("torch."), one.storage_offset()]
            for one in outputs
        ]
    }


def main() -> None:
    """Writes data/rules.json."""
    warnings.simplefilter("ignore")
    records = {case: answer(case) for case in rule_cases.CASES}
    lines = ",\n".join(f"{json.dumps(case)}: {json.dumps(record)}" for case, record in records.items())
    (FOLDER / "data" / "rules.json").write_text("{\n" + lines + "\n}\n")
    print(f"{len(records)} cases, torch {torch.__version__}")


if __name__ == "__main__":
    main()
