"""Numbers and memory at the edges into every function of the schema: `extremes.py SEED COUNT|FIRST:END` makes so many calls and prints what came of them as JSON.

Whole numbers that C cannot add to, floats that are none, and tensors over arrays that lie at odd addresses, run backwards, stand still, are written in the other byte order, may not be
written to, or have no elements and large dimensions. A call may give a result or any exception; it may not end the process (run it under sanitizers: build.py), hang, or leave arrays that
may not be written to changed.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import sys
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
from calls import DEVICE, NAMESPACES, SANITIZED, rows

import mindtorch_v2 as torch

SECONDS = 5.0
AS_LONG = ("_polynomial_", "tensor_split.sections", "chunk", "split", "unbind")
"""Operators that do as much as a number says, in PyTorch too: terms of a polynomial, or tensors of a list."""
WHOLE = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    -3,
    5,
    127,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**40,
    2**61,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
    2**63,
    2**64,
]
REAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), -float("inf")]
WORDS = [
    "mean",
    "sum",
    "none",
    "",
    "floor",
    "trunc",
    "reflect",
    "constant",
    "tanh",
    "fro",
    "nuc",
    "L",
    "U",
    "left",
    "x" * 100,
    "é",
    "ij,jk->ik",
    "i" * 60 + "->i",
    "...",
    ",",
    "->",
]
DTYPES = [torch.float32] * 4 + [
    torch.float64,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.int8,
    torch.bool,
    torch.bfloat16,
    torch.float16,
    torch.complex64,
    torch.uint16,
]
SHAPES = [
    (),
    (1,),
    (3,),
    (2, 3),
    (3, 3),
    (2, 3, 4),
    (1, 2, 8, 8),
    (2, 2, 3, 3, 3),
    (0,),
    (0, 3),
    (3, 0),
    (0, 2**31),
    (2**31, 0, 2**30),
    (1,) * 12,
    (2, 1, 1, 2),
    (65,),
    (7, 33),
]


def array(pick: random.Random, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """An array of numpy's that lies in memory as few do."""
    made = np.asarray(np.ones(shape) * pick.choice((0, 1, 2, 5)), dtype)
    kind = pick.randrange(7)
    if kind == 0 and made.size:  # at an odd address
        memory = np.zeros(made.nbytes + 1, np.uint8)
        made = memory[1:].view(made.dtype).reshape(shape)
    elif kind == 1 and made.ndim:
        made = made[(slice(None, None, -1),) * made.ndim]
    elif kind == 2:
        made = made.astype(made.dtype.newbyteorder())
    elif kind == 3:
        made.flags.writeable = False
    elif kind == 4:
        made = np.broadcast_to(made.flat[0] if made.size else made, shape)
    elif kind == 5 and made.ndim:
        made = np.asfortranarray(made)
    elif kind == 6 and made.size:  # each element stands in a record
        record = np.zeros(shape, [("before", "u1"), ("value", made.dtype)])
        record["value"] = made
        made = record["value"]
    return made


def tensor(pick: random.Random) -> Any:
    shape = pick.choice(SHAPES)
    if pick.random() < 0.4:
        name = pick.choice(["float32", "float32", "float64", "int64", "int32", "uint8", "bool", "complex64", "float16"])
        given = array(pick, name, shape)
        try:
            return pick.choice((torch.from_numpy, torch.as_tensor, torch.asarray))(given)
        except (ValueError, TypeError, RuntimeError):
            pass
    made = torch.ones(shape, dtype=pick.choice(DTYPES), device=DEVICE)
    kind = pick.randrange(10)
    if kind == 0 and made.dim():
        made = made.transpose(0, -1)
    elif kind == 1 and made.numel():
        made = made.flatten()[:1].expand(pick.choice(((3,), (2, 3), (1 << 12,), (2, 0, 5))))
    elif kind == 2 and made.numel():
        made = made.as_strided(pick.choice(((2, 2), (3,), ())), pick.choice(((0, 0), (1, 1), (0,), (1,), ())))
    elif kind == 3 and made.is_floating_point():
        made = made * pick.choice(REAL)
    elif kind == 4 and not made.is_floating_point() and made.dtype not in (torch.bool, torch.complex64):
        made = torch.full(shape, pick.choice((-1, 0, 1, 2, 100)), dtype=torch.int64, device=DEVICE)
    elif kind == 5 and made.dim():
        made = made[..., ::2]
    elif kind == 6 and made.is_floating_point():
        made = made.requires_grad_(True)
    elif kind == 7:
        made = torch.full(shape, pick.choice((2**62, -(2**63), 2**63 - 1)), dtype=torch.int64, device=DEVICE)
    return made


