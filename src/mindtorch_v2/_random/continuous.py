"""Continuous distributions: uniform, normal, log-normal, exponential, Cauchy.

Every function draws what PyTorch's CPU kernel of that name draws and returns a new array of `shape` in C order;
`layout.fill` puts it into the order of a target's memory. A dtype is a `torch.dtype` or its name. float16 and bfloat16
are computed in float32, or in float64 where PyTorch does so, and then rounded through float32. Complex numbers are
their real view: twice as many numbers.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import numpy as np

from .._dispatch.native import kernel
from .._dtype import dtype as DType
from .._rules import distributions as checks
from . import boxmuller
from .arithmetic import SMALL, elementary, fma32, fma64
from .engine import BLOCK, Mt19937
from .generator import Generator

_LOW24 = np.uint64((1 << 24) - 1)
_LOW53 = np.uint64((1 << 53) - 1)
_SCALE24 = np.float32(2.0**-24)
# exp overflows above.
_LOG_MAX = 709.782712893384


@kernel
def unit32(engine: Mt19937, n: int) -> np.ndarray:
    """`n` float32 numbers 0 <= u < 1: the low 24 bits of a 32-bit draw each, times 2**-24."""
    if n <= BLOCK:
        draws = engine.raw(n)
        np.bitwise_and(draws, _LOW24, draws)
        out = draws.astype(np.float32)
        return np.multiply(out, _SCALE24, out)
    out = np.empty(n, np.float32)
    for start in range(0, n, BLOCK):
        part = out[start : start + BLOCK]
        draws = engine.raw(len(part))
        draws &= _LOW24
        part[...] = draws
        part *= _SCALE24
    return out


@kernel
def unit64(engine: Mt19937, n: int) -> np.ndarray:
    """`n` float64 numbers 0 <= u < 1: the low 53 bits of a 64-bit draw each, times 2**-53."""
    out = np.empty(n, np.float64)
    for start in range(0, n, BLOCK):
        part = out[start : start + BLOCK]
        draws = engine.draws64(len(part))
        draws &= _LOW53
        part[...] = draws
        part *= 2.0**-53
    return out


def _is_double(d: DType) -> bool:
    return d.np == np.float64


def cast(values: np.ndarray, d: DType) -> np.ndarray:
    """float64 or float32 values as dtype `d`, half precisions by way of float32. Copies where it must."""
    if d.itemsize < 4 and values.dtype == np.float64:
        values = values.astype(np.float32)
    return values.astype(d.np, copy=False)


def uniform(
    gen: Generator, shape: Sequence[int], dtype: DType | str, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Uniform numbers low <= x < high (`uniform_`, `rand`): u * (high - low) + low with one rounding.

    A number that rounding brought up to `high` becomes `low`.
    """
    d = checks.resolve(dtype)
    if (low, high) != (0, 1) or d.name not in checks.REAL:
        checks.uniform(d, low, high)
    shape = tuple(shape)
    if d.is_complex:
        return _from_real(uniform(gen, (*shape, 2), d.to_real(), low, high), d)
    n = math.prod(shape)
    if _is_double(d):
        with gen.lock:
            u = unit64(gen.engine, n)
        if (low, high) != (0, 1):
            u = fma64(u, high - low, low)
            u[u == high] = low
        return u.reshape(shape)
    with gen.lock:
        u = unit32(gen.engine, n)
    if (low, high) != (0, 1):
        single_low, single_high = np.float32(low), np.float32(high)
        u = fma32(u, float(single_high - single_low), float(single_low))
    elif d.itemsize == 4:
        return u.reshape(shape)
    x = cast(u, d)
    scalar = checks.numpy_dtype(d).type
    x[x == scalar(high)] = scalar(low)
    return x.reshape(shape)


def normal(
    gen: Generator,
    shape: Sequence[int],
    dtype: DType | str,
    mean: float = 0.0,
    std: float = 1.0,
    contiguous: bool = True,
) -> np.ndarray:
    """Normal numbers (`normal_`, `randn`), by Box and Muller.

    PyTorch has two ways, with different numbers: blocks of 16 where the target is contiguous and has 16 elements or
    more, and one after the other in double precision elsewhere. `contiguous` says which the target is. See `boxmuller`
    for both formulas.
    """
    d = checks.resolve(dtype)
    shape = tuple(shape)
    n = math.prod(shape)
    if not n:  # nothing is filled, and so no kernel asks for the dtype
        checks.normal("float32", std)
        return np.empty(shape, d.np)
    if std != 1 or d.name not in checks.REAL:
        checks.normal(d, std)
    if d.is_complex:
        # The variance is shared by the two parts.
        return _from_real(normal(gen, (*shape, 2), d.to_real(), mean, std / math.sqrt(2), contiguous), d)
    with gen.lock:
        if contiguous and n >= 16:
            values = _normal_blocks(gen.engine, n, d, mean, std)
        else:
            values = cast(fma64(_normal_sequence(gen, n, _is_double(d)), std, mean), d)
    return values.reshape(shape)


@kernel
def _normal_blocks(engine: Mt19937, n: int, d: DType, mean: float, std: float) -> np.ndarray:
    """Blocks of 16. A tail that is no whole block is covered by one more, which overwrites part of its predecessor.

    float32 and float64 first draw uniforms for all elements, the tail's included, the half precisions block by block:
    so the tail's own draws are made and lost in the former only.
    """
    double = _is_double(d)
    unit, transform = (unit64, boxmuller.double_blocks) if double else (unit32, boxmuller.single_blocks)
    whole = n - n % 16
    drawn = unit(engine, n if d.itemsize >= 4 else whole)
    values = np.empty(n, drawn.dtype) if n > len(drawn) else drawn
    if values is not drawn:
        values[:whole] = drawn
    transform(values[:whole].reshape(-1, 16))
    if n != whole:
        last = unit(engine, 16)
        transform(last.reshape(1, 16))
        values[-16:] = last
    if double:
        values = fma64(values, std, mean)
    else:
        values = fma32(values, float(np.float32(std)), float(np.float32(mean)))
    return cast(values, d)


