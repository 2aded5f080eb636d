"""Hostile files: mutated and hand-made archives, pickles and safetensors. `files.py SEED COUNT|FIRST:END` reads so many and prints, as JSON, what came of it.

Each is read with `weights_only=True`. Whatever it is, reading ends within `SECONDS`, takes at most `MEMORY` beyond the file's own size, and runs nothing of the file's choice.
"""

from __future__ import annotations

import faulthandler
import functools
import io
import json
import os
import pickle
import random
import struct
import sys
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import mindtorch_v2 as torch

SECONDS = 5.0
MEMORY = 64 << 20
FORBIDDEN = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "webbrowser.", "ftplib.")
ALLOWED = ("os.listdir", "os.scandir")  # of imports
RUN: list[str] = []
"""What a file made happen."""


def watch(event: str, arguments: tuple) -> None:
    """An audit hook: notes what runs programs, reaches the network or changes files."""
    if event.startswith(FORBIDDEN) and event not in ALLOWED:
        RUN.append(event)


# ------------------------------------------------------------------------------------------------------------ good files


def seeds() -> list[bytes]:
    """Files of all kinds, which mutations start from."""
    base = torch.arange(12.0).reshape(3, 4)
    values: list[Any] = [
        {"a": base, "b": base.t(), "c": base[1:], "n": [1, "x", None, (2.5, {3: b"4"})]},
        torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict(),
        [
            torch.ones(3, dtype=dtype)
            for dtype in (torch.bfloat16, torch.int8, torch.bool, torch.complex64, torch.uint16)
        ],
        [torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.ones(2, device="meta")],
        [torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.nn.Parameter(torch.ones(2))],
    ]
    found = []
    for value in values:
        for zipped in (True, False):
            buffer = io.BytesIO()
            torch.save(value, buffer, _use_new_zipfile_serialization=zipped)
            found.append(buffer.getvalue())
    return found


# --------------------------------------------------------------------------------------------------------------- mutations

NUMBERS = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]


def mutate(pick: random.Random, content: bytes) -> bytes:
    """A file with some bytes that are others, or gone, or twice."""
    data = bytearray(content)
    for _ in range(pick.choice((1, 1, 1, 2, 4, 16))):
        at = pick.randrange(len(data)) if data else 0
        kind = pick.randrange(6)
        if kind == 0 and data:
            data[at] ^= 1 << pick.randrange(8)
        elif kind == 1 and data:
            data[at] = pick.randrange(256)
        elif kind == 2:
            width = pick.choice("<H <I <Q".split())
            size = struct.calcsize(width)
            data[at : at + size] = struct.pack(width, pick.choice(NUMBERS) % (1 << (8 * size)))
        elif kind == 3:
            del data[at : at + pick.choice((1, 2, 8, 64, 1024))]
        elif kind == 4:
            data[at:at] = data[at : at + pick.choice((1, 4, 32, 256))] * pick.choice((1, 2, 16))
        else:
            other = pick.randrange(len(data)) if data else 0
            data[at : at + 8] = data[other : other + 8]
    return bytes(data)


def mutate_pickle(pick: random.Random, content: bytes) -> bytes:
    """A sound archive whose pickle is mutated; the file itself where it is no archive."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return mutate(pick, content)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, mutate(pick, data) if name.endswith("data.pkl") or pick.random() < 0.1 else data)
    return made.getvalue()


# --------------------------------------------------------------------------------------------------------------- hand-made


def archive(pickled: bytes, **records: bytes) -> bytes:
    """An archive with a pickle of one's own."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new:
        new.writestr("x/data.pkl", pickled)
        new.writestr("x/version", b"3\n")
        new.writestr("x/byteorder", b"little")
        for name, data in records.items():
            new.writestr(f"x/data/{name.removeprefix('_')}", data)
    return made.getvalue()


CALLS = (
    "os system;posix system;subprocess Popen;builtins eval;builtins exec;builtins __import__;builtins getattr;builtins open;nt system;runpy run_path;torch.hub load;"
    "torch.serialization load;torch load;numpy.core.multiarray _reconstruct;mindtorch_v2.hub load;operator attrgetter;functools partial;importlib import_module;"
    "torch._utils _set_obj_state;torch.nn.parameter Parameter;torch Tensor;torch.storage UntypedStorage;torch device;torch Size;collections OrderedDict;collections Counter;"
    "builtins bytearray;builtins set;_codecs encode;torch._utils _rebuild_tensor_v2;torch._utils _rebuild_parameter;torch._utils _rebuild_sparse_tensor;torch.serialization _get_layout;"
    "torch._tensor _rebuild_from_type_v2;torch._utils _rebuild_nested_tensor;torch._utils _rebuild_meta_tensor_no_storage;torch FloatStorage;torch.float32 __reduce__;torch.jit load"
).split(";")


