"""Random numbers on the CPU: what PyTorch draws for the same seed, see `_random`.

In-place kernels fill the memory of their array, in the order of its strides; `generator` is None for the default one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...._dispatch.native import kernel
from ...._dtype import dtype as DType, from_numpy_dtype, get_default_dtype, int64
from ...._random import default_generator, streams
from ...._random.layout import fill, fill_like

Array = np.ndarray


def _gen(generator: Any) -> Any:
    return default_generator if generator is None else generator


def _filled(out: Array, draw: Callable[[tuple[int, ...], DType], Array]) -> Array:
    """Numbers in memory order."""
    kind = from_numpy_dtype(out.dtype)
    return fill(out, lambda shape: draw(shape, kind))


def _blank(self: Array, dtype: DType | None, memory_format: Any) -> Array:
    """What `*_like` fills: self's geometry where it is dense."""
    kind = self.dtype if dtype is None else dtype.np
    if memory_format is None or "preserve" in str(memory_format):
        return fill_like(self, lambda shape: np.empty(shape, kind))
    return np.empty(self.shape, kind)


# --- in place -----------------------------------------------------------------------------------------------------


@kernel
def uniform_(self: Array, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Array:
    """Uniform numbers low <= x < high."""
    return _filled(
        self,
        lambda shape, kind: streams.uniform(_gen(generator), shape, kind, low, high),
    )


@kernel
def normal_(self: Array, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Array:
    """Normal numbers. The stream depends on whether the array is contiguous."""
    dense = self.flags.c_contiguous
    return _filled(
        self,
        lambda shape, kind: streams.normal(_gen(generator), shape, kind, mean, std, dense),
    )


@kernel
def random_(self: Array, generator: Any = None) -> Array:
    """Integers over the dtype's range."""
    return _filled(self, lambda shape, kind: streams.random(_gen(generator), shape, kind))


@kernel
def random_to(self: Array, to: int, generator: Any = None) -> Array:
    """Integers 0 <= x < to."""
    return random_from(self, 0, to, generator)


@kernel
def random_from(self: Array, low: int, to: int | None, generator: Any = None) -> Array:
    """Integers low <= x < to, or up to the dtype's largest."""
    return _filled(self, lambda shape, kind: streams.randint(_gen(generator), shape, kind, low, to))


@kernel
def bernoulli_float(self: Array, p: float = 0.5, generator: Any = None) -> Array:
    """Ones with probability p, zeros else."""
    return _filled(self, lambda shape, kind: streams.bernoulli(_gen(generator), shape, kind, p))


@kernel
def bernoulli_tensor(self: Array, p: Array, generator: Any = None) -> Array:
    """Ones with the probabilities of p, which broadcasts."""
    return streams.bernoulli_tensor(_gen(generator), p, from_numpy_dtype(self.dtype), self)


@kernel
def exponential_(self: Array, lambd: float = 1.0, generator: Any = None) -> Array:
    """Exponential numbers of rate lambd."""
    if not self.size:
        return self
    return _filled(
        self,
        lambda shape, kind: streams.exponential(_gen(generator), shape, kind, lambd),
    )


@kernel
def geometric_(self: Array, p: float, generator: Any = None) -> Array:
    """Trials up to the first success."""
    return _filled(self, lambda shape, kind: streams.geometric(_gen(generator), shape, kind, p))


@kernel
def cauchy_(self: Array, median: float = 0.0, sigma: float = 1.0, generator: Any = None) -> Array:
    """Cauchy numbers."""
    return _filled(
        self,
        lambda shape, kind: streams.cauchy(_gen(generator), shape, kind, median, sigma),
    )


@kernel
def log_normal_(self: Array, mean: float = 1.0, std: float = 2.0, generator: Any = None) -> Array:
    """exp of normal numbers."""
    return _filled(
        self,
        lambda shape, kind: streams.log_normal(_gen(generator), shape, kind, mean, std),
    )


# --- new arrays ---------------------------------------------------------------------------------------------------


@kernel
def rand(
    size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Uniform numbers 0 <= x < 1."""
    return streams.uniform(default_generator, size, dtype or get_default_dtype())


@kernel
def rand_generator(
    size: Sequence[int],
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Uniform numbers 0 <= x < 1."""
    return streams.uniform(_gen(generator), size, dtype or get_default_dtype())


@kernel
def randn(
    size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Standard normal numbers."""
    return streams.normal(default_generator, size, dtype or get_default_dtype())


@kernel
def randn_generator(
    size: Sequence[int],
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Standard normal numbers."""
    return streams.normal(_gen(generator), size, dtype or get_default_dtype())


@kernel
def randint(
    high: int, size: Sequence[int], dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """Integers 0 <= x < high."""
    return streams.randint(default_generator, size, dtype or int64, 0, high)


@kernel
def randint_generator(
    high: int,
    size: Sequence[int],
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Integers 0 <= x < high."""
    return streams.randint(_gen(generator), size, dtype or int64, 0, high)


@kernel
def randint_low(
    low: int,
    high: int,
    size: Sequence[int],
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Integers low <= x < high."""
    return streams.randint(default_generator, size, dtype or int64, low, high)


@kernel
def randint_low_generator(
    low: int, high: int, size: Sequence[int], generator: Any, dtype: Any = None, *_: Any
) -> Array:
    """Integers low <= x < high."""
    return streams.randint(_gen(generator), size, dtype or int64, low, high)


@kernel
def randperm(n: int, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None) -> Array:
    """A permutation of 0 to n - 1."""
    return streams.randperm(default_generator, n, dtype or int64)


@kernel
def randperm_generator(
    n: int, generator: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None
) -> Array:
    """A permutation of 0 to n - 1."""
    return streams.randperm(_gen(generator), n, dtype or int64)


@kernel
def rand_like(
    self: Array,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    memory_format: Any = None,
) -> Array:
    """Uniform numbers 0 <= x < 1 of self's shape."""
    return uniform_(_blank(self, dtype, memory_format))


@kernel
def rand_like_generator(
    self: Array,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    memory_format: Any = None,
) -> Array:
    """Uniform numbers 0 <= x < 1 of self's shape."""
    return uniform_(_blank(self, dtype, memory_format), generator=generator)


@kernel
def randn_like(
    self: Array,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    memory_format: Any = None,
) -> Array:
    """Standard normal numbers of self's shape."""
    return normal_(_blank(self, dtype, memory_format))


@kernel
def randn_like_generator(
    self: Array,
    generator: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    memory_format: Any = None,
) -> Array:
    """Standard normal numbers of self's shape."""
    return normal_(_blank(self, dtype, memory_format), generator=generator)


@kernel
def randint_like(
    self: Array,
    high: int,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    memory_format: Any = None,
) -> Array:
    """Integers 0 <= x < high of self's shape."""
    return random_from(_blank(self, dtype, memory_format), 0, high)


@kernel
def randint_like_low(
    self: Array,
    low: int,
    high: int,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin: Any = None,
    memory_format: Any = None,
) -> Array:
    """Integers low <= x < high of self's shape."""
    return random_from(_blank(self, dtype, memory_format), low, high)


# --- distributions with parameters that are tensors ---------------------------------------------------------------


def normal(mean: Any, std: Any = 1.0, generator: Any = None) -> Array:
    """Normal numbers, mean and deviation per element; one of them may be a number."""
    kind = mean.dtype if isinstance(mean, np.ndarray) else std.dtype
    return streams.normal_like(_gen(generator), mean, std, from_numpy_dtype(kind))


@kernel
def normal_size(
    mean: float,
    std: float,
    size: Sequence[int],
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> Array:
    """Normal numbers of one mean and deviation."""
    return streams.normal(_gen(generator), size, dtype or get_default_dtype(), mean, std)


@kernel
def bernoulli(self: Array, generator: Any = None) -> Array:
    """Ones with the probabilities of self; contiguous, and drawn so, whatever self is."""
    if not self.size:
        return self.copy()
    return bernoulli_tensor(np.empty(self.shape, self.dtype), self, generator)


@kernel
def bernoulli_p(self: Array, p: float, generator: Any = None) -> Array:
    """Ones with probability p, of self's shape; contiguous, and drawn so, whatever self is."""
    return bernoulli_float(np.empty(self.shape, self.dtype), p, generator)


@kernel
def multinomial(self: Array, num_samples: int, replacement: bool = False, generator: Any = None) -> Array:
    """Indices drawn by weight."""
    return streams.multinomial(_gen(generator), self, num_samples, replacement)


def poisson(self: Array, generator: Any = None) -> Array:
    """Poisson numbers of the rates of self."""
    return streams.poisson(_gen(generator), self)


@kernel
def standard_gamma(self: Array, generator: Any = None) -> Array:
    """Gamma numbers of the shapes of self and scale 1."""
    return streams.gamma(_gen(generator), self)


@kernel
def sample_dirichlet(self: Array, generator: Any = None) -> Array:
    """Probabilities along the last dimension, with the concentrations of self."""
    return streams.dirichlet(_gen(generator), self)


@kernel
def binomial(count: Array, prob: Array, generator: Any = None) -> Array:
    """How many trials of count succeed with probability prob."""
    return streams.binomial(_gen(generator), count, prob)


@kernel
def native_dropout(input: Array, p: float, train: bool | None) -> tuple[Array, Array]:
    """(input with a share p of zeros, the rest divided by 1 - p; the mask of what was kept)."""
    if train is False or p == 0 or not input.size:
        return input.copy(), np.ones(input.shape, bool)
    keep = 1.0 - p
    mask = fill_like(input, lambda shape: streams.dropout_mask(default_generator, shape, keep))
    # The factor is rounded to the dtype, as a tensor of ones divided by 1 - p is.
    factor = input.dtype.type(1.0 / keep if keep else 0.0)
    return np.multiply(input, np.multiply(mask, factor, dtype=input.dtype)), mask
