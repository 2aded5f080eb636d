"""`torch.quasirandom`: points that fill the unit cube evenly (Sobol' sequences).

Bit j of the i-th Gray code says whether the j-th direction number of a dimension is added (exclusive or) to its i-th point, so each point follows from the one before by a
single direction number, and many points at once by an accumulated exclusive or.

The direction numbers are Joe and Kuo's (new-joe-kuo-6.21201), which scipy carries; it is imported with the first engine.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import mindtorch_v2 as mt

from ._imports import outside

__all__ = ["SobolEngine"]

_BITS = 30
_DIMENSIONS = 21201


@functools.cache
def _primitive_polynomials() -> tuple[np.ndarray, np.ndarray]:
    """(polynomials, initial direction numbers) of every dimension.

    Raises:
        ModuleNotFoundError: if scipy, which has them, is not installed.
    """
    try:
        stats = outside("scipy.stats")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("torch.quasirandom.SobolEngine needs scipy, for the direction numbers") from error
    with np.load(Path(stats.__file__).parent / "_sobol_direction_numbers.npz") as table:
        return table["poly"], table["vinit"]


def _direction_numbers(dimension: int) -> np.ndarray:
    """The direction numbers of each dimension, [dimension, 30]; the first bit of a fraction is bit 29."""
    polynomials, initial = _primitive_polynomials()
    numbers = np.zeros((dimension, _BITS), np.int64)
    numbers[0] = 1
    for d in range(1, dimension):
        polynomial = int(polynomials[d])
        degree = polynomial.bit_length() - 1
        row = initial[d, :degree].tolist()
        for j in range(degree, _BITS):
            new = row[j - degree]
            for k in range(1, degree + 1):
                if (polynomial >> (degree - k)) & 1:
                    new ^= row[j - k] << k
            row.append(new)
        numbers[d] = row
    return numbers << np.arange(_BITS - 1, -1, -1)


def _scrambled(numbers: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Direction numbers times a lower triangular matrix of bits for each dimension, whose diagonal is 1."""
    places = np.arange(_BITS - 1, -1, -1)
    lower = np.tril(matrices, -1) + np.eye(_BITS, dtype=np.int64)
    bits = (numbers[:, :, None] >> places) & 1
    return ((bits @ lower.transpose(0, 2, 1)) % 2) @ (1 << places)


class SobolEngine:
    """Draws the points of a Sobol' sequence.

    Args:
        dimension: of the cube, at most 21201.
        scramble: multiply and shift the points at random, which keeps their evenness.
        seed: for the scrambling; the default generator is used without one.

    Raises:
        ValueError: for a dimension that is not supported.
    """

    MAXBIT: ClassVar[int] = _BITS
    MAXDIM: ClassVar[int] = _DIMENSIONS

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        numbers = _direction_numbers(dimension)
        if scramble:
            generator = None if seed is None else mt.Generator()
            if generator is not None:
                generator.manual_seed(seed)  # type: ignore[arg-type]  (not None, as the generator is not)
            shift_bits = mt.randint(2, (dimension, _BITS), generator=generator)
            self.shift = mt.mv(shift_bits, mt.pow(2, mt.arange(0, _BITS)))
            matrices = mt.randint(2, (dimension, _BITS, _BITS), generator=generator)
            numbers = _scrambled(numbers, matrices.numpy())
        else:
            self.shift = mt.zeros(dimension, dtype=mt.long)
        self.sobolstate = mt.from_numpy(numbers)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**_BITS).reshape(1, -1)
        self.num_generated = 0

    def _after(self, n: int) -> np.ndarray:
        """The next `n` points as integers, [n, dimension]; the first point, the shift itself, is not among them."""
        done = max(self.num_generated - 1, 0)
        counts = np.arange(done, done + n)
        rightmost_zero = np.log2(~counts & (counts + 1)).astype(np.int64)
        steps = self.sobolstate.numpy()[:, rightmost_zero].T
        points = np.bitwise_xor.accumulate(np.concatenate([self.quasi.numpy()[None], steps]), axis=0)[1:]
        if n:
            self.quasi = mt.from_numpy(points[-1].copy())
        return points

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next `n` points, [n, dimension], in [0, 1).

        Args:
            out: is resized and filled.
            dtype: of the points, the default dtype unless said.
        """
        dtype = mt.get_default_dtype() if dtype is None else dtype
        first = self.num_generated == 0
        points = self._after(n - 1 if first else n)
        result = (mt.from_numpy(points) / 2**_BITS if dtype is not mt.float64 else mt.from_numpy(points / 2**_BITS)).to(
            dtype
        )
        if first and n:
            result = mt.cat((self._first_point.to(dtype), result), dim=-2)
        self.num_generated += n
        if out is not None:
            out.resize_as_(result).copy_(result)
            return out
        return result

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next `2**m` points.

        Raises:
            ValueError: if the points that are drawn then are no power of two, of which evenness is promised.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}={total}. "
                "If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        self._after(n - 1 if self.num_generated == 0 else n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(shown)})"