def value(pick: random.Random, depth: int = 0) -> bytes:
    """Opcodes that leave one value."""
    kind = pick.randrange(14 if depth < 4 else 8)
    if kind == 0:
        return b"K" + bytes([pick.randrange(256)])
    if kind == 1:
        return b"\x8a\x08" + struct.pack("<Q", pick.choice(NUMBERS))
    if kind == 2:
        text = pick.choice(["", "cpu", "meta", "npu:0", "0", "__class__", "_payload", "x" * 300, "é"]).encode()
        return b"X" + struct.pack("<I", len(text)) + text
    if kind == 3:
        return b"B" + struct.pack("<I", 4) + b"abcd"
    if kind == 4:
        return pick.choice([b"N", b"\x88", b"\x89", b")", b"]", b"}", b"\x8f"])
    if kind == 5:
        return b"G" + struct.pack(">d", pick.choice([0.0, 1e308, float("nan"), float("inf")]))
    if kind == 6:
        return b"c" + pick.choice(CALLS).replace(" ", "\n").encode() + b"\n"
    if kind == 7:
        return b"h" + bytes([pick.randrange(4)])
    if kind == 8:
        return b"(" + b"".join(value(pick, depth + 1) for _ in range(pick.randrange(6))) + b"t"
    if kind == 9:
        return b"]" + value(pick, depth + 1) + b"a"
    if kind == 10:
        return b"}" + value(pick, depth + 1) + value(pick, depth + 1) + b"s"
    if kind == 11:  # a storage, as torch.save names it
        storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
        return storage + pick.choice([b"K\x04", value(pick, 4)]) + b"tQ"
    if kind == 12:  # a call
        return (
            b"c"
            + pick.choice(CALLS).replace(" ", "\n").encode()
            + b"\n"
            + tuple_of(pick, depth)
            + pick.choice([b"R", b"\x81"])
        )
    return value(pick, depth + 1) + b"}" + value(pick, depth + 1) + value(pick, depth + 1) + b"sb"


def tuple_of(pick: random.Random, depth: int) -> bytes:
    """A tuple of a few values: often what `_rebuild_tensor_v2` takes, with one of them another."""
    if pick.random() < 0.5:
        parts = [
            b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ",
            b"K\x00", b"K\x02K\x02\x86", b"K\x02K\x01\x86", b"\x89", b"ccollections\nOrderedDict\n)R",
        ]  # fmt: skip
        parts[pick.randrange(len(parts))] = value(pick, depth + 1)
        return b"(" + b"".join(parts) + b"t"
    return b"(" + b"".join(value(pick, depth + 1) for _ in range(pick.randrange(8))) + b"t"


def deep(pick: random.Random) -> bytes:
    """Values that are far deeper, or become far longer, than the file."""
    n = pick.choice((100, 10_000, 200_000))
    return pick.choice(
        [
            lambda: b"K\x01" + b"\x85" * n,
            lambda: b"]" * n + b"a" * (n - 1),
            lambda: b"}" + b"K\x01}" * n + b"s" * n,
            lambda: b"X\x04\x00\x00\x00abcd" + b"q\x00h\x00\x86" * pick.choice((20, 40, 60)),
            lambda: b"](" + b"h\x00h\x00e" * 40,
            lambda: b"K\x01" + b"\x85" * n + b")R",
            lambda: b"cbuiltins\nbytearray\nK\xff\x8a\x05\x00\x00\x00\x00\x01\x86R",
            lambda: b"cbuiltins\nbytearray\n\x8a\x05\x00\x00\x00\x00\x7f\x85R",
            lambda: b"X" + struct.pack("<I", 0xFFFFFFF0) + b"abc",
            lambda: b"\x8b" + struct.pack("<i", 0x7FFFFFFF) + b"\x01",
            lambda: b"ctorch\nTensor\n\x8a\x06\x00\x00\x00\x00\x00\x40\x85R",
            lambda: b"ctorch.storage\nUntypedStorage\n\x8a\x06\x00\x00\x00\x00\x00\x40\x85R",
        ]
    )()


def handmade(pick: random.Random) -> bytes:
    """A pickle that no `torch.save` writes, in an archive or in a file of the old form."""
    body = deep(pick) if pick.random() < 0.1 else value(pick)
    pickled = b"\x80\x02" + body + b"."
    if pick.random() < 0.5:
        return archive(pickled, _0=b"\x00" * pick.choice((0, 3, 16, 64)))
    head = b"".join(
        pickle.dumps(v, 2)
        for v in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}})
    )
    return head + pickled + pickle.dumps(["0"], 2) + struct.pack("<q", pick.choice((4, 0, 1 << 40))) + b"\x00" * 16


