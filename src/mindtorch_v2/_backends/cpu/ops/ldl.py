"""Factors of symmetric and Hermitian matrices that need not be definite: A = P L D L^T P^T by Bunch's and Kaufman's pivots.

D has blocks of one or two rows; L and D share the lower triangle. The pivots are LAPACK's: a positive one says with which row (counted from 1) a block of
one row was exchanged, two equal negative ones with which the second row of a block of two.
"""

from __future__ import annotations

import math

import numpy as np
from numpy import ndarray

_ALPHA = (1 + math.sqrt(17)) / 8


def _sizes(x: ndarray) -> ndarray:
    """What elements are compared by: absolute values, of complex numbers the sum of those of both parts."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def _choose(a: ndarray, k: int, hermitian: bool) -> tuple[int, int]:
    """(the row to exchange with, the rows of the block); (-1, 1) where the column is zero."""
    n = len(a)
    own = abs(a[k, k].real) if hermitian else float(_sizes(a[k, k]))
    column = _sizes(a[k + 1 :, k])
    if not column.size:
        return (k, 1) if own > 0 else (-1, 1)
    best = k + 1 + int(column.argmax())
    largest = float(column.max())
    if max(own, largest) == 0 or math.isnan(own):
        return -1, 1
    if own >= _ALPHA * largest:
        return k, 1
    beside = float(_sizes(a[best, k:best]).max())
    if best < n - 1:
        beside = max(beside, float(_sizes(a[best + 1 :, best]).max()))
    if own >= _ALPHA * largest * (largest / beside):
        return k, 1
    other = abs(a[best, best].real) if hermitian else float(_sizes(a[best, best]))
    return (best, 1) if other >= _ALPHA * beside else (best, 2)


def _exchange(a: ndarray, k: int, at: int, other: int, hermitian: bool) -> None:
    """Rows and columns `at` and `other` of what is left from k on, in the lower triangle."""
    a[[other, at], k:at] = a[[at, other], k:at]
    a[other + 1 :, [at, other]] = a[other + 1 :, [other, at]]
    middle = a[at + 1 : other, at].copy()
    a[at + 1 : other, at] = a[other, at + 1 : other]
    a[other, at + 1 : other] = middle
    if hermitian:
        a[at + 1 : other, at] = a[at + 1 : other, at].conj()
        a[other, at + 1 : other] = a[other, at + 1 : other].conj()
        a[other, at] = a[other, at].conj()
    a[at, at], a[other, other] = a[other, other], a[at, at]


def _factor(a: ndarray, hermitian: bool) -> tuple[ndarray, int]:
    """Overwrites the lower triangle; (pivots, 0 or the number of the first block that is zero)."""
    n = len(a)
    pivots, info, k = np.zeros(n, np.int32), 0, 0
    while k < n:
        other, step = _choose(a, k, hermitian)
        if other < 0:
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        at = k + step - 1
        if other != at:
            _exchange(a, k, at, other, hermitian)
        if hermitian:
            a[range(k, k + step), range(k, k + step)] = a[range(k, k + step), range(k, k + step)].real
        below = a[k + step :, k : k + step]
        block = a[k : k + step, k : k + step].copy()
        if step == 2:
            block[0, 1] = block[1, 0].conj() if hermitian else block[1, 0]
        if below.size:
            scaled = below @ np.linalg.inv(block)
            rest = scaled @ (below.conj().T if hermitian else below.T)
            a[k + step :, k + step :] -= np.tril(rest)
            a[k + step :, k : k + step] = scaled
        pivots[k : k + step] = other + 1 if step == 1 else -(other + 1)
        k += step
    return pivots, info


def ldl_factor_ex(self: ndarray, hermitian: bool, check_errors: bool) -> tuple[ndarray, ndarray, ndarray]:
    """(L and D in one matrix, pivots, info); only the lower triangle is read."""
    factors = np.tril(self)
    pivots = np.zeros(self.shape[:-1], np.int32)
    info = np.zeros(self.shape[:-2], np.int32)
    for index in np.ndindex(self.shape[:-2]):
        pivots[index], info[index] = _factor(factors[index], hermitian and self.dtype.kind == "c")
    return factors, pivots, info


def _solve(a: ndarray, pivots: ndarray, b: ndarray, hermitian: bool) -> None:
    """Overwrites b by the solution."""
    n, k = len(a), 0
    blocks = []
    while k < n:
        step = 1 if pivots[k] > 0 else 2
        at, other = k + step - 1, abs(int(pivots[k])) - 1
        b[[at, other]] = b[[other, at]]
        b[k + step :] -= a[k + step :, k : k + step] @ b[k : k + step]
        block = a[k : k + step, k : k + step].copy()
        if step == 2:
            block[0, 1] = block[1, 0].conj() if hermitian else block[1, 0]
            b[k : k + 2] = np.linalg.solve(block, b[k : k + 2])
        else:
            b[k] /= block[0, 0]
        blocks.append((k, step, at, other))
        k += step
    for k, step, at, other in reversed(blocks):
        below = a[k + step :, k : k + step]
        b[k : k + step] -= (below.conj().T if hermitian else below.T) @ b[k + step :]
        b[[at, other]] = b[[other, at]]


def ldl_solve(LD: ndarray, pivots: ndarray, B: ndarray, hermitian: bool) -> ndarray:
    """X with A @ X = B, from what ldl_factor gave for A."""
    lead = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    factors = np.broadcast_to(LD, (*lead, *LD.shape[-2:]))
    exchanges = np.broadcast_to(pivots, (*lead, pivots.shape[-1]))
    result = np.array(np.broadcast_to(B, (*lead, *B.shape[-2:])))
    for index in np.ndindex(lead):
        _solve(factors[index], exchanges[index], result[index], hermitian and LD.dtype.kind == "c")
    return result