def value(pick: random.Random, kind: str) -> Any:
    base, _, size = kind.replace("?", "").partition("[")
    if kind.endswith("?") and pick.random() < 0.2:
        return None
    if "[" in kind:
        count = int(size[:-1]) if size[:-1].isdigit() and pick.random() < 0.7 else pick.choice((0, 1, 2, 3, 4, 30))
        return [value(pick, base) for _ in range(count)]
    if base == "Tensor":
        return tensor(pick)
    return {
        "int": lambda: pick.choice(WHOLE) if pick.random() < 0.25 else pick.randrange(-2, 3),
        "SymInt": lambda: pick.choice(WHOLE) if pick.random() < 0.25 else pick.randrange(-2, 3),
        "float": lambda: pick.choice(REAL),
        "bool": lambda: pick.random() < 0.5,
        "Scalar": lambda: pick.choice([*WHOLE, *REAL, 1j, complex("nan"), True]),
        "str": lambda: pick.choice(WORDS),
        "ScalarType": lambda: pick.choice(DTYPES),
        "Device": lambda: pick.choice(["cpu", "meta"]),
        "MemoryFormat": lambda: pick.choice([torch.contiguous_format, torch.channels_last, torch.preserve_format]),
    }.get(base, lambda: None)()  # fmt: skip


def call(pick: random.Random, row: dict[str, Any]) -> None:
    positional = [p for p in row["parameters"] if not p[3]]
    while positional and positional[-1][2] and pick.random() < 0.4:
        positional.pop()
    args = [value(pick, p[1]) for p in positional]
    kwargs = {p[0]: value(pick, p[1]) for p in row["parameters"] if p[3] and pick.random() < 0.4}
    if pick.random() < 0.1:
        kwargs["out"] = tensor(pick)
    frozen = [(a, a.detach().numpy().copy()) for a in args if isinstance(a, torch.Tensor) and a.device.type == "cpu" and not a.requires_grad and a.dtype != torch.bfloat16 and a._payload.__class__ is np.ndarray and not a._payload.flags.writeable and not a.is_sparse]  # fmt: skip
    name = row["public"]
    home: Any = torch
    for part in NAMESPACES.get(row["namespace"], "").split("."):
        home = getattr(home, part) if part else home
    if args and isinstance(args[0], torch.Tensor) and hasattr(torch.Tensor, name) and pick.random() < 0.6:
        in_place = name + pick.choice(["", "", "_"])
        name = in_place if hasattr(args[0], in_place) else name
        function, rest = getattr(args[0], name), args[1:]
    else:
        function, rest = getattr(home, name, None) or getattr(torch.ops.aten, row["name"]), args
    if pick.random() < 0.1:
        with torch.pipeline():
            result = function(*rest, **kwargs)
    else:
        result = function(*rest, **kwargs)
    if isinstance(result, torch.Tensor) and result.requires_grad and pick.random() < 0.5:
        result.sum().backward()
    repr(result)
    for one, before in frozen:
        if not name.endswith("_") and not np.array_equal(
            one.detach().numpy(), before, equal_nan=before.dtype.kind in "fc"
        ):
            raise SystemError("an array that may not be written to has changed")


def main(seed: str, numbers: range) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    faulthandler.enable()
    table = [row for row in rows() if not any(part in row["name"] for part in AS_LONG)]
    if not SANITIZED:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    for number in numbers:
        if SANITIZED or "TELL" in os.environ:
            print(f"@{number}", file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(SECONDS * (60 if SANITIZED else 12), exit=True)
        pick = random.Random(f"{seed} {number}")
        row = table[number % len(table)]
        begun = time.thread_time()
        try:
            call(pick, row)
            outcome = "a result"
        except SystemError as error:
            outcome = "SystemError"
            problems.append(f"{seed} {number} {row['name']}: {error!r}")
        except Exception as error:  # noqa: BLE001 (any is an answer)
            outcome = type(error).__name__
            if outcome in (
                "ZeroDivisionError",
                "RecursionError",
                "UnboundLocalError",
                "NameError",
                "AssertionError",
                "AxisError",
            ):
                problems.append(f"{seed} {number} {row['name']}: {error!r}")
        outcomes[outcome] += 1
        if time.thread_time() - begun > SECONDS * (20 if SANITIZED else 1):
            problems.append(f"{seed} {number} {row['name']}: {time.thread_time() - begun:.1f} s")
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({"outcomes": outcomes, "problems": problems}))


if __name__ == "__main__":
    main(sys.argv[1], range(*map(int, sys.argv[2].split(":"))))
