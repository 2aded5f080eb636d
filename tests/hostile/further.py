"""Hostile files of further kinds: TorchScript archives, checkpoints of several ranks, folders of safetensors. `further.py SEED COUNT|FIRST:END` reads so many and prints, as JSON, what
came of it.

The bounds are those of files.py: reading ends in time, takes little memory beyond the files' own size, and runs nothing. A script's code is interpreted, so that it may loop: of it names
and numbers are mutated where modules are made, and no loops are written.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError

import files

import mindtorch_v2 as torch
import mindtorch_v2.distributed.checkpoint as dcp
from mindtorch_v2._script.reader import load
from mindtorch_v2._script.tracing import trace
from mindtorch_v2.distributed.checkpoint.format_utils import whole_state_dict
from mindtorch_v2.distributed.checkpoint.hf_storage import HuggingFaceStorageReader

FOLDER = Path(tempfile.mkdtemp(prefix="hostile"))

# -------------------------------------------------------------------------------------------------------------- TorchScript


def script() -> bytes:
    """A file of a traced module."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    made = io.BytesIO()
    trace(module, torch.ones(1, 3)).save(made)
    return made.getvalue()


CODE = [
    b"(" * 300 + b"1" + b")" * 300,
    b"-" * 3000 + b"1",
    b"not " * 3000 + b"True",
    b"[" * 5000,
    b"9" * 5000,
    b"'" + b"x" * 100_000,
    b"a" + b".b" * 5000,
    b"__import__('os').system('true')",
    b"ops.prim.data(1)",
    b"getattr(self, '__class__')",
    b"torch.add(1)",
    b"CONSTANTS.c99",
    b"__torch__.x.Y",
    b"\xff\x00",
    b"uninitialized(Tensor)",
    b"annotate(List[int], [])",
]


