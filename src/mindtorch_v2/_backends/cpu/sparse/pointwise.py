"""Pointwise operators: those that leave zeros what they are, of the specified elements; sums and products of two tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...._dispatch import ops, overrides
from ...._dispatch.operator import Operator
from ...._dispatch.sparse import unavailable
from ...._rules.promotion import can_cast, result_type
from ...._tensor import Tensor, wrap
from . import pieces
from .pieces import array_of, as_coo, as_csr, coalesced, coo, is_compressed, is_coo, with_values


def of_values(op: Operator) -> Callable:
    """The kernel of an operator that leaves zeros what they are: itself, of the values. Sums of what stands twice come first."""

    def kernel(self: Tensor, *rest: Any, out: Tensor | None = None) -> Tensor:
        if is_coo(self):
            if out is self and not self._payload.coalesced:
                raise RuntimeError(f"{op.name}_ requires coalesced input")
            self = coalesced(self)
        positional, keywords = overrides.as_called(op, (self._payload.values, *rest))
        return with_values(self, getattr(ops, op.name)(*positional, **keywords))

    return kernel


def neg(self: Tensor) -> Tensor:
    """-self."""
    return with_values(self, ops.neg(self._payload.values))


def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Tensor:
    """The gradient where self is above the threshold, at the places that self specifies."""
    output = coalesced(self) if is_coo(self) else self
    grad = ops.sparse_mask(grad_output, output)
    return with_values(output, ops.threshold_backward(grad._payload.values, output._payload.values, threshold))


# Sums


def add(self: Any, other: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """self + alpha * other. RuntimeError for a sparse tensor with a dense one or a number behind it."""
    if not pieces.is_sparse(self):
        return _add_to_dense(self, other, alpha, out)
    if is_compressed(self) and isinstance(other, Tensor) and not pieces.is_sparse(other):
        return _add_to_dense(other, self, alpha, None)  # alpha goes with the sparse one, wherever it stands
    if not pieces.is_sparse(other):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    _check_alpha(self, other, alpha)
    if self._payload.shape != other._payload.shape:
        if is_compressed(self):
            raise RuntimeError("add: Expected input tensors to have the same shape")
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}"
        )
    if is_coo(self) != is_coo(other) or (is_compressed(self) and self.layout is not other.layout):
        raise RuntimeError(
            f"torch.add: Expected both tensors to have the same layout, but got {self.layout} and {other.layout}"
        )
    kind = result_type(self, other)
    if is_compressed(self):
        return _add_lines(self, other, alpha, kind)
    a, b = self._payload, other._payload
    if not a.nnz:
        values = b.values.to(kind)
        return with_values(other, values * alpha if alpha != 1 else ops.clone(values))
    if not b.nnz:
        return with_values(self, ops.clone(a.values.to(kind)))
    if a.sparse_dim != b.sparse_dim:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same density, but 'self' has {a.sparse_dim} sparse dimensions while 'other' has "
            f"{b.sparse_dim} sparse dimensions"
        )
    if out is self and not can_cast(kind, self._dtype):
        raise RuntimeError(f"Can't convert result type {kind.cpp} to output {self._dtype.cpp} in add operation")
    first = a.values.to(kind)
    second = b.values.to(kind)
    if alpha != 1:
        second = second * alpha
    if not (a.values.is_contiguous() and b.values.is_contiguous()):
        return coo(a.shape, ops.cat([a.indices, b.indices], 1), ops.cat([first, second]), False)
    if a.nnz == b.nnz and np.array_equal(pieces.indices_of(self), pieces.indices_of(other)):
        return coo(a.shape, a.indices, ops.add(first, second), a.coalesced and b.coalesced)
    return _merged(self, other, first, second)


def _merged(self: Tensor, other: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The specified elements of both, in the order of coordinates as far as each of them is; those that meet in it are summed."""
    a, b = self._payload, other._payload
    left, right = pieces.flat(self), pieces.flat(other)
    both = a.coalesced and b.coalesced
    if both or (_ascends(left) and _ascends(right)):
        # The nth element with some coordinates of one meets the nth of the other.
        places = np.concatenate([left, right])
        rank = np.concatenate([_ranks(left), _ranks(right)])
        order = np.lexsort((rank, places))
        places, rank = places[order], rank[order]
        fresh = np.ones(len(places), bool)
        fresh[1:] = (places[1:] != places[:-1]) | (rank[1:] != rank[:-1])
        starts = np.flatnonzero(fresh)
        joined = array_of(ops.cat([first, second]))[order]
        values = pieces.of_array(pieces.sums_of_runs(joined, starts), first)
        shape = a.shape[: a.sparse_dim]
        return coo(a.shape, pieces.integers(pieces.coordinates(places[starts], shape)), values, both)
    takes_left, takes_right = _walk(left.tolist(), right.tolist())
    count = len(takes_left)
    values = np.zeros((count, *array_of(first).shape[1:]), first._dtype.np)
    for taken, given in ((takes_left, array_of(first)), (takes_right, array_of(second))):
        at = np.array(taken, np.int64).reshape(-1)
        present = at >= 0
        values[present] += given[at[present]]
    at = np.array(takes_left, np.int64).reshape(-1)
    other_at = np.array(takes_right, np.int64).reshape(-1)
    indices = np.where(at >= 0, _columns(self, at), _columns(other, other_at))
    return coo(a.shape, pieces.integers(indices), pieces.of_array(values, first), False)


