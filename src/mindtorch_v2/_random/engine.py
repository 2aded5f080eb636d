"""The Mersenne Twister mt19937, drawn in blocks.

`Mt19937` is the stream; the C extension has it as a type of its own (`native/kernels/stream.c`).

The generator is that of Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed uniform
pseudorandom number generator" (ACM TOMACS 8, 1998), seeded by the recurrence of their 2002 `init_genrand`. numpy has it
in C (`numpy.random.MT19937`), with the same seeding and tempering, so the twisting is left to numpy and this module
keeps what PyTorch keeps beside the 624 words: the whole 64-bit seed, and the position as the pair (left, next).

Note [left and next]
PyTorch counts `left` down to 1 before it makes the next 624 words, and reads at `next`. numpy has one position, `pos`,
which is 624 when the words are used up. They are related by `next == pos` and `left == 625 - pos`, with one exception:
a freshly seeded engine says (left 1, next 0), where numpy says 624. `_next_when_spent` remembers that 0, so that a
state is written back exactly as it was read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _forks
from .._dispatch.native import extension
from .._imports import outside

WORDS = 624
DEFAULT_SEED = 67280421310721
# Blocks this long stay in the second level cache while they are converted.
BLOCK = 1 << 14
_WORD = 0xFFFFFFFF


class Mt19937:
    """A stream of 32-bit and 64-bit draws, equal to that of PyTorch's CPU generator for equal seeds.

    `seed` is any int of 0 <= seed < 2**64. Only its low 32 bits choose the stream, as in PyTorch, but all are kept.
    """

    __slots__ = ("seed_value", "next_double", "next_float", "lock", "_bits", "_generator", "_next_when_spent")

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self.lock = _forks.lock()
        self.next_double: float | None = None
        self.next_float: float | None = None
        random = outside("numpy.random")
        self._bits = random.MT19937(0)
        self._generator = random.Generator(self._bits)
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start the stream of `seed` from its beginning."""
        self.seed_value = seed
        self._bits._legacy_seeding(seed & _WORD)
        self._next_when_spent = 0

    def raw(self, n: int) -> np.ndarray:
        """The next `n` 32-bit draws, as uint64: the cheapest form, meant for a few draws or a block of them."""
        if n:
            self._next_when_spent = WORDS
        return self._bits.random_raw(n)

    def draws32(self, n: int) -> np.ndarray:
        """The next `n` 32-bit draws, as uint32 of shape (n,)."""
        if n <= 64:
            return self.raw(n).astype(np.uint32)
        self._next_when_spent = WORDS
        return self._generator.integers(0, _WORD, n, dtype=np.uint32, endpoint=True)

    def draws64(self, n: int) -> np.ndarray:
        """The next `n` 64-bit draws, as uint64 of shape (n,): each is two 32-bit draws, the first one high."""
        if n <= 64:
            pair = self.raw(2 * n)
            return (pair[0::2] << np.uint64(32)) | pair[1::2]
        self._next_when_spent = WORDS
        return self._generator.integers(0, 0xFFFFFFFFFFFFFFFF, n, dtype=np.uint64, endpoint=True)

    def position(self) -> tuple[np.ndarray, int, int]:
        """(words, left, next): the 624 words as uint32 and PyTorch's two counters, see Note [left and next]."""
        state = self._bits.state["state"]
        pos = int(state["pos"])
        if pos == WORDS:
            return state["key"], 1, self._next_when_spent
        return state["key"], WORDS + 1 - pos, pos

    def set_position(self, words: np.ndarray, left: int, next_: int) -> None:
        """Take over `words` (624 of uint32) and PyTorch's counters.

        Raises RuntimeError for counters that cannot occur.
        """
        spent = left == 1 and 0 <= next_ <= WORDS
        if not spent and not (1 < left <= WORDS and next_ == WORDS + 1 - left):
            raise RuntimeError("Invalid mt19937 state")
        self._next_when_spent = next_
        pos = WORDS if spent else next_
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": np.array(words, np.uint32), "pos": pos}}

    def copy(self) -> Mt19937:
        """An engine of its own that goes on with the same draws."""
        other = Mt19937(self.seed_value)
        other.set_position(*self.position())
        return other


Engine: Any = Mt19937 if extension is None else extension.Stream
"""What generators draw from: `Mt19937`, or the C extension's type of the same methods, from which its kernels draw by themselves."""