@kernel
def _normal_sequence(gen: Generator, n: int, exact: bool) -> np.ndarray:
    """`n` standard normal float64 numbers, one after the other.

    They come in pairs: the second of the last waits for the next call.
    """
    if n <= SMALL:
        return np.array(_few_normals(gen, n), np.float64)
    out = np.empty(n, np.float64)
    first = 0
    if n and gen.next_double is not None:
        out[0] = gen.next_double
        gen.next_double = None
        first = 1
    rest = n - first
    if rest:
        u = unit64(gen.engine, rest + rest % 2)
        values = boxmuller.pairs(u, exact)
        out[first:] = values[:rest]
        if rest % 2:
            # It may serve a float64 tensor, so it is exact whatever this call is for.
            gen.next_double = float(boxmuller.pairs(u[-2:], True)[1])
    return out


def _few_normals(gen: Generator, n: int) -> list[float]:
    """`_normal_sequence` number by number."""
    found = []
    if n and gen.next_double is not None:
        found.append(gen.next_double)
        gen.next_double = None
    rest = n - len(found)
    if rest:
        draws = iter(gen.engine.raw(4 * ((rest + 1) // 2)).tolist())
        units = [((high << 32 | low) & 0x1FFFFFFFFFFFFF) * 2.0**-53 for high, low in zip(draws, draws)]
        for angle, radius in zip(units[::2], units[1::2]):
            point = cmath.rect(math.sqrt(-2 * math.log1p(-radius)), 2 * math.pi * angle)
            found += (point.real, point.imag)
        if rest % 2:
            gen.next_double = found.pop()
    return found


def normal_like(gen: Generator, mean: np.ndarray | float, std: np.ndarray | float, dtype: DType | str) -> np.ndarray:
    """`normal(mean, std)` where one or both are arrays, of `dtype`, in their broadcast shape.

    z * std + mean, with a rounding to the dtype after each step.

    Raises RuntimeError if an element of `std` is negative.
    """
    d = checks.resolve(dtype)
    if isinstance(std, np.ndarray):
        if std.size and not std.min() >= 0:
            raise RuntimeError("normal expects all elements of std >= 0.0")
        shape = np.broadcast_shapes(std.shape, np.shape(mean))
        z = normal(gen, shape, d)
        z = _in_place(np.multiply, z, std)
    else:
        z = normal(gen, np.shape(mean), d, 0.0, std)
    return _in_place(np.add, z, mean)


def _in_place(ufunc: np.ufunc, x: np.ndarray, y: np.ndarray | float) -> np.ndarray:
    """ufunc(x, y) computed as an in-place operator of PyTorch would, in the dtype of x."""
    # A number becomes a 0-dim tensor of x's dtype, and is rounded to that.
    y = y if isinstance(y, np.ndarray) else np.asarray(y).astype(x.dtype)
    if y.dtype == np.float64 and y.ndim:
        return cast(ufunc(x.astype(np.float64), y), checks.resolve(x.dtype.name))
    if x.itemsize < 4:
        return ufunc(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return ufunc(x, y.astype(x.dtype))


def log_normal(
    gen: Generator, shape: Sequence[int], dtype: DType | str, mean: float = 1.0, std: float = 2.0
) -> np.ndarray:
    """exp of normal numbers (`log_normal_`), always drawn one after the other."""
    d = checks.resolve(dtype)
    if not math.prod(shape):  # nothing is filled, and so no kernel asks for the dtype
        checks.log_normal("float32", std)
        return np.empty(tuple(shape), d.np)
    checks.log_normal(d, std)
    exact = _is_double(d)
    with gen.lock:
        x = fma64(_normal_sequence(gen, math.prod(shape), exact), std, mean)
    finite = x <= _LOG_MAX
    values = np.where(np.isnan(x), np.nan, np.inf)
    values[finite] = elementary("exp", x[finite], exact)
    return cast(values, d).reshape(tuple(shape))


def exponential(gen: Generator, shape: Sequence[int], dtype: DType | str, rate: float = 1.0) -> np.ndarray:
    """Exponential numbers of rate `rate` (`exponential_`): -1 / rate * log1p(-u), by inversion."""
    d = checks.resolve(dtype)
    checks.exponential(d, rate)
    with gen.lock:
        u = unit64(gen.engine, math.prod(shape))
    np.negative(u, out=u)
    values = elementary("log1p", u, _is_double(d))
    values *= -1.0 / rate
    return cast(values, d).reshape(tuple(shape))


def cauchy(
    gen: Generator, shape: Sequence[int], dtype: DType | str, median: float = 0.0, sigma: float = 1.0
) -> np.ndarray:
    """Cauchy numbers (`cauchy_`): median + sigma * tan(pi * (u - 1/2)), by inversion."""
    d = checks.resolve(dtype)
    checks.cauchy(d, sigma)
    with gen.lock:
        u = unit64(gen.engine, math.prod(shape))
    u -= 0.5
    u *= math.pi
    return cast(fma64(elementary("tan", u, _is_double(d)), sigma, median), d).reshape(tuple(shape))


def _from_real(values: np.ndarray, d: DType) -> np.ndarray:
    """A real view (..., 2) as a complex array (...)."""
    return values.view(checks.numpy_dtype(d))[..., 0]