def _columns(self: Tensor, at: np.ndarray) -> np.ndarray:
    indices = pieces.indices_of(self)
    return indices[:, np.maximum(at, 0)] if indices.shape[1] else np.zeros((len(indices), len(at)), np.int64)


def _ascends(places: np.ndarray) -> bool:
    return bool((places[1:] >= places[:-1]).all())


def _ranks(places: np.ndarray) -> np.ndarray:
    """Of sorted places, how many of the same stand before each."""
    return np.arange(len(places)) - np.searchsorted(places, places, "left")


def _walk(left: list[int], right: list[int]) -> tuple[list[int], list[int]]:
    """Two lists of places side by side: always the smaller of what is next, or both where they are equal; -1 for nothing."""
    first: list[int] = []
    second: list[int] = []
    i = j = 0
    while i < len(left) or j < len(right):
        take_left = j == len(right) or (i < len(left) and left[i] <= right[j])
        take_right = i == len(left) or (j < len(right) and right[j] <= left[i])
        first.append(i if take_left else -1)
        second.append(j if take_right else -1)
        i += take_left
        j += take_right
    return first, second


def _check_alpha(self: Tensor, other: Tensor, alpha: Any) -> None:
    if isinstance(alpha, bool) and result_type(self, other).name != "bool":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if (
        isinstance(alpha, float)
        and not result_type(self, other).is_floating_point
        and not result_type(self, other).is_complex
    ):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


def _add_lines(self: Tensor, other: Tensor, alpha: Any, kind: Any) -> Tensor:
    if self._payload.batch or self._payload.values.dim() > 1:
        raise NotImplementedError("add: sums of batches of compressed matrices are not there")
    made = add(coalesced(as_coo(self)), coalesced(as_coo(with_values(other, other._payload.values))), alpha)
    return _in_lines(with_values(made, made._payload.values.to(kind)), self)


def _in_lines(made: Tensor, like: Tensor) -> Tensor:
    return as_csr(made) if like._payload.of_rows else pieces.as_csc(made)


