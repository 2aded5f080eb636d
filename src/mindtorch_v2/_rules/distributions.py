"""What the distributions accept: the errors of PyTorch's CPU operators, without a draw.

Every function takes a `torch.dtype` or its name. They raise before anything is drawn, so a refused call leaves the
generator as it was; the rules of the meta device call them too.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import _dtype
from .._dtype import dtype as DType
from .._warnings import warn_of_call

REAL = frozenset(("float16", "bfloat16", "float32", "float64"))
SIGNED_OR_BYTE = frozenset(("uint8", "int8", "int16", "int32", "int64"))
WIDE_UNSIGNED = frozenset(("uint16", "uint32", "uint64"))
_COMPLEX = frozenset(("complex32", "complex64", "complex128"))
# Bits of the significand: integers up to 2**digits are exact.
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)


def resolve(dtype: DType | str) -> DType:
    """The dtype of a name; a dtype as it is."""
    return _dtype.by_name(dtype) if isinstance(dtype, str) else dtype


def numpy_dtype(d: DType) -> np.dtype[Any]:
    """The numpy dtype of a dtype that these functions have accepted."""
    assert d.np is not None
    return d.np


def _supported(dtype: DType | str, kernel: str, names: frozenset[str]) -> None:
    d = resolve(dtype)
    if d.name not in names:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{d.cpp}'")


@functools.cache
def _limits(d: DType) -> tuple[float, float]:
    info = _dtype.finfo(d) if d.is_floating_point else _dtype.iinfo(d)
    return info.min, info.max


def _number(x: float) -> str:
    """A double as a C++ stream prints it: six significant digits."""
    return f"{float(x):g}"


def uniform(dtype: DType | str, low: float, high: float) -> None:
    """`uniform_(low, high)`."""
    d = resolve(dtype)
    if d.name in _COMPLEX:
        d = d.to_real()
    _supported(d, "check_uniform_bounds", REAL)
    least, most = _limits(d)
    for name, value in (("from", low), ("to", high)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {d.ctype}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={_number(low)} > to={_number(high)}"
        )
    if high - low > most:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{d.cpp}>::max(), but found to={_number(high)} and "
            f"from={_number(low)} which result in to-from to exceed the limit"
        )


def normal(dtype: DType | str, std: float) -> None:
    """`normal_(mean, std)`."""
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {_number(std)}")
    d = resolve(dtype)
    _supported(d.to_real() if d.name in _COMPLEX else d, "normal_kernel_cpu", REAL)


def exponential(dtype: DType | str, rate: float) -> None:
    """`exponential_(lambd)`."""
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={_number(rate)}")
    d = resolve(dtype)
    if not d.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {d.cpp}"
        )
    _supported(d, "exponential_cpu", REAL)


def cauchy(dtype: DType | str, sigma: float) -> None:
    """`cauchy_(median, sigma)`."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={_number(sigma)}")
    d = resolve(dtype)
    if not d.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {d.ctype}"
        )
    _supported(d, "cauchy_cpu", REAL)


def log_normal(dtype: DType | str, std: float) -> None:
    """`log_normal_(mean, std)`."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={_number(std)}")
    _supported(dtype, "log_normal_cpu", REAL)


def geometric(dtype: DType | str, p: float) -> None:
    """`geometric_(p)`."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={_number(p)}")
    _supported(dtype, "geometric_cpu", REAL | SIGNED_OR_BYTE)


