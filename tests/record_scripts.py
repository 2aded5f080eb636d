"""Record TorchScript files of PyTorch, and what their modules give: `tests/mindtorch_v2/data/scripts.json.gz`. Run with PyTorch."""

from __future__ import annotations

import base64
import gzip
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent / "mindtorch_v2"
sys.path.insert(0, str(HERE))

import script_cases  # noqa: E402


def shown(value: Any) -> Any:
    """A value as JSON."""
    if isinstance(value, torch.Tensor):
        return {"tensor": str(value.dtype).removeprefix("torch."), "of": value.tolist()}
    if isinstance(value, tuple):
        return {"tuple": [shown(one) for one in value]}
    if isinstance(value, list):
        return [shown(one) for one in value]
    if isinstance(value, dict):
        return {"dict": [[shown(key), shown(one)] for key, one in value.items()]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    return value


def outcome(module: Any, arguments: tuple) -> Any:
    """What a call gives, or the last line of its error."""
    try:
        return shown(module(*arguments))
    except (RuntimeError, torch.jit.Error) as error:
        return {"error": str(error).strip().splitlines()[-1]}


def recorded(module: Any, calls: tuple) -> dict[str, Any]:
    """The records of a file, arguments and results."""
    if not isinstance(module, torch.jit.ScriptModule):
        module = torch.jit.script(module() if isinstance(module, type) else module)
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    with zipfile.ZipFile(buffer) as archive:
        records = {}
        for name in archive.namelist():
            short = name.partition("/")[2]
            if short.endswith(".debug_pkl") or short == ".data/serialization_id":
                continue
            content = archive.read(name)
            records[short] = (
                content.decode() if short.endswith(".py") else {"base64": base64.b64encode(content).decode()}
            )
    buffer.seek(0)
    loaded = torch.jit.load(buffer)
    calls = tuple(arguments if isinstance(arguments, tuple) else (arguments,) for arguments in calls)
    given = [shown(arguments) for arguments in calls]
    return {"records": records, "calls": [[one, outcome(loaded, arguments)] for one, arguments in zip(given, calls)]}


def main() -> None:
    found = {name: recorded(module, calls) for name, module, calls in script_cases.CASES}
    target = HERE / "data" / "scripts.json.gz"
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(json.dumps(found, separators=(",", ":")).encode())
    print(f"{len(found)} scripts, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
