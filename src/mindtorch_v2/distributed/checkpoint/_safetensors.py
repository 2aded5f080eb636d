"""Files of the safetensors format: eight bytes with the length of a header, the header in JSON, the tensors' bytes."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any

import mindtorch_v2 as torch

SUFFIX = ".safetensors"
INDEX = "model.safetensors.index.json"
SHARDING = "DCP_SHARDING_INFO"
_LONGEST_HEADER = 100_000_000  # bytes, as the format has it

_DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn,
    "I16": torch.int16,
    "U16": torch.uint16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "F32": torch.float32,
    "C64": torch.complex64,
    "F64": torch.float64,
    "I64": torch.int64,
    "U64": torch.uint64,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def file_name(index: int, largest: int, shard: int | None = None) -> str:
    """The name of a model's file: which of how many, and of which shard."""
    name = f"model-{index:05d}-of-{largest:05d}{SUFFIX}"
    return name if shard is None else f"shard-{shard:05d}-{name}"


def write(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
    """Write a file, as a whole or not at all.

    Raises:
        ValueError: for a dtype that the format does not have.
    """
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise ValueError(f"{name} is of {tensor.dtype}, which files of safetensors cannot have")
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in order:
        tensor = tensors[name]
        begin, end = end, end + tensor.numel() * tensor.dtype.itemsize
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = path.with_name(path.name + ".tmp")
    with open(temporary, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def header_of(path: Path) -> tuple[dict[str, tuple[Any, tuple[int, ...], int]], dict[str, str]]:
    """(by name the dtype, the shape, and where in the file the bytes begin; the metadata).

    Raises:
        RuntimeError: for a file that is something else, or is cut off.
    """
    size = path.stat().st_size
    with open(path, "rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else -1
        if not 0 <= length <= min(size - 8, _LONGEST_HEADER):
            raise RuntimeError(f"{path} is no file of safetensors: it has no header")
        try:
            header = json.loads(file.read(length))
            metadata = header.pop("__metadata__", {})
            found = {}
            for name, entry in header.items():
                dtype, shape, (begin, end) = _DTYPES[entry["dtype"]], tuple(entry["shape"]), entry["data_offsets"]
                if not all(isinstance(number, int) and number >= 0 for number in (*shape, begin, end)):
                    raise ValueError(f"{name} has an odd shape or place")
                if end - begin != math.prod(shape) * dtype.itemsize or 8 + length + end > size:
                    raise ValueError(f"{name} is not where the header says")
                found[name] = dtype, shape, 8 + length + begin
            if not isinstance(metadata, dict) or not all(isinstance(said, str) for said in metadata.values()):
                raise ValueError("its metadata are no texts")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RuntimeError(f"{path} is no file of safetensors: {error!s:.200}") from error
    return found, metadata


def read(path: Path, dtype: Any, shape: tuple[int, ...], begin: int) -> torch.Tensor:
    """One tensor."""
    made = torch.empty(shape, dtype=dtype)
    if made.numel():
        with open(path, "rb") as file:
            file.seek(begin)
            data = bytearray(file.read(made.numel() * dtype.itemsize))
        made = torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape)
    return made


def write_index(folder: Path, files: dict[str, str], size: int) -> None:
    """Write which tensor is in which file."""
    said = {"metadata": {"total_size": size}, "weight_map": files}
    temporary = folder / (INDEX + ".tmp")
    temporary.write_text(json.dumps(said, indent=2), encoding="utf-8")
    os.replace(temporary, folder / INDEX)