def bernoulli(dtype: DType | str, p: float) -> None:
    """`bernoulli_(p)` with a number."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={_number(p)}")
    _supported(dtype, "bernoulli_scalar_cpu_", REAL | SIGNED_OR_BYTE | {"bool"})


def bernoulli_tensor(dtype: DType | str, p_dtype: DType | str) -> None:
    """`bernoulli_(p)` with a tensor; its values are checked when they are used."""
    _supported(dtype, "bernoulli_tensor_cpu_self_", REAL | SIGNED_OR_BYTE | {"bool"})
    _supported(p_dtype, "bernoulli_tensor_cpu_p_", REAL)


def poisson(dtype: DType | str) -> None:
    """`poisson(rate)`; its values are checked when they are used."""
    _supported(dtype, "poisson_cpu", REAL)


def drawn(kinds: dict[str, DType], op: str) -> None:
    """Gamma, Dirichlet and binomial numbers and their derivatives, of parameters with these dtypes: all float32 or all float64."""
    if op == "binomial_cpu":
        for name, kind in kinds.items():
            if not kind.is_floating_point:
                raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {kind.cpp}")
    first, *others = kinds.values()
    _supported(first, op, frozenset(("float32", "float64")))
    for kind in others:
        if kind is not first:
            raise RuntimeError(f"Found dtype {kind.cpp} but expected {first.cpp}")


def random(dtype: DType | str) -> None:
    """`random_()` over the whole range."""
    _supported(dtype, "random_kernel_cpu", REAL | SIGNED_OR_BYTE | {"bool"})


def random_from_to(dtype: DType | str, low: int, high: int | None, warn: bool = True) -> tuple[int, int] | None:
    """`random_(low, high)`, and randint: (base, range) of what is drawn, None for all 2**64 values.

    The latter is meant by `low` the least int64 and `high` None.

    A floating dtype's bounds move inwards to numbers that it can hold. Warns (unless `warn` is False) beyond its exact
    integers.
    """
    d = resolve(dtype)
    if high is not None:
        if low >= high:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
        if d.is_floating_point:
            _supported(d, "random_update_from_to", REAL)
            low, high = _inner_from(d, low), _inner_to(d, high)
            if low >= high:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                    f"from={low} >= to={high}"
                )
        last = high - 1
    elif low == MIN_INT64:
        if d.name not in ("int64", "float64", "float32", "bfloat16"):
            if d.name in SIGNED_OR_BYTE:
                raise RuntimeError(
                    "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"
                )
            raise NotImplementedError(f"\"random_full_64_bits_range_kernel_cpu\" not implemented for '{d.cpp}'")
        return None
    elif d.is_floating_point:
        _supported(d, "random_from_to_range_calc", REAL)
        last = 1 << DIGITS[d.name]
        low = _inner_from(d, low)
        if low >= last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                f"from={low} > to_inc={last}"
            )
    elif d.is_complex:
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    else:
        # The largest uint64 does not fit PyTorch's int64 bound, and is refused as -1.
        last = {"bool": 1, "uint64": -1}.get(d.name) or int(_dtype.iinfo(d).max)
    _in_range(d, low, last, warn)
    return low, last - low + 1


def _in_range(d: DType, low: int, last: int, warn: bool) -> None:
    if d.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if d.name == "bool":
        least, most = 0, 1
    elif d.name == "uint64":
        least, most = 0, MAX_INT64
    else:
        least, most = _limits(d)
    for name, value in (("from", low), ("to - 1", last)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {d.ctype}")
    if not warn or not d.is_floating_point:
        return
    digits = DIGITS[d.name]
    for name, value in (("from", low), ("to - 1", last)):
        if abs(value) > 1 << digits:
            warn_of_call(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {d.ctype} can "
                "support discrete uniform distribution only within this range. This warning will become an error in "
                "version 1.7 release, please fix the code in advance"
            )


def _through(d: DType, value: int) -> int:
    """`value` rounded to what `d` holds."""
    with np.errstate(over="ignore"):
        start = np.float32(value) if d.itemsize < 4 else value
        rounded = float(numpy_dtype(d).type(start))
    return int(rounded) if math.isfinite(rounded) else MIN_INT64


def _spacing(d: DType, value: int) -> int:
    return 1 << max(abs(value).bit_length() - DIGITS[d.name], 0)


def _inner_from(d: DType, low: int) -> int:
    above = _through(d, low + 1)
    return above + _spacing(d, low + 1) if above < low else low


def _inner_to(d: DType, high: int) -> int:
    below = _through(d, high - 1)
    return below - _spacing(d, high - 1) if below >= high else high


def randperm(dtype: DType | str, n: int) -> None:
    """`randperm(n, dtype=dtype)`."""
    d = resolve(dtype)
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got{n}")
    if d.name in DIGITS and d.name != "bfloat16":
        exact = (1 << DIGITS[d.name]) + 1
        if n > exact:
            text = str(exact) if d.name == "float16" else f"2^{DIGITS[d.name]}+1"
            raise RuntimeError(f"n cannot be greater than {text} for {d.cpp} type.")
    elif d.name in SIGNED_OR_BYTE and n - 1 > _dtype.iinfo(d).max:
        raise RuntimeError(f"value cannot be converted to type {d.name}_t without overflow")
    _supported(d, "randperm", REAL | SIGNED_OR_BYTE)


def multinomial(dtype: DType | str, shape: tuple[int, ...], num_samples: int, replacement: bool) -> None:
    """`multinomial(weights, num_samples, replacement)`; the weights' values are checked when they are used."""
    d = resolve(dtype)
    if not 0 < len(shape) <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not d.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {d.cpp}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    categories = shape[-1]
    if not replacement and num_samples > categories:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if categories > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if not replacement or num_samples == 1:
        if categories == 0 and math.prod(shape[:-1]):
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        _supported(d, "aminmax_cpu", REAL)
    _supported(d, "multinomial", REAL)
