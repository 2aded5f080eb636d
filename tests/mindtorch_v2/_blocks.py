"""What the tests of loops over blocks and of the functions in them share."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mindtorch_v2._dispatch import native
from mindtorch_v2._generated.tables import operators

WIDTHS = {4: np.float32, 8: np.float64}


def opcode(name: str) -> int:
    return next(op.block[0].opcode for op in operators() if op.full_name == name)


def battery(dtype: Any, count: int, seed: int = 0) -> np.ndarray:
    """Special values and others of every magnitude, in an order of their own for each seed."""
    info = np.finfo(dtype)
    special = [
        0.0,
        0.5,
        1.0,
        2.5,
        3.0,
        6.0,
        20.0,
        88.8,
        103.9,
        709.5,
        745.2,
        1e-5,
        1e10,
        info.max,
        info.tiny,
        info.smallest_subnormal,
    ]
    special += [info.tiny / 3, np.inf, 1.0 + info.eps, 1.0 - info.epsneg, 1.5, 0.1, 30.0]
    special += [-value for value in special] + [np.nan]
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.array(special, dtype))
    rest = rng.normal(size=max(count - values.size, 0)) * np.exp(rng.uniform(-9, 5, max(count - values.size, 0)))
    return rng.permutation(np.concatenate([values, rest.astype(dtype)]))[:count]


def run(opcode: int, sources: tuple, shape: tuple | None = None, dtype: Any = None, out: Any = None) -> np.ndarray:
    """One instruction; arrays, and numbers as immediates."""
    arrays = [
        np.broadcast_to(s, shape) if shape is not None and s.ndim else s for s in sources if isinstance(s, np.ndarray)
    ]
    numbers = [float(s) for s in sources if not isinstance(s, np.ndarray)]
    dtype = dtype or next(a.dtype for a in arrays if a.dtype != bool)
    shape = arrays[0].shape if shape is None else shape
    if out is None:
        out = np.empty(shape, bool if native.extension.loops()[opcode][2] else dtype)
    at, immediate = itertools.count(), itertools.count(len(arrays) + 1)
    slots = tuple(next(at) if isinstance(s, np.ndarray) else next(immediate) for s in sources)
    program = native.extension.Program(
        np.dtype(dtype).itemsize,
        shape,
        ((opcode, len(arrays), *slots),),
        (*arrays, out),
        len(arrays),
        0,
        tuple(numbers),
    )
    assert program.run() == program.blocks
    return out


def same_bits(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where two arrays agree; a NaN is a NaN."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if found.dtype == bool:
        return found == wanted
    bits = f"u{found.itemsize}"
    return (np.ascontiguousarray(found).view(bits) == np.ascontiguousarray(wanted).view(bits)) | (
        np.isnan(found) & np.isnan(wanted)
    )


def assert_bits(found: np.ndarray, wanted: np.ndarray, what: object) -> None:
    same = same_bits(found, wanted)
    assert same.all(), f"{what}: {found[~same][:4]} where the program gives {wanted[~same][:4]}"