def safetensors(pick: random.Random) -> bytes:
    """A file of safetensors, whose header lies."""
    entry = {
        "dtype": pick.choice(["F32", "F64", "BF16", "I8", "X9", "", 5, None]),
        "shape": pick.choice([[2, 2], [4], [], [-1], [1 << 62, 4], ["a"], 3, None, [0, 1 << 63], [2.5]]),
        "data_offsets": pick.choice([[0, 16], [16, 0], [0, 1 << 62], [-4, 12], [0], None, ["0", "16"], [8, 24]]),
    }
    header: Any = {"a": entry, "b": pick.choice([entry, 5, None, []]), "__metadata__": pick.choice([{}, 3, {"a": 1}])}
    text = json.dumps(pick.choice([header, {"a": entry}, [], 5, {"a": {}}])).encode()
    if pick.random() < 0.1:
        text = b"[" * 100_000
    length = pick.choice([len(text), len(text), len(text), 0, 1 << 62, len(text) + 100])
    return struct.pack("<Q", length) + text + b"\x00" * 16


# ------------------------------------------------------------------------------------------------------------------ reading


def peak() -> int:
    """The most memory that this process had since `forget_peak`, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def read_archive(content: bytes) -> None:
    torch.load(io.BytesIO(content), weights_only=True)


def read_safetensors(content: bytes) -> None:
    """By the package, over this library, where it is installed."""
    from safetensors.torch import load

    load(content)


MAKERS: list[tuple[str, Callable[[random.Random, list[bytes]], bytes], Callable[[bytes], None]]] = [
    ("mutated", lambda pick, good: mutate(pick, pick.choice(good)), read_archive),
    ("mutated pickle", lambda pick, good: mutate_pickle(pick, pick.choice(good)), read_archive),
    ("hand-made", lambda pick, good: handmade(pick), read_archive),
    ("safetensors", lambda pick, good: safetensors(pick), read_safetensors),
]
REFUSALS = (
    RuntimeError, ValueError, TypeError, KeyError, EOFError, AttributeError, ImportError, IndexError, pickle.UnpicklingError, zipfile.BadZipFile,
    OSError, NotImplementedError, OverflowError, UnicodeError, struct.error, AssertionError,
)  # fmt: skip


def read_all(
    seed: int,
    numbers: range,
    makers: list[tuple[str, Callable, Callable]],
    size: Callable[[Any], int] = len,
    refusals: tuple[type[BaseException], ...] = REFUSALS,
    own: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Make and read so many; what came of it. makers: of each kind its name, what makes one from a random generator, and what reads it. own: events of the readers' own tests."""
    measured = os.environ.get("PYTHONMALLOC") != "malloc" and os.path.exists("/proc/self/clear_refs")
    sys.addaudithook(watch)
    outcomes: Counter[str] = Counter()
    slowest, largest = (0.0, ""), (0, "")
    problems: list[str] = []
    for number in numbers:
        if os.environ.get("PYTHONMALLOC") == "malloc":  # so that it can be told which file ended the process
            print(f"@{number}", file=sys.stderr, flush=True)
        pick = random.Random(f"{seed} {number}")
        name, make, read = makers[0] if number % 10 < 4 else pick.choice(makers)
        content = make(pick)
        faulthandler.dump_traceback_later(30 * SECONDS, exit=True)
        if measured:
            forget_peak()
            before = peak()
        begun = time.process_time()
        try:
            read(content)
            outcome = "read"
        except refusals as error:
            outcome = type(error).__name__
            if len(str(error)) > 20_000:
                problems.append(f"{number}: a sentence of {len(str(error))} characters")
        except Exception as error:  # noqa: BLE001 (the package's own)
            outcome = type(error).__name__
            if outcome != "SafetensorError":
                problems.append(f"{number} ({name}): {error!r:.200}")
        took = time.process_time() - begun
        outcomes[f"{name}: {outcome}"] += 1
        slowest = max(slowest, (took, f"{number} ({name})"))
        if took > SECONDS:
            problems.append(f"{number} ({name}): {took:.1f} s")
        if measured:
            more = peak() - before - size(content)
            largest = max(largest, (more, f"{number} ({name})"))
            if more > MEMORY:
                problems.append(f"{number} ({name}): {more >> 20} MiB beyond the file")
        run = [event for event in RUN if event not in own]
        RUN.clear()
        if run:
            problems.append(f"{number} ({name}): {run}")
    faulthandler.cancel_dump_traceback_later()
    return {"outcomes": outcomes, "slowest": slowest, "largest": largest, "problems": problems}


def main(seed: int, numbers: range) -> None:
    warnings.simplefilter("ignore")
    good = seeds()
    makers = MAKERS
    try:
        from mindtorch_v2._torch_proxy import install

        install()
        read_safetensors(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    except ImportError:
        makers = MAKERS[:-1]
    for content in good:
        read_archive(content)
    given = [(name, functools.partial(make, good=good), read) for name, make, read in makers]
    print(json.dumps(read_all(seed, numbers, given)))


if __name__ == "__main__":
    main(int(sys.argv[1]), range(*map(int, sys.argv[2].split(":"))))
