"""`torch.Generator`: a stream of random numbers with a seed, and a state that can be read and set.

Note [State layout]
A state is PyTorch's, 5056 bytes, little endian, so that states can be exchanged with it both ways:

    offset  type         meaning
         0  uint64       the seed
         8  int32        left
        12  int32        seeded, 1
        16  uint64       next
        24  uint64[624]  the words, one to a uint64
      5016  float64      unused (an older form kept the angle here)
      5024  float64      the second of a pair of normal numbers that waits for the next call
      5032  float64      unused (radius, likewise)
      5040  int32        whether it waits; 4 bytes of padding
      5048  float32      the same for single precision, which no CPU kernel uses
      5052  uint8        whether it waits; 3 bytes of padding
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _forks
from .._above import above
from .._device import device as Device, placed
from .._dispatch.native import extension
from .._state import TLS
from .engine import DEFAULT_SEED, WORDS, Engine, Mt19937

STATE_SIZE = 5056
_making = _forks.lock()  # held while a generator makes its engine
_HEAD, _TAIL = struct.Struct("<QiiQ"), struct.Struct("<8xd8xi4xfB3x")  # what stands before and behind the words
_WORDS = slice(_HEAD.size, _HEAD.size + 8 * WORDS)


def draw_recorded() -> None:
    """Draw what a pipeline of this thread has recorded, before a stream is read or set in another way."""
    if TLS.pipeline is not None:
        TLS.pipeline.flush_random()


class Hooks:
    """How states become tensors and back: the floor that has tensors replaces both."""

    wrap: Callable[[np.ndarray], Any] = staticmethod(lambda state: state)
    """A uint8 array to what `get_state` returns."""

    unwrap: Callable[[Any], np.ndarray] = staticmethod(lambda state: _as_bytes(state))
    """What `set_state` is given to a uint8 array."""


def _as_bytes(state: Any) -> np.ndarray:
    """The array of a tensor-like `state`: an ndarray, or something with `.numpy()`.

    Raises TypeError for anything else.
    """
    if hasattr(state, "numpy"):
        state = state.numpy()
    if not isinstance(state, np.ndarray):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    return state


class DeviceGenerator:
    """Base of the generators of devices other than the CPU."""

    __slots__ = ()


class _GeneratorType(type):
    """Makes the generators of all devices instances of `Generator`, as in PyTorch."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, DeviceGenerator)


