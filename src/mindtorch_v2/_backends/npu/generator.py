"""Random numbers of NPUs: a seed and an offset for each device.

The kernels are counter-based (Philox 4x32-10): a call takes the numbers from an offset on, so the state is two integers, and a call on the device needs
nothing from it but them. The layout of a state is that of PyTorch's generators on accelerators: 8 bytes of seed, 8 of offset, little endian.
"""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from ... import _forks
from ..._device import device as Device
from ..._random.generator import DeviceGenerator, Hooks, default_generator, draw_recorded

__all__ = ["NpuGenerator", "get", "seed_all"]

_STATE = struct.Struct("<QQ")
_MASK = (1 << 64) - 1
_STEP = 4  # numbers of one counter


class NpuGenerator(DeviceGenerator):
    """The random stream of a device: `manual_seed`, `get_state`, ... as torch.Generator's, and `next` for kernels. Safe for threads."""

    __slots__ = ("_device", "_seed", "_offset", "_lock", "__weakref__")

    def __init__(self, index: int, seed: int) -> None:
        self._device = Device("npu", index)
        self._seed = seed & _MASK
        self._offset = 0
        self._lock = _forks.lock()

    @property
    def device(self) -> Device:
        """The device that the generator serves."""
        return self._device

    def next(self, count: int) -> tuple[int, int]:
        """(seed, offset) for a call that takes `count` numbers, which no later call takes again."""
        with self._lock:
            found = self._seed, self._offset
            self._offset = (self._offset + -(-count // _STEP) * _STEP) & _MASK
        return found

    def manual_seed(self, seed: int) -> NpuGenerator:
        """Start the stream of a seed, -2**63 <= seed < 2**64. Returns self. ValueError out of range."""
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        draw_recorded()
        with self._lock:
            self._seed, self._offset = seed & _MASK, 0
        return self

    def seed(self) -> int:
        """Start the stream of a seed from the system's randomness; returns it."""
        seed = int.from_bytes(os.urandom(8), "little") >> 11  # as large as a float64's integers
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed of the stream."""
        return self._seed

    def get_offset(self) -> int:
        """How many numbers were taken."""
        draw_recorded()
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Go to a place of the stream, a multiple of 4 (RuntimeError)."""
        if offset < 0 or offset % _STEP:
            raise RuntimeError(f"offset must be a multiple of {_STEP} that is not negative, but got {offset}")
        draw_recorded()
        with self._lock:
            self._offset = offset

    def get_state(self) -> Any:
        """Seed and offset as a uint8 tensor of 16 elements."""
        draw_recorded()
        with self._lock:
            packed = _STATE.pack(self._seed, self._offset)
        return Hooks.wrap(np.frombuffer(bytearray(packed), np.uint8))

    def set_state(self, state: Any) -> NpuGenerator:
        """Take over a state. RuntimeError for another size than 16 bytes (8: a seed alone)."""
        content = Hooks.unwrap(state).tobytes()
        if len(content) == 8:
            content += bytes(8)
        if len(content) != _STATE.size:
            raise RuntimeError("RNG state is wrong size")
        draw_recorded()
        with self._lock:
            self._seed, self._offset = _STATE.unpack(content)
        return self

    def clone_state(self) -> NpuGenerator:
        """A generator of its own in the same state."""
        draw_recorded()
        made = NpuGenerator(self._device.index or 0, self._seed)
        made._offset = self._offset
        return made

    def __repr__(self) -> str:
        return f"<torch.Generator device={self._device} seed={self._seed} offset={self._offset}>"


def of_device(where: Device, seed: int) -> NpuGenerator:
    """A new generator for a device, the thread's current one if `where` has no index. RuntimeError without NPUs."""
    from .runtime import get_runtime

    return NpuGenerator(get_runtime().current_device() if where.index is None else where.index, seed)


_generators: dict[int, NpuGenerator] = {}
_lock = _forks.lock()


def get(index: int) -> NpuGenerator:
    """The default generator of a device. A new one has the seed of the CPU's default generator."""
    found = _generators.get(index)
    if found is None:
        with _lock:
            found = _generators.setdefault(index, NpuGenerator(index, default_generator.initial_seed()))
    return found


def seed_all(seed: int) -> None:
    """Seed the default generators that were asked for so far, as `torch.manual_seed` does."""
    for generator in list(_generators.values()):
        generator.manual_seed(seed)
