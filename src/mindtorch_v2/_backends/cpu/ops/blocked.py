"""Kernels of several passes go block by block through the cache when their arrays are large; and what kernels that are made of `block` expressions call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

BLOCK = 8192
"""Elements of a block: the temporaries of a kernel then stay in the second-level cache."""
_WIDE = 4 * BLOCK  # where each pass is a call of numpy, which costs as much as some thousand elements
_BITS = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
_FEW = 1024  # elements for which numpy's choice is as fast as one by bits


def blocked(
    kernel: Callable[[np.ndarray, np.ndarray], None],
    x: np.ndarray,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Apply `kernel(x, out)` to `x`, in blocks where that pays. `out` may be `x` itself."""
    if out is None:
        out = np.empty_like(x)
    if x.ndim == 0:  # numpy turns results without dimensions into scalars, which kernels cannot write to
        kernel(x.reshape(1), out.reshape(1))
        return out
    if x.size <= BLOCK or not (x.flags.forc and out.flags.forc and x.strides == out.strides):
        kernel(x, out)
        return out
    order = "C" if x.flags.c_contiguous else "F"
    source, target = x.reshape(-1, order=order), out.reshape(-1, order=order)
    for start in range(0, source.size, BLOCK):
        kernel(source[start : start + BLOCK], target[start : start + BLOCK])
    return out


def _in_blocks(kernel: Callable[..., Any], least: int) -> Callable[..., Any]:
    @functools.wraps(kernel)
    def run(*args: Any, out: ndarray | None = None) -> Any:
        first = args[0]
        if first.size < least or not first.flags.forc:
            return kernel(*args) if out is None else kernel(*args, out=out)
        sources = [(i, a) for i, a in enumerate(args) if a.__class__ is ndarray and a.ndim]
        whole = [a for _, a in sources] if out is None else [out, *(a for _, a in sources)]
        alike = all(a.shape == first.shape and a.strides == first.strides for a in whole)
        if not alike or whole[0].dtype != first.dtype:
            return kernel(*args) if out is None else kernel(*args, out=out)
        if out is None:
            out = np.empty_like(first)
        given = list(args)
        order = "C" if first.flags.c_contiguous else "F"
        flat = [(i, a.reshape(-1, order=order)) for i, a in sources]
        target = out.reshape(-1, order=order)
        for start in range(0, target.size, _WIDE):
            stop = start + _WIDE
            for i, source in flat:
                given[i] = source[start:stop]
            kernel(*given, out=target[start:stop])
        return out

    # What knows that its arrays are small may call the kernel itself.
    vars(run).update(small=kernel, large_from=least)
    return run


def many_passes(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a kernel of single elements that gives its first argument's dtype: large dense arrays of one layout go through it in blocks.

    Arguments are positional, but for `out`, which may be one of the arrays. Numbers, and arrays without dimensions, are the same for all blocks.
    """
    return _in_blocks(kernel, 2 * _WIDE)


def few_passes(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """`many_passes` where blocks pay only for arrays whose temporaries are too large for the cache."""
    return _in_blocks(kernel, 4 * _WIDE)


def chosen(test: Any, a: Any, b: Any, out: ndarray | None = None) -> Any:
    """`a` where the test holds, else `b`: arrays of one dtype, or numbers. `out` may be one of them.

    By bits, as in Note [Choices] in native/kernels/pointwise_math.h: numpy's own choice takes an element at a time, five to ten times as long.
    """
    if test.size >= _FEW and test.dtype == bool:
        kind = (b if isinstance(b, (ndarray, np.generic)) else a).dtype
        bits = _BITS.get(kind.itemsize)
        if bits is not None and _fits(a, kind, test) and _fits(b, kind, test):
            return _by_bits(test, a, b, out, kind, bits)
    value = np.where(test, a, b)
    if out is None:
        return value
    np.copyto(out, value, casting="unsafe")
    return out


def _by_bits(test: ndarray, a: Any, b: Any, out: ndarray | None, kind: np.dtype, bits: np.dtype) -> ndarray:
    mask = test.astype(bits)
    target = None if out is None else out.view(bits)
    if a.__class__ is int and a == 0:
        mask -= bits.type(1)
        made = np.bitwise_and(mask, _view(b, kind, bits), target)
    else:
        np.negative(mask, mask)
        one = _view(a, kind, bits)
        if b.__class__ is int and b == 0:
            made = np.bitwise_and(mask, one, target)
        else:
            other = _view(b, kind, bits)
            np.bitwise_and(mask, one ^ other, mask)
            made = np.bitwise_xor(mask, other, target)
    return made.view(kind) if out is None else out


def _fits(value: Any, kind: np.dtype, test: ndarray) -> bool:
    """Whether a side of a choice is a number, or of the dtype and, unless it has no dimensions, of the shape."""
    if isinstance(value, (ndarray, np.generic)):
        return value.dtype == kind and (not value.ndim or value.shape == test.shape)
    return True


def _view(value: Any, kind: np.dtype, bits: np.dtype) -> Any:
    return (value if isinstance(value, (ndarray, np.generic)) else np.asarray(value, kind)).view(bits)


def number(value: Any, like: Any) -> Any:
    """A number in the dtype of an array; integers wrap around, as C's do. An array, which has that dtype, as it is."""
    if value.__class__ is float and like.dtype.kind == "f":
        return like.dtype.type(value)
    return value if isinstance(value, ndarray) else np.asarray(value).astype(like.dtype)


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are contiguous float ones of one dtype and shape, with elements: what fast paths of derivatives take."""
    kind = a.dtype
    if kind is not b.dtype or kind.char not in "fd" or a.shape != b.shape:
        return False
    return a.flags.c_contiguous and b.flags.c_contiguous and a.ndim > 0 and a.size > 0