class Generator(metaclass=_GeneratorType):
    """A random number generator: `Generator(device='cpu')`.

    Numbers, seeds and states are those of PyTorch's CPU generator. A fresh one has PyTorch's default seed. All use is
    under `lock`, as in PyTorch: what several threads draw is each number once, in an order that is not defined. Raises
    RuntimeError for a device without a generator.
    """

    __slots__ = ("_device", "_made_engine", "_entropy", "__weakref__")

    def __new__(cls, device: Any = "cpu") -> Any:
        where = _generator_device(device)
        if where.type == "npu":
            return above("npu_generator")(where, DEFAULT_SEED)  # of another class, so `__init__` does not run
        return object.__new__(cls)

    def __init__(self, device: Any = "cpu") -> None:
        self._device = _generator_device(device)
        self._made_engine: Mt19937 | None = None
        self._entropy = False  # whether the first use seeds it from the operating system

    @property
    def _engine(self) -> Mt19937:
        """The stream; made when it is first used, so that importing the package does not import numpy.random."""
        engine = self._made_engine
        if engine is None:
            with _making:
                engine = self._made_engine
                if engine is None:
                    engine = Engine(DEFAULT_SEED)
                    if self._entropy:
                        engine.seed(int.from_bytes(os.urandom(8), "little"))
                    _forks.guard(engine.lock)
                    self._made_engine = engine
                    if extension is not None and self is default_generator:
                        extension.use_stream(engine)
        return engine

    @property
    def lock(self) -> Any:
        """What to hold while drawing; its holder may take it again."""
        return self._engine.lock

    @property
    def next_double(self) -> float | None:
        """The second of a pair of normal numbers, which waits for the next call."""
        return self._engine.next_double

    @next_double.setter
    def next_double(self, value: float | None) -> None:
        self._engine.next_double = value

    @property
    def next_float(self) -> float | None:
        """The same in single precision."""
        return self._engine.next_float

    @next_float.setter
    def next_float(self, value: float | None) -> None:
        self._engine.next_float = value

    @property
    def device(self) -> Device:
        """The device that the generator serves."""
        return self._device

    @property
    def engine(self) -> Mt19937:
        """The stream of raw draws. Hold `lock` while you draw."""
        draw_recorded()
        return self._engine

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed`, an int of -2**63 <= seed < 2**64 (a negative one counts from 2**64).

        Returns self. Raises RuntimeError if it is no int (TypeError for numpy's), ValueError if it is out of range.
        """
        if isinstance(seed, np.integer):
            raise TypeError("an integer is required")
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        draw_recorded()
        with self.lock:
            self._engine.seed(seed & 0xFFFFFFFFFFFFFFFF)
            self.next_double = self.next_float = None
        return self

    def seed(self) -> int:
        """Seed with a number from the operating system, and return it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed of the last `manual_seed` or `seed`, 0 <= seed < 2**64."""
        return self._engine.seed_value

    def get_state(self) -> Any:
        """The state, a ByteTensor of 5056 elements."""
        return Hooks.wrap(self._state_bytes())

    def set_state(self, new_state: Any) -> Generator:
        """Go on from `new_state`, which `get_state` of this library or of PyTorch returned. Returns self.

        Raises TypeError if it is no ByteTensor, RuntimeError if it is no state.
        """
        self._set_state_bytes(Hooks.unwrap(new_state))
        return self

    def clone_state(self) -> Generator:
        """A generator of its own that goes on with the same numbers."""
        other = type(self)(self._device)
        other._set_state_bytes(self._state_bytes())
        return other

    def _state_bytes(self) -> np.ndarray:
        """The state as a uint8 array of shape (5056,), see Note [State layout]."""
        draw_recorded()
        state = np.empty(STATE_SIZE, np.uint8)
        with self.lock:
            words, left, next_ = self._engine.position()
            _HEAD.pack_into(state.data, 0, self._engine.seed_value, left, 1, next_)
            state[_WORDS].view("<u8")[...] = words
            double, single = self.next_double, self.next_float
            _TAIL.pack_into(
                state.data, _WORDS.stop, double or 0.0, double is not None, single or 0.0, single is not None
            )
        return state

    def _set_state_bytes(self, new_state: np.ndarray) -> None:
        """Take over a state in the form of `_state_bytes`, of any shape with that many elements."""
        if new_state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not new_state.flags.c_contiguous:
            raise RuntimeError("RNG state must be contiguous")
        if new_state.size != STATE_SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_SIZE} but found the input RNG state size to be "
                f"{new_state.size}"
            )
        state = new_state.reshape(-1).data
        seed, left, seeded, next_ = _HEAD.unpack_from(state)
        double, has_double, single, has_single = _TAIL.unpack_from(state, _WORDS.stop)
        if not seeded:
            raise RuntimeError("Invalid mt19937 state")
        words = np.frombuffer(state, "<u8", WORDS, _HEAD.size)  # wherever its memory begins
        draw_recorded()
        with self.lock:
            self._engine.set_position(words.astype(np.uint32), left, next_)
            self._engine.seed_value = seed
            self.next_double = double if has_double else None
            self.next_float = single if has_single else None

    def get_offset(self) -> int:
        """Raises RuntimeError: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> Generator:
        """Raises RuntimeError: only counter-based generators have an offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def graphsafe_get_state(self) -> Generator:
        """Raises NotImplementedError: for generators that take part in a captured graph."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Raises NotImplementedError: for generators that take part in a captured graph."""
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self._device),), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: tuple[int, int | None, Any]) -> None:
        seed, _offset, bits = state
        self.manual_seed(seed)
        self.set_state(bits)


def _generator_device(device: Any) -> Device:
    if device is None:
        device = "cpu"
    if not isinstance(device, (str, int, Device)):
        raise TypeError(
            f"Generator(): argument 'device' (position 1) must be torch.device, not {type(device).__name__}"
        )
    device = placed(device)
    if device.type == "meta":
        raise RuntimeError("META device type not an accelerator.")
    if device.type == "npu":
        return device
    if device.type != "cpu":
        raise RuntimeError(f"Cannot make a generator for device '{device}': there are generators for cpu and npu")
    return Device("cpu")


default_generator = Generator()
"""The generator of every call that names none. Seeded by the operating system until `manual_seed`."""
default_generator._entropy = True
