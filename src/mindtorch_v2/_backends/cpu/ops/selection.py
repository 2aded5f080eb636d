"""Which of several equal elements PyTorch's topk, kthvalue and mode name, for rows that the extension does not take: the steps of choose.h, whose
Note [Equal elements] says why, over lists of ranks.

`v` is a list of ranks, smaller ones ahead, and `p` their places, which move along.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
_FEW = 16  # as many are left to the insertion at the end


def places(x: Array, choose: Callable[[list, list], None]) -> Array:
    """The places of the elements of each row (the last axis) after `choose` moved them: those of its first axis are independent."""
    rows = x.reshape(-1, x.shape[-1])
    order = np.argsort(rows, -1, "stable")
    ordered = np.take_along_axis(rows, order, -1)
    steps = np.zeros(rows.shape, np.int64)
    steps[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]) & ~(ordered[:, :-1] != ordered[:, :-1])
    ranks = np.empty(rows.shape, np.int64)
    np.put_along_axis(ranks, order, np.cumsum(steps, -1), -1)
    found = []
    for row in ranks.tolist():
        at = list(range(len(row)))
        choose(row, at)
        found.append(at)
    return np.asarray(found, np.int64).reshape(x.shape)


def topk(k: int, largest: bool, in_order: bool) -> Callable[[list, list], None]:
    """Brings the k first to the front."""

    def choose(v: list, p: list) -> None:
        if largest:
            v[:] = [-rank for rank in v]
        if k <= len(v) // 64:
            _heap(v, p, 0, k, len(v))
            _unheap(v, p, 0, k)
            return
        _nth(v, p, k - 1)
        if in_order:
            sort(v, p, k - 1)

    return choose


def sort(v: list, p: list, n: int | None = None) -> None:
    """Puts the first n (all) in order."""
    n = len(v) if n is None else n
    parts = [(0, n, _depth(n))]
    while parts:
        low, high, depth = parts.pop()
        while high - low > _FEW:
            if not depth:
                _heap(v, p, low, high, high)
                _unheap(v, p, low, high)
                break
            depth -= 1
            cut = _part(v, p, low, high)
            parts.append((cut, high, depth))
            high = cut
    _insert(v, p, 0, n)


def kth(k: int) -> Callable[[list, list], None]:
    """Brings the k-th smallest to k."""

    def choose(v: list, p: list) -> None:
        low, high = 0, len(v) - 1
        while high > low + 1:
            _exchange(v, p, (low + high) // 2, low + 1)
            for first, second in ((low + 1, high), (low, high), (low + 1, low)):
                if v[second] < v[first]:
                    _exchange(v, p, first, second)
            i, j, pivot = low + 2, high - 1, v[low]
            while True:
                while v[i] < pivot:
                    i += 1
                while pivot < v[j]:
                    j -= 1
                if j < i:
                    break
                _exchange(v, p, i, j)
                i, j = i + 1, j - 1
            _exchange(v, p, low, j)
            low, high = (i if j <= k else low), (j - 1 if j >= k else high)
        if high == low + 1 and v[high] < v[low]:
            _exchange(v, p, low, high)

    return choose


def _depth(n: int) -> int:
    return 2 * max(n.bit_length() - 1, 0)


def _exchange(v: list, p: list, a: int, b: int) -> None:
    v[a], v[b], p[a], p[b] = v[b], v[a], p[b], p[a]


def _sink(v: list, p: list, low: int, at: int, n: int, value: int, place: int) -> None:
    """The hole at `at` of the heap of n elements from `low` sinks to a leaf, and the element rises from there."""
    top, child = at, 2 * at + 2
    while child <= n:
        if child == n or v[low + child] < v[low + child - 1]:
            child -= 1
        v[low + at], p[low + at] = v[low + child], p[low + child]
        at, child = child, 2 * child + 2
    while at > top and v[low + (at - 1) // 2] < value:
        above = (at - 1) // 2
        v[low + at], p[low + at] = v[low + above], p[low + above]
        at = above
    v[low + at], p[low + at] = value, place


def _pop(v: list, p: list, low: int, n: int, to: int) -> None:
    value, place = v[to], p[to]
    v[to], p[to] = v[low], p[low]
    _sink(v, p, low, 0, n, value, place)


def _heap(v: list, p: list, low: int, middle: int, high: int) -> None:
    """The first of low to high, as a heap up to the middle."""
    n = middle - low
    for at in reversed(range(n // 2)):
        _sink(v, p, low, at, n, v[low + at], p[low + at])
    for i in range(middle, high):
        if v[i] < v[low]:
            _pop(v, p, low, n, i)


def _unheap(v: list, p: list, low: int, high: int) -> None:
    for last in range(high - 1, low, -1):
        _pop(v, p, low, last - low, last)


def _part(v: list, p: list, low: int, high: int) -> int:
    """Parts about the median of the second, the middle and the last, which goes to `low`; gives where the second part begins."""
    a, b, c = low + 1, (low + high) // 2, high - 1
    if v[a] < v[b]:
        pivot = b if v[b] < v[c] else c if v[a] < v[c] else a
    else:
        pivot = a if v[a] < v[c] else c if v[b] < v[c] else b
    _exchange(v, p, low, pivot)
    i, j, value = low + 1, high - 1, v[low]
    while True:
        while v[i] < value:
            i += 1
        while value < v[j]:
            j -= 1
        if i >= j:
            return i
        _exchange(v, p, i, j)
        i, j = i + 1, j - 1


def _insert(v: list, p: list, low: int, high: int) -> None:
    order = sorted(range(low, high), key=v.__getitem__)  # stable, as an insertion is
    v[low:high], p[low:high] = [v[i] for i in order], [p[i] for i in order]


def _nth(v: list, p: list, k: int) -> None:
    """What is at k in order goes there, what is ahead of it before it."""
    low, high, depth = 0, len(v), _depth(len(v))
    while high - low > 3:
        if not depth:
            _heap(v, p, low, k + 1, high)
            _exchange(v, p, low, k)
            return
        depth -= 1
        cut = _part(v, p, low, high)
        low, high = (cut, high) if cut <= k else (low, cut)
    _insert(v, p, low, high)