def mutated_script(pick: random.Random, good: bytes) -> bytes:
    """An archive of which a pickle, or the code, is another."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new:
        names = old.namelist()
        chosen = pick.choice([name for name in names if name.endswith((".py", ".pkl", "version"))])
        for name in names:
            data = old.read(name)
            if name == chosen:
                data = _other_code(pick, data) if name.endswith(".py") else _other_pickle(pick, data)
            if pick.random() > 0.02:
                new.writestr(name, data)
    return made.getvalue()


def _other_code(pick: random.Random, data: bytes) -> bytes:
    kind = pick.randrange(3)
    if kind == 0:
        return files.mutate(pick, data)
    words = data.split(b" ")
    words[pick.randrange(len(words))] = pick.choice(CODE) if kind == 1 else pick.choice(words)
    return b" ".join(words)


def _other_pickle(pick: random.Random, data: bytes) -> bytes:
    if pick.random() < 0.5:
        return files.mutate(pick, data)
    body = files.deep(pick) if pick.random() < 0.2 else files.value(pick)
    return b"\x80\x02" + body + pick.choice([b"", b"\x85"]) + b"."


# --------------------------------------------------------------------------------------------------------------- checkpoints

NAMES = (
    "mindtorch_v2.distributed.checkpoint.metadata Metadata;torch.distributed.checkpoint.metadata MetadataIndex;torch.distributed.checkpoint.metadata TensorStorageMetadata;"
    "torch.distributed.checkpoint.metadata TensorProperties;torch.distributed.checkpoint.metadata _MEM_FORMAT_ENCODING;torch.distributed.checkpoint.filesystem _StorageInfo;"
    "torch Size;torch float32;torch load;torch hub;torch nn;torch.serialization _get_layout;mindtorch_v2._dtype by_name;collections OrderedDict;pathlib PosixPath;os system;"
    "builtins getattr;builtins eval;builtins bytearray;torch.distributed.checkpoint.metadata os"
).split(";")


def checkpoint() -> dict[str, bytes]:
    """The files of a checkpoint, without those of digests."""
    state = {"a": torch.arange(12.0).reshape(3, 4), "b": {"c": torch.ones(2, dtype=torch.int64), "n": [1, "x"]}}
    folder = FOLDER / "good"
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    (name,) = (file.name for file in folder.iterdir() if file.suffix == ".distcp")
    token = name.partition("-")[2].partition(".")[0]  # which is another each time
    kept = [file for file in sorted(folder.iterdir()) if not file.name.startswith(".checksums")]
    return {
        file.name.replace(token, "0" * len(token)): file.read_bytes().replace(token.encode(), b"0" * len(token))
        for file in kept
    }


def _named(pick: random.Random) -> bytes:
    module, name = pick.choice(NAMES).split(" ")
    if pick.random() < 0.5:
        return b"c" + f"{module}\n{name}\n".encode()
    return b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name)) + b"\x93"


def _made(pick: random.Random, depth: int = 0) -> bytes:
    """Opcodes of an object of a class of metadata, or what looks like one."""
    if depth > 3 or pick.random() < 0.4:
        return files.value(pick, 3)
    made = _named(pick) + pick.choice([b")", files.tuple_of(pick, 3), _made(pick, depth + 1) + b"\x85"])
    made += pick.choice([b"\x81", b"R"])
    fields = pick.sample(
        [
            "fqn",
            "offset",
            "index",
            "size",
            "chunks",
            "properties",
            "state_dict_metadata",
            "storage_data",
            "planner_data",
            "__class__",
        ],
        2,
    )
    state = b"}(" + b"".join(b"X" + struct.pack("<I", len(f)) + f.encode() + _made(pick, depth + 1) for f in fields) + b"u"  # fmt: skip
    return made + pick.choice([b"", state + b"b", b"N" + state + b"\x86b", _made(pick, depth + 1) + b"b"])


def hostile_checkpoint(pick: random.Random, good: dict[str, bytes]) -> dict[str, bytes]:
    """A checkpoint whose metadata, or one of whose files, is another."""
    made = dict(good)
    kind = pick.randrange(5)
    name = pick.choice([name for name in made if name != ".metadata"])
    if kind == 0:
        made[".metadata"] = files.mutate(pick, made[".metadata"])
    elif kind == 1:
        body = files.deep(pick) if pick.random() < 0.3 else _made(pick)
        made[".metadata"] = b"\x80\x04" + body + b"."
    elif kind == 2:
        made[name] = files.mutate(pick, made[name])
    elif kind == 3:
        made[".metadata"] = _other_numbers(pick, made[".metadata"])
    else:
        made[".checksums-" + "0" * 32] = pick.choice([b"{}", b"[" * 100_000, b"5", b'{"a": 5}'])
    return made


def _other_numbers(pick: random.Random, data: bytes) -> bytes:
    """Sound metadata whose numbers are others."""
    changed = bytearray(data)
    places = [at for at in range(1, len(data) - 1) if data[at - 1 : at] == b"K"]
    for at in pick.sample(places, min(len(places), pick.choice((1, 2, 5)))):
        changed[at] = pick.choice((0, 1, 2, 127, 255))
    if pick.random() < 0.3:
        at = pick.choice(places)
        changed[at - 1 : at + 1] = b"\x8a\x08" + struct.pack("<Q", pick.choice(files.NUMBERS))
    return bytes(changed)


def read_checkpoint(content: dict[str, bytes]) -> None:
    folder = _written(content)
    whole_state_dict(folder)
    dcp.load({"a": torch.zeros(3, 4)}, checkpoint_id=folder, no_dist=True)


# --------------------------------------------------------------------------------------------------------------- safetensors


def tensors_folder(pick: random.Random) -> dict[str, bytes]:
    """A folder of safetensors whose headers, places of pieces, or index lie."""
    pieces = {
        "a": {"saved_offsets": pick.choice([[0, 0], [-1], [1 << 62, 0], "a", None, [[]], [0.5, 1], {}])},
        "b": pick.choice([{}, 5, []]),
    }
    said = pick.choice([json.dumps(pieces), "[" * 50_000, "5", "", "null", json.dumps(["a"])])
    entry = {"dtype": pick.choice(["F32", "I8", "X", 5]), "shape": pick.choice([[2, 2], [4], [], [-1], [1 << 40, 0], [[]]]), "data_offsets": pick.choice([[0, 16], [0, 4], [16, 0], "a", [0, 1 << 40]])}  # fmt: skip
    header = {"__metadata__": pick.choice([{"DCP_SHARDING_INFO": said}, {"DCP_SHARDING_INFO": 5}, 5, {}]), "a": entry}
    text = json.dumps(header).encode()
    if pick.random() < 0.2:
        text = files.mutate(pick, text)
    found = {
        "model-00001-of-00001.safetensors": struct.pack("<Q", pick.choice([len(text)] * 5 + [1 << 60]))
        + text
        + bytes(16)
    }
    found["model.safetensors.index.json"] = pick.choice(
        [b"{}", b"[" * 50_000, b'{"weight_map": {"a": "../../etc/passwd"}}']
    )
    if pick.random() < 0.3:
        found["shard-00002-model-00001-of-00001.safetensors"] = files.safetensors(pick)
    return found


def read_tensors(content: dict[str, bytes]) -> None:
    reader = HuggingFaceStorageReader(str(_written(content)))
    made = reader.read_metadata()
    for place in made.storage_data.values():
        reader.read_item(place)


def _written(content: dict[str, bytes]) -> Path:
    folder = FOLDER / "hostile"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return folder


def _size(content: bytes | dict[str, bytes]) -> int:
    return len(content) if isinstance(content, bytes) else sum(map(len, content.values()))


OWN = ("os.rmdir", "os.mkdir", "os.remove", "shutil.rmtree", "ctypes.cdata")
"""What these tests do with folders, and how the library reads where arrays lie."""


def main(seed: int, numbers: range) -> None:
    warnings.simplefilter("ignore")
    archive, saved = script(), checkpoint()
    makers: list[tuple[str, Callable, Callable]] = [
        ("script", lambda pick: mutated_script(pick, archive), lambda content: load(io.BytesIO(content))),
        ("script, mutated", lambda pick: files.mutate(pick, archive), lambda content: load(io.BytesIO(content))),
        ("checkpoint", lambda pick: hostile_checkpoint(pick, saved), read_checkpoint),
        ("tensors", tensors_folder, read_tensors),
    ]
    load(io.BytesIO(archive))
    read_checkpoint(saved)
    sound = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}}).encode()
    read_tensors({"a.safetensors": struct.pack("<Q", len(sound)) + sound + bytes(16)})
    refusals = (RuntimeError, ValueError, OSError, UnpicklingError, dcp.CheckpointException)
    try:
        print(json.dumps(files.read_all(seed, numbers, makers, _size, refusals, OWN)))
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), range(*map(int, sys.argv[2].split(":"))))