def _add_to_dense(self: Any, other: Tensor, alpha: Any, out: Tensor | None) -> Tensor:
    if not isinstance(self, Tensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    _check_alpha(self, other, alpha)
    kind = result_type(self, other)
    shape = other._payload.shape
    if self._payload.shape != shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {list(self.shape)} while other has size "
            f"{list(shape)} (FYI: dense-sparse addition does not currently support broadcasting)"
        )
    if out is None or out._dtype is not kind or out is not self:
        target = array_of(self).astype(kind.np)  # in memory of its own
    else:
        target = array_of(out)
    if is_compressed(other):
        other = as_coo(other)
    data = other._payload
    values = data.values.to(kind)
    if alpha != 1:
        values = values * alpha
    places = pieces.flat(other)
    if not data.coalesced:
        places, given = pieces.merged(places, array_of(values))
    else:
        given = array_of(values)
    if given.size:
        at = pieces.coordinates(places, shape[: data.sparse_dim]) if data.sparse_dim > 1 else places[None]
        at = tuple(at)
        target[at] += given
    return out if out is not None and target is array_of(out) else wrap(target, kind)


def sub(self: Any, other: Any, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """self - alpha * other."""
    return add(self, other, -alpha, out)


# Products


def mul(self: Any, other: Any) -> Tensor:
    """The elements that both specify, or those of the sparse one."""
    if not pieces.is_sparse(self):
        self, other = other, self
    if not isinstance(other, Tensor) or (other.dim() == 0 and not pieces.is_sparse(other)):
        return with_values(self, ops.mul(self._payload.values, other))
    if not pieces.is_sparse(other):
        return _mul_dense(self, other)
    for one, number in ((self, other), (other, self)):
        if number.dim() == 0 and is_coo(number) and (one.dim() or number._payload.nnz < 2):
            return mul(one, ops._to_dense(number))
    if is_compressed(self):
        return _in_lines(_mul_sparse(as_coo(self), as_coo(other)), self)
    return _mul_sparse(as_coo(self), as_coo(other))


def _mul_sparse(self: Tensor, other: Tensor) -> Tensor:
    """The elements of one, in its order, times those of the other one, which is coalesced; zeros where it has none."""
    a, b = self._payload, other._payload
    if a.ndim != b.ndim or a.sparse_dim != b.sparse_dim or a.shape[: a.sparse_dim] != b.shape[: a.sparse_dim]:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, number of sparse dimensions, and shape of "
            "sparse dimensions"
        )
    searched = a.coalesced if a.coalesced != b.coalesced else a.nnz >= b.nnz
    table, source = (self, other) if searched else (other, self)
    table = coalesced(table)
    have, want = pieces.flat(table), pieces.flat(source)
    at = np.searchsorted(have, want)
    at[at == len(have)] = 0
    lacking = have[at] != want if len(have) else np.ones(len(want), bool)
    factors = (
        pieces.values_of(table)[at]
        if len(have)
        else np.zeros((len(want), *table._payload.values.shape[1:]), table._dtype.np)
    )
    factors[lacking] = 0
    values = ops.mul(source._payload.values, pieces.of_array(factors, table._payload.values))
    if lacking.any():  # zero, whatever the value is
        array_of(values)[lacking] = 0
    shape = (*a.shape[: a.sparse_dim], *values.shape[1:])
    return coo(shape, source._payload.indices, values, source._payload.coalesced)


def _mul_dense(self: Tensor, other: Tensor) -> Tensor:
    shape = self._payload.shape
    if other._payload.shape != shape and is_compressed(self):
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(other.shape)} but mask has size {list(shape)}"
        )
    if other._payload.shape != shape:
        wider = len(other._payload.shape) > len(shape)
        if wider or any(n not in (1, m) for n, m in zip(reversed(other._payload.shape), reversed(shape))):
            return mul(_expanded(self, other), other)
        other = ops.expand(other, shape)
    return with_values(self, ops.mul(self._payload.values, sampled(other, self)))


