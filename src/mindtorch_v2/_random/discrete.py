"""Discrete distributions: integers, permutations, Bernoulli, dropout, geometric, multinomial.

As in `continuous`, each function draws what PyTorch's CPU kernel draws and returns a new array in C order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._dtype import dtype as DType
from .._rules import distributions as checks
from .arithmetic import elementary
from .continuous import cast, exponential, unit32, unit64
from .engine import BLOCK, Mt19937
from .generator import Generator
from .layout import draw_order, fill, fill_like

_LOW53 = np.uint64((1 << 53) - 1)
# From this range on PyTorch takes 64-bit draws, to keep the bias of the remainder small.
_WIDE_RANGE = 1 << 28
# From this length on randperm takes 64-bit draws, and another algorithm.
_WIDE_PERMUTATION = 0xFFFFFFFF // 20
# Below this many elements a loop over a list is quicker than blocks.
_SMALL_PERMUTATION = 4096


def randint(gen: Generator, shape: Sequence[int], dtype: DType | str, low: int, high: int | None) -> np.ndarray:
    """Integers low <= x < high (`randint`, `random_(low, high)`): draw % range + low.

    Up to the largest of the dtype (2**digits of a floating one) where `high` is None.
    """
    d = checks.resolve(dtype)
    bounds = checks.random_from_to(d, low, high)
    n = math.prod(shape)
    with gen.lock:
        if bounds is None:
            values = gen.engine.draws64(n).view(np.int64)
        elif bounds[1] < _WIDE_RANGE:
            values = _remainder(gen.engine.draws32(n), bounds[1]).astype(np.int64)
            values += bounds[0]
        else:
            draws = _remainder(gen.engine.draws64(n), bounds[1])
            draws += np.uint64(bounds[0] % (1 << 64))
            values = draws.view(np.int64)
    return _from_int64(values, d).reshape(tuple(shape))


def random(gen: Generator, shape: Sequence[int], dtype: DType | str) -> np.ndarray:
    """`random_()`: integers 0 <= x <= the largest of the dtype; of a floating dtype, up to 2**digits."""
    d = checks.resolve(dtype)
    checks.random(d)
    n = math.prod(shape)
    if d.name in checks.DIGITS:
        count = (1 << checks.DIGITS[d.name]) + 1
    elif d.name == "bool":
        count = 2
    else:
        count = int(np.iinfo(d.np).max) + 1
    with gen.lock:
        draws = gen.engine.draws64(n) if d.name in ("int64", "float64") else gen.engine.draws32(n)
    return _from_int64(_remainder(draws, count).astype(np.int64), d).reshape(tuple(shape))


def _remainder(draws: np.ndarray, count: int) -> np.ndarray:
    """draws % count; the division by one number is vectorised in numpy, the remainder is not."""
    if count & (count - 1) == 0:
        draws &= draws.dtype.type(count - 1)
        return draws
    divisor = draws.dtype.type(count)
    return draws - draws // divisor * divisor


def _from_int64(values: np.ndarray, d: DType) -> np.ndarray:
    if d.is_floating_point and d.itemsize < 4:
        values = values.astype(np.float32)
    return values.astype(d.np, copy=False)


def randperm(gen: Generator, n: int, dtype: DType | str = "int64") -> np.ndarray:
    """A permutation of 0 .. n-1, by Fisher and Yates: element i changes places with element i + draw % (n - i)."""
    d = checks.resolve(dtype)
    checks.randperm(d, n)
    with gen.lock:
        if n >= _WIDE_PERMUTATION:
            return _from_int64(_inside_out(gen.engine, n), d)
        targets = gen.engine.draws32(max(n - 1, 0))
    targets %= np.arange(n, 1, -1, dtype=np.uint32)
    targets += np.arange(max(n - 1, 0), dtype=np.uint32)
    if n <= _SMALL_PERMUTATION:
        values = np.array(_exchange_all(list(range(n)), targets.tolist()), np.int64)
    else:
        values = _exchange_blocks(n, targets.astype(np.int64))
    return _from_int64(values, d)


def _exchange_all(items: list[int], targets: list[int]) -> list[int]:
    for i, j in enumerate(targets):
        items[i], items[j] = items[j], items[i]
    return items


def _exchange_blocks(n: int, targets: np.ndarray) -> np.ndarray:
    """The exchanges (i, targets[i]) for i = 0, 1, ... on 0 .. n-1, a block of them at a time.

    Exchanges that share no element commute. In a block of a few times the square root of what is left few do: those
    that do are made one by one in their order, all others at once.
    """
    items = np.arange(n, dtype=np.int64)
    owner = np.empty(n, np.int32)
    start, end = 0, len(targets)
    while end - start > _SMALL_PERMUTATION:
        stop = min(end, start + 3 * math.isqrt(n - start))
        sources = np.arange(start, stop)
        to = targets[start:stop]
        number = np.arange(stop - start, dtype=np.int32)
        # Two with one target: the last writer owns it, and the others find that out.
        owner[to] = number
        lost = np.flatnonzero(owner[to] != number)
        shared = np.zeros(stop - start, bool)
        shared[lost] = True
        shared[owner[to[lost]]] = True
        # One whose target is the source of another, or of itself.
        inside = np.flatnonzero(to < stop)
        shared[inside] = True
        shared[to[inside] - start] = True
        alone = ~shared
        i, j = sources[alone], to[alone]
        moved = items[i]
        items[i] = items[j]
        items[j] = moved
        for k in np.flatnonzero(shared).tolist():
            a, b = start + k, to[k]
            items[a], items[b] = items[b], items[a]
        start = stop
    tail = _exchange_all(items[start:].tolist(), (targets[start:] - start).tolist())
    items[start:] = tail
    return items


def _inside_out(engine: Mt19937, n: int) -> np.ndarray:
    """The variant for very long permutations: i goes to place draw % (i + 1), whose element moves to place i."""
    items = np.empty(n, np.int64)
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        places = engine.draws64(stop - start) % np.arange(start + 1, stop + 1, dtype=np.uint64)
        for i, place in zip(range(start, stop), places.tolist()):
            items[i] = i
            items[i] = items[place]
            items[place] = i
    return items


def _bernoulli_mask(engine: Mt19937, n: int, p: float) -> np.ndarray:
    """`n` trials of probability `p`, as bool: u < p in 53 bits, compared as integers."""
    limit = np.uint64(math.ceil(p * (1 << 53)))
    out = np.empty(n, bool)
    for start in range(0, n, BLOCK):
        part = out[start : start + BLOCK]
        draws = engine.draws64(len(part))
        draws &= _LOW53
        np.less(draws, limit, out=part)
    return out


def bernoulli(gen: Generator, shape: Sequence[int], dtype: DType | str, p: float = 0.5) -> np.ndarray:
    """Zeros and ones (`bernoulli_(p)`, `bernoulli(x, p)`): a 64-bit draw each, 1 where u < p."""
    d = checks.resolve(dtype)
    checks.bernoulli(d, p)
    with gen.lock:
        mask = _bernoulli_mask(gen.engine, math.prod(shape), p)
    return mask.astype(d.np, copy=False).reshape(tuple(shape))


def dropout_mask(gen: Generator, shape: Sequence[int], keep: float) -> np.ndarray:
    """The bool mask of what `dropout` keeps, with probability `keep` = 1 - p. The kept are to be divided by `keep`."""
    return bernoulli(gen, shape, "bool", keep)


def bernoulli_tensor(gen: Generator, p: np.ndarray, dtype: DType | str, out: np.ndarray | None = None) -> np.ndarray:
    """Zeros and ones of probabilities `p` (`bernoulli(p)`, `bernoulli_(p)`), or into `out`, to which p is broadcast.

    A 32-bit draw each and 24 bits of it, or a 64-bit draw and 53 bits where p is float64. `p` is in the order of its
    indices, the draws in that of out's memory. Raises RuntimeError for a p outside [0, 1].
    """
    d = checks.resolve(dtype)
    checks.bernoulli_tensor(d, p.dtype.name)
    if out is None:
        out = np.empty(p.shape, d.np)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )
    unit = unit64 if p.dtype == np.float64 else unit32
    p = np.broadcast_to(p, out.shape).transpose(draw_order(out.strides))
    with gen.lock:
        u = unit(gen.engine, out.size).reshape(p.shape)
    return fill(out, lambda _: u < p.astype(u.dtype, copy=False))


def geometric(gen: Generator, shape: Sequence[int], dtype: DType | str, p: float) -> np.ndarray:
    """Trials up to the first success (`geometric_`): ceil(log(u) / log1p(-p)), by inversion."""
    d = checks.resolve(dtype)
    checks.geometric(d, p)
    with gen.lock:
        u = unit64(gen.engine, math.prod(shape))
    values = np.full(u.shape, -np.inf)
    positive = u > 0
    values[positive] = elementary("log", u[positive], exact=False)
    values /= math.log1p(-p)
    np.ceil(values, out=values)
    if not d.is_floating_point:
        return values.astype(np.int64).astype(d.np).reshape(tuple(shape))
    return cast(values, d).reshape(tuple(shape))


def multinomial(gen: Generator, weights: np.ndarray, num_samples: int, replacement: bool = False) -> np.ndarray:
    """Indices drawn by weight from each row of `weights`, (k,) or (m, k): int64, (num_samples,) or (m, num_samples).

    With replacement: the place of a 53-bit uniform in the cumulative weights. Without, and for a single sample: an
    exponential race. Category i finishes after q_i / w_i, with exponential q_i of rate 1; the first ones to finish are
    the sample, and the first of all is distributed by weight (Efraimidis and Spirakis, "Weighted random sampling with a
    reservoir", 2006). Among categories of weight zero, which finish never, the order is that of the indices; PyTorch's
    is that of its sorting routine. Raises RuntimeError for weights that are negative, infinite, NaN, or all zero.
    """
    checks.multinomial(weights.dtype.name, weights.shape, num_samples, replacement)
    if replacement and num_samples > 1:
        return _with_replacement(gen, weights, num_samples)
    wide = weights.astype(np.float32) if weights.itemsize < 4 else weights
    if weights.size == 0:
        return np.zeros((*weights.shape[:-1], num_samples), np.int64)
    if not (wide.max() < np.inf and wide.min() >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not wide.any(axis=-1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    # The race is laid out as the weights are, so a transposed matrix draws down its columns.
    q = fill_like(weights, lambda shape: exponential(gen, shape, weights.dtype.name))
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = (wide / q.astype(wide.dtype, copy=False)).astype(weights.dtype, copy=False)
    if weights.itemsize < 4:
        speed = speed.astype(np.float32)
    if num_samples == 1:
        return speed.argmax(-1, keepdims=True)
    return np.argsort(-speed, axis=-1, kind="stable")[..., :num_samples].copy()


def _with_replacement(gen: Generator, weights: np.ndarray, num_samples: int) -> np.ndarray:
    wide = weights.astype(np.float32) if weights.itemsize < 4 else weights
    rows = wide.reshape(math.prod(wide.shape[:-1]), wide.shape[-1])
    if not (rows >= 0).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not np.isfinite(rows).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
    cumulative = np.add.accumulate(rows, axis=-1)
    total = cumulative[:, -1:]
    if len(rows) and not (total.size and (total > 0).all()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    cumulative = (cumulative / total).astype(np.float64, copy=False)
    cumulative[:, -1] = 1
    with gen.lock:
        u = unit64(gen.engine, len(rows) * num_samples).reshape(len(rows), num_samples)
    out = np.empty((len(rows), num_samples), np.int64)
    for row, edges, numbers in zip(out, cumulative, u):
        row[...] = np.searchsorted(edges, numbers)
    return out.reshape(*weights.shape[:-1], num_samples)
