"""Hostile objects as arguments of every function of the schema. `calls.py SEED COUNT|FIRST:END [THREADS]` makes so many calls and prints what came of them as JSON.

Objects lie about their length, their class and their numbers, change or free what a call is working on, call back into the library, or raise. A call may give a result or
any exception; it may not end the process (run it under sanitizers: build.py), hang, or take more memory than it says.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib.util
import json
import os
import random
import resource
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mindtorch_v2 as torch

ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = {"torch": "", "nn.functional": "nn.functional", "linalg": "linalg", "fft": "fft", "special": "special"}
LEFT_ALONE = ("from_file", "set_num", "manual_seed", "set_default", "_assert", "use_deterministic")
"""Names that change the process, or files."""
SECONDS = 5.0
DEVICE = os.environ.get("HOSTILE_DEVICE", "cpu")
LIMIT = 3 << 30
"""Bytes of addresses that a process may use: a number of 2**31 elements is no fault."""


def rows() -> list[dict[str, Any]]:
    """The operators of the schema, with their parameters."""
    spec = importlib.util.spec_from_file_location("test_table", ROOT / "generated" / "test_table.py")
    assert spec is not None and spec.loader is not None
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    return [row for row in table.ROWS if not any(part in row["name"] for part in LEFT_ALONE)]


# ----------------------------------------------------------------------------------------------------------------- objects


class Trap:
    """What hostile objects of one call share: tensors that they may change or free, and how deep they call back."""

    def __init__(self, pick: random.Random) -> None:
        self.pick = pick
        self.tensors: list[Any] = []
        self.arrays: list[np.ndarray] = []
        self.depth = 0

    def spring(self) -> None:
        """Do something to what the call may be working on."""
        if self.depth > 2:
            return
        self.depth += 1
        kind = self.pick.randrange(8)
        try:
            if kind == 0:
                self.tensors.clear()
                self.arrays.clear()
                gc.collect(0)
            elif kind == 1 and self.tensors:
                self.pick.choice(self.tensors).data = torch.ones(self.pick.choice((0, 1, 7)))
            elif kind == 2 and self.tensors:
                self.pick.choice(self.tensors).resize_(self.pick.choice((0, 1, 64)))
            elif kind == 3 and self.tensors:
                self.pick.choice(self.tensors).set_(torch.ones(1))
            elif kind == 4 and self.arrays:
                self.arrays[0].resize((0,), refcheck=True)
            elif kind == 5:
                torch.ones(3).requires_grad_(True).exp().sum().backward()
            elif kind == 6:
                with torch.pipeline():
                    (torch.ones(4) * 2).sum().item()
            else:
                raise KeyError("sprung")
        finally:
            self.depth -= 1


def objects(trap: Trap) -> list[Any]:
    """One of each kind."""
    pick = trap.pick
    numbers = [0, 1, -1, 2**31, 2**63 - 1, -(2**63), 2**64, 2**200]

    class Length(list):
        def __len__(self) -> int:
            trap.spring()
            return pick.choice([0, 1, 5, 2**40])

    class Endless(list):
        def __iter__(self) -> Iterator[Any]:
            for number in range(pick.choice([0, 2, 70])):
                trap.spring()
                yield number

    class Shrinking(list):
        def __getitem__(self, index: Any) -> Any:
            trap.spring()
            self.clear()
            return 1

    class Index:
        def __index__(self) -> int:
            trap.spring()
            return pick.choice(numbers)

        __int__ = __index__

        def __float__(self) -> float:
            trap.spring()
            return pick.choice([0.0, float("nan"), 1e308])

        def __bool__(self) -> bool:
            trap.spring()
            return pick.random() < 0.5

        def __complex__(self) -> complex:
            trap.spring()
            return 1j

    class Class:
        __class__ = property(  # type: ignore[assignment]
            lambda self: (trap.spring(), pick.choice([int, float, list, torch.Tensor, torch.dtype, type(None)]))[1]
        )

    class Hash:
        def __hash__(self) -> int:
            trap.spring()
            return pick.choice([0, -1, 2**61])

        def __eq__(self, other: object) -> Any:
            trap.spring()
            return pick.choice([True, False, NotImplemented, self])

    class Text(str):
        def __hash__(self) -> int:
            trap.spring()
            return pick.randrange(3)

        def __eq__(self, other: object) -> bool:
            trap.spring()
            return True

    class Number(int):
        def __index__(self) -> int:
            trap.spring()
            return pick.choice(numbers)

        def __hash__(self) -> int:
            trap.spring()
            return 7

        def __eq__(self, other: object) -> bool:
            trap.spring()
            return False

        def __lt__(self, other: object) -> bool:
            trap.spring()
            return True

    class Real(float):
        def __float__(self) -> float:
            trap.spring()
            return 0.5

    class Function(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            trap.spring()
            return pick.choice([NotImplemented, None, 5, args])

    class Attributes:
        def __getattr__(self, name: str) -> Any:
            trap.spring()
            return pick.choice([None, 5, self, lambda *a, **k: self])

    class Array:
        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            trap.spring()
            return pick.choice([np.ones(2), None, 5])

        __array_interface__ = property(
            lambda self: (trap.spring(), {"shape": (1 << 40,), "typestr": "<f4", "data": (8, False), "version": 3})[1]
        )

    recursive: list[Any] = []
    recursive.append(recursive)
    return [
        Length([1, 2]), Endless([1]), Shrinking([1, 2, 3]), Index(), Class(), Hash(), Text("cpu"), Number(2), Real(1.5), torch.ones(2).as_subclass(Function), Attributes(),
        Array(), recursive, tuple(range(70)), pick.choice(numbers), float("nan"), "x" * 1000, b"\0", None, object(), [Index(), Index()], (Index(),), [Number(1), Index()],
        [torch.ones(2), Index()], {"a": Index()}, memoryview(b"abc"), range(3), np.ones(2)[::-1], np.ma.masked, np.datetime64(1, "D"), type, Index, lambda: trap.spring(),
        slice(Index(), None, Index()), ..., torch.float32, torch.device("meta"), torch.ones(2, device="meta"), torch.eye(2).to_sparse(), 1 << 62, -1,
    ]  # fmt: skip


def plain(trap: Trap, kind: str) -> Any:
    """An argument of the kind that the schema says, which hostile ones stand beside."""
    pick = trap.pick
    base = kind.replace("?", "").partition("[")[0]
    if base == "Tensor":
        shape = pick.choice([(), (3,), (2, 3), (2, 3), (3, 3), (2, 3, 4), (0, 3), (1, 2, 8, 8)])
        dtype = pick.choice(
            [torch.float32] * 4 + [torch.float64, torch.int64, torch.bool, torch.bfloat16, torch.complex64]
        )

        def made() -> Any:
            tensor = torch.ones(shape, dtype=dtype, device=DEVICE)
            if pick.random() < 0.3:
                array = np.ones(6, np.float32)
                trap.arrays.append(array)
                tensor = torch.from_numpy(array)
            if pick.random() < 0.2 and tensor.is_floating_point():
                tensor.requires_grad_(True)
            trap.tensors.append(tensor)
            return tensor

        return [made() for _ in range(pick.randrange(3))] if "[" in kind else made()
    value = {
        "int": 1, "SymInt": pick.choice([0, 1, 2, -1]), "float": 0.5, "bool": pick.random() < 0.5, "Scalar": 2, "str": "mean", "ScalarType": torch.float32, "Device": "cpu",
    }.get(base)  # fmt: skip
    return [value] * pick.choice((1, 2)) if "[" in kind else value


def fitting(hostile: list[Any], kind: str) -> list[Any]:
    """Of the objects those that pass for what the schema says for a while."""
    named = [(type(one).__name__, one) for one in hostile]
    if "[" in kind:
        wanted = {"Length", "Endless", "Shrinking", "tuple", "list", "range", "Attributes"}
    elif kind.startswith("Tensor"):
        wanted = {"Function", "Tensor", "Array", "Attributes", "Class", "ndarray", "float"}
    elif kind.startswith("str"):
        wanted = {"Text", "Hash", "str", "bytes"}
    else:
        wanted = {"Index", "Number", "Real", "int", "float", "Class", "datetime64", "MaskedConstant"}
    return [one for name, one in named if name in wanted]


def call(pick: random.Random, row: dict[str, Any]) -> None:
    """One call with one to three hostile arguments."""
    trap = Trap(pick)
    hostile = objects(trap)
    positional = [p for p in row["parameters"] if not p[3]]
    while positional and positional[-1][2] and pick.random() < 0.7:
        positional.pop()
    args = [plain(trap, p[1]) for p in positional]
    kwargs = {p[0]: plain(trap, p[1]) for p in row["parameters"] if p[3] and pick.random() < 0.3}
    for _ in range(pick.choice((1, 1, 1, 2))):
        if args and pick.random() < 0.9:
            at = pick.randrange(len(args))
            args[at] = pick.choice(hostile if pick.random() < 0.3 else fitting(hostile, positional[at][1]))
        else:
            kwargs[pick.choice([*[p[0] for p in row["parameters"]], "out", "dtype", "x"])] = pick.choice(hostile)
    if pick.random() < 0.05:
        args = pick.choice(hostile), *args  # type: ignore[assignment]
    name = row["public"]
    is_method = args and isinstance(args[0], torch.Tensor) and hasattr(torch.Tensor, name) and pick.random() < 0.5
    home: Any = torch
    for part in NAMESPACES.get(row["namespace"], "").split("."):
        home = getattr(home, part) if part else home
    if is_method:
        first, *args = args
        function = getattr(first, name + pick.choice(["", "", "_"]), None) or getattr(first, name)
        del first
    else:
        function = getattr(home, name, None) or getattr(torch.ops.aten, row["name"])
    if pick.random() < 0.1:
        with torch.pipeline():
            result = function(*args, **kwargs)
    else:
        result = function(*args, **kwargs)
    if isinstance(result, torch.Tensor) and result.requires_grad and pick.random() < 0.5:
        result.sum().backward()
    repr(result)


SANITIZED = "san.so" in os.environ.get("LD_PRELOAD", "")


def run(seed: str, numbers: range, table: list[dict[str, Any]], outcomes: Counter[str], problems: list[str]) -> None:
    """So many calls."""
    for number in numbers:
        if SANITIZED:  # so that it can be told which call ended the process
            print(f"@{number}", file=sys.stderr, flush=True)
            faulthandler.dump_traceback_later(SECONDS * 60, exit=True)
        pick = random.Random(f"{seed} {number}")
        row = table[number % len(table)] if number < len(table) else pick.choice(table)
        begun = time.thread_time()
        try:
            call(pick, row)
            outcome = "a result"
        except RecursionError:
            outcome = "RecursionError"
        except MemoryError:
            outcome = "MemoryError"
        except SystemError as error:  # C code that forgot, or made up, an exception
            outcome = "SystemError"
            problems.append(f"{seed} {number} {row['name']}: {error!r}")
        except Exception as error:  # noqa: BLE001 (any is an answer)
            outcome = type(error).__name__
        outcomes[outcome] += 1
        if time.thread_time() - begun > SECONDS * (20 if SANITIZED else 1):
            problems.append(f"{seed} {number} {row['name']}: {time.thread_time() - begun:.1f} s")


def main(seed: str, numbers: range, threads: int) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(os.environ.get("WAIT", "3000")), exit=True)
    table = rows()
    # The memory of sanitizers, and of an emulated NPU, is nearly all that there is.
    if not SANITIZED and DEVICE == "cpu":
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    outcomes: Counter[str] = Counter()
    problems: list[str] = []
    sys.setrecursionlimit(400)
    sys.unraisablehook = lambda _: None
    if threads == 1:
        run(seed, numbers, table, outcomes, problems)
    else:
        sys.setswitchinterval(1e-5)
        working = [
            threading.Thread(
                target=run,
                args=(
                    f"{seed}.{n}",
                    numbers[n::threads],
                    random.Random(n).sample(table, len(table)),
                    outcomes,
                    problems,
                ),
            )
            for n in range(threads)
        ]
        for thread in working:
            thread.start()
        for thread in working:
            thread.join()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"calls": sum(outcomes.values()), "outcomes": outcomes, "problems": problems, "MiB": used}))


if __name__ == "__main__":
    main(sys.argv[1], range(*map(int, sys.argv[2].split(":"))), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