def _expanded(self: Tensor, other: Tensor) -> Tensor:
    """A coo tensor with the specified elements repeated, as a product with a larger dense one needs them."""
    try:
        shape = np.broadcast_shapes(self._payload.shape, other._payload.shape)
    except ValueError:
        both = zip(reversed(other._payload.shape), reversed(self._payload.shape))
        back, (n, m) = next((i, pair) for i, pair in enumerate(both) if 1 not in pair and pair[0] != pair[1])
        raise RuntimeError(
            f"The size of tensor a ({n}) must match the size of tensor b ({m}) at non-singleton dimension "
            f"{max(self.dim(), other.dim()) - 1 - back}"
        ) from None
    made = broadcast(as_coo(self), shape)
    order = pieces.integers(np.argsort(pieces.flat(made), kind="stable"))
    data = made._payload
    return coo(
        shape,
        ops.index_select(data.indices, 1, order),
        ops.index_select(data.values, 0, order),
        self._payload.coalesced,
    )


def broadcast(self: Tensor, shape: tuple) -> Tensor:
    """A coo tensor with each of its elements repeated along dimensions that are new or of size 1."""
    data = self._payload
    lead = len(shape) - len(data.shape)
    dims = [*range(lead), *(lead + d for d in range(data.sparse_dim) if shape[lead + d] != data.shape[d])]
    counts = [shape[d] for d in dims]
    places = np.indices(counts).reshape(len(dims), math.prod(counts))
    indices = np.zeros((lead + data.sparse_dim, data.nnz * places.shape[1]), np.int64)
    indices[lead:] = np.repeat(pieces.indices_of(self), places.shape[1], 1)
    indices[dims] = np.tile(places, (1, data.nnz))
    values = np.repeat(array_of(data.values), places.shape[1], 0)
    values = np.broadcast_to(values, (len(values), *shape[lead + data.sparse_dim :]))
    return coo(shape, pieces.integers(indices), pieces.of_array(values, data.values), False)


def sampled(dense: Tensor, mask: Tensor) -> Tensor:
    """The elements of a dense tensor at the places that a sparse one of its shape specifies."""
    array = array_of(dense)
    if is_compressed(mask):
        data = mask._payload
        if data.batch:
            found = pieces.indices_of(as_coo(mask))
            return pieces.of_array(array[tuple(found)].reshape(array_of(data.values).shape), dense)
        found = pieces.places_of(mask)
    else:
        found = pieces.indices_of(mask)
    pieces.refuse_bounds(found, mask._payload.shape)
    if not len(found):
        return pieces.of_array(np.repeat(array[None], mask._payload.nnz, 0), dense)
    return pieces.of_array(array[tuple(found)], dense)


def _divisor(self: Tensor, other: Any, name: str = "division") -> Any:
    if isinstance(other, Tensor) and (other.dim() or pieces.is_sparse(other)) and isinstance(self, Tensor):
        got = f"shape {list(other.shape)} for divisor" if other.dim() else "a sparse divisor"
        raise RuntimeError(f"Sparse {name} requires a scalar or zero-dim dense tensor divisor (got {got})")
    if not pieces.is_sparse(self):
        raise unavailable("reciprocal", "coo")
    return other


def div(self: Any, other: Any) -> Tensor:
    """self / other, a number or a tensor without dimensions."""
    other = _divisor(self, other)
    return with_values(self, ops.div(self._payload.values, other))


def div_mode(self: Any, other: Any, rounding_mode: str | None) -> Tensor:
    """`div` with rounding, of what is there once."""
    other = _divisor(self, other)
    if is_coo(self) and rounding_mode is not None:
        self = coalesced(self)
    return with_values(self, ops.div(self._payload.values, other, rounding_mode=rounding_mode))


def floor_divide(self: Any, other: Any) -> Tensor:
    """self // other, of what is there once."""
    return div_mode(self, _divisor(self, other, "floor division"), "floor")


def pow(self: Any, exponent: Any) -> Tensor:
    """self ** exponent, a positive number."""
    if isinstance(exponent, Tensor) and (exponent.dim() or pieces.is_sparse(exponent)) or not pieces.is_sparse(self):
        raise unavailable("pow.Tensor_Tensor", "coo")
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    if is_coo(self):
        self = coalesced(self)
    return with_values(self, ops.pow(self._payload.values, exponent))
