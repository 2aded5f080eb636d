"""`torch.masked`: reductions and normalisations over the elements where a mask holds.

A mask is a bool tensor that broadcasts to the input; None takes every element. A reduction over nothing gives the operation's neutral element:
0 for a sum, -inf for a maximum, NaN for a mean. Results have the input's dtype unless said otherwise; sums and products of integers are int64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

from . import _dtype
from ._api.functions.sparse import sparse_coo_tensor
from ._generated import functions as F
from ._layout import LAYOUTS, strided
from ._tensor import Tensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


_Function = TypeVar("_Function", bound=Callable[..., Tensor])


def _of_any_layout(function: _Function) -> _Function:
    """The function for sparse tensors too, whose result has the input's layout."""

    @functools.wraps(function)
    def call(input: Tensor, *args: Any, mask: Tensor | None = None, **kwargs: Any) -> Tensor:
        if input.layout == strided:
            return function(input, *args, mask=mask, **kwargs)
        dense = None if mask is None else mask if mask.layout == strided else mask.to_dense()
        return function(input.to_dense(), *args, mask=dense, **kwargs).to_sparse(layout=input.layout)

    return call  # type: ignore[return-value]


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The input where the mask holds. A sparse one has an element wherever the mask holds anywhere in it, 0 where the input has none;
    `fill_value` stands where the mask does not hold, and is left out between the elements of a sparse one.

    ValueError for a layout that no masked tensor has.
    """
    if mask.layout == strided:
        return F.where(mask, input, fill_value)
    if mask.layout not in (LAYOUTS["sparse_coo"], LAYOUTS["sparse_csr"]):
        raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")
    holds, values = mask.to_dense(), input.to_dense()
    dense_dims = list(range(input.dim() - input.dense_dim(), input.dim()))
    at = F.nonzero(F.any(holds, dense_dims) if dense_dims else holds)
    places = F.unbind(at, 1)
    elements = F.where(holds[places], values[places], fill_value)
    made = sparse_coo_tensor(F.transpose(at, 0, 1), elements, list(input.shape), is_coalesced=True)
    return made if mask.layout == LAYOUTS["sparse_coo"] else made.to_sparse_csr()


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    """The input with `value` where the mask does not hold. IndexError for a mask of more dimensions."""
    if mask is None:
        return input
    return F.masked_fill(input, F.logical_not(_broadcast(input, mask)), value)


def _broadcast(input: Tensor, mask: Tensor) -> Tensor:
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask.layout != input.layout and input.layout == strided:
        mask = mask.to_dense()
    if mask.shape != input.shape:
        mask = F.broadcast_to(mask, list(input.shape))
    return mask if mask.dtype == _dtype.bool else F.to(mask, _dtype.bool)


def _dims(input: Tensor, dim: Any) -> tuple[int, ...]:
    return _canonical_dim(dim, input.dim())


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, from 0 on. IndexError for one that is not there, RuntimeError for one that stands twice."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for one in (dim,) if isinstance(dim, int) else dim:
        if not -ndim <= one < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {one})"
            )
        if one % ndim in found:
            raise RuntimeError(f"dim={one % ndim} appears multiple times in the list of dims")
        found.append(one % ndim)
    return tuple(sorted(found))


def _lowest(name: str, kind: Any, sign: int) -> Any:
    """The neutral element of a maximum (sign -1) or minimum (1) of a dtype. NotImplementedError for bool."""
    if kind.is_floating_point:
        return sign * math.inf
    if kind == _dtype.bool or kind.is_complex:
        raise NotImplementedError(f"identity of {name} on {kind} input")
    info = _dtype.iinfo(kind)
    return info.max if sign > 0 else info.min


def _widened(input: Tensor, dtype: Any) -> Any:
    return dtype if dtype is not None else input.dtype if _is_inexact(input.dtype) else _dtype.int64


def _is_inexact(kind: Any) -> bool:
    return kind.is_floating_point or kind.is_complex


@_of_any_layout
def sum(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum over `dim` (an int, several, or None for all) of the elements where `mask` holds."""
    return F.sum(_filled(input, mask, 0), _dims(input, dim), bool(keepdim), dtype=_widened(input, dtype))


@_of_any_layout
def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product over `dim` of the elements where `mask` holds."""
    result = _filled(input, mask, 1)
    for one in reversed(_dims(input, dim)):
        result = F.prod(result, one, bool(keepdim), dtype=_widened(input, dtype))
    return F.to(result, _widened(input, dtype))


@_of_any_layout
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The sums of the elements up to each one, with 0 where `mask` does not hold."""
    return F.cumsum(_filled(input, mask, 0), _dims(input, dim)[0], dtype=_widened(input, dtype))


@_of_any_layout
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The products of the elements up to each one, with 1 where `mask` does not hold."""
    return F.cumprod(_filled(input, mask, 1), _dims(input, dim)[0], dtype=_widened(input, dtype))


@_of_any_layout
def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The largest of the elements where `mask` holds. NotImplementedError for bool and complex input."""
    filled = _filled(input, mask, _lowest("amax", input.dtype, -1))
    return F.to(F.amax(filled, _dims(input, dim), bool(keepdim)), dtype or input.dtype)


@_of_any_layout
def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest of the elements where `mask` holds. NotImplementedError for bool and complex input."""
    filled = _filled(input, mask, _lowest("amin", input.dtype, 1))
    return F.to(F.amin(filled, _dims(input, dim), bool(keepdim)), dtype or input.dtype)


@_of_any_layout
def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Where the largest of the elements lies at which `mask` holds, in the input's dtype."""
    filled = _filled(input, mask, _lowest("argmax", input.dtype, -1))
    return F.to(F.argmax(filled, dim, bool(keepdim)), dtype or input.dtype)


@_of_any_layout
def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Where the smallest of the elements lies at which `mask` holds, in the input's dtype."""
    filled = _filled(input, mask, _lowest("argmin", input.dtype, 1))
    return F.to(F.argmin(filled, dim, bool(keepdim)), dtype or input.dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    ones = F.ones(list(input.shape), dtype=_dtype.int64, device=input.device)
    return F.sum(_filled(ones, mask, 0), dims, keepdim)


@_of_any_layout
def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements where `mask` holds. ValueError for integers without a `dtype`."""
    kind = dtype or input.dtype
    if not _is_inexact(kind):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {kind}"
        )
    dims = _dims(input, dim)
    if mask is None:
        return F.mean(input, dims, bool(keepdim), dtype=kind)
    total = sum(input, dims, keepdim=keepdim, dtype=kind, mask=mask)
    return F.div(total, _count(input, dims, bool(keepdim), mask))


@_of_any_layout
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median of the elements where `mask` holds. ValueError where it holds nowhere and the dtype knows no NaN."""
    kind = dtype or input.dtype
    one = _dims(input, dim)[0]
    if input.dtype.is_floating_point:
        return F.to(F.nanmedian(_filled(input, mask, math.nan), one, bool(keepdim)).values, kind)
    if mask is not None and not F.any(_broadcast(input, mask), one).all():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    filled = _filled(F.to(input, _dtype.float64), mask, math.nan)
    return F.to(F.nanmedian(filled, one, bool(keepdim)).values, kind)


@_of_any_layout
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements where `mask` holds, divided by their count less `correction` (1, or 0 when not `unbiased`)."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, False)


@_of_any_layout
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The square root of `var`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, True)


def _variance(
    input: Tensor,
    dim: Any,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: Any,
    mask: Tensor | None,
    root: bool,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is not None and not unbiased else 1
    kind = dtype or (input.dtype if _is_inexact(input.dtype) else _dtype.float32)
    wide = _dtype.float32 if kind in (_dtype.float16, _dtype.bfloat16) else kind
    values, dims = F.to(input, wide), _dims(input, dim)
    count = F.to(_count(input, dims, True, mask), wide)
    away = F.sub(values, F.div(sum(values, dims, keepdim=True, mask=mask), count))
    squares = F.mul(away, F.conj(away)) if away.dtype.is_complex else F.mul(away, away)
    total = sum(squares, dims, keepdim=keepdim, mask=mask)
    if not keepdim:
        count = F.reshape(count, list(total.shape))
    result = F.div(total, F.clamp_min(F.sub(count, correction), 0))
    return F.to(F.sqrt(result) if root else result, kind)


@_of_any_layout
def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials of the elements where `mask` holds."""
    filled = _filled(input, mask, _lowest("logsumexp", input.dtype, -1))
    return F.to(F.logsumexp(filled, _dims(input, dim), bool(keepdim)), dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), where each counts only if its mask holds."""
    kind = dtype or input.dtype
    first = _filled(input, input_mask, _lowest("logaddexp", input.dtype, -1))
    second = _filled(other, other_mask, _lowest("logaddexp", other.dtype, -1))
    return F.to(F.logaddexp(first, second), kind)


@_of_any_layout
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm over `dim` of the elements where `mask` holds."""
    order = 2.0 if ord is None else ord
    filled = _filled(input, mask, math.inf if order == -math.inf else 0)
    return F.linalg_vector_norm(filled, order, _dims(input, dim), bool(keepdim), dtype=dtype)


@_of_any_layout
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax along `dim` among the elements where `mask` holds, 0 elsewhere; NaN where it holds nowhere."""
    return F.softmax(_excluded("softmax", input, dtype, mask, -1), _dims(input, dim)[0], dtype=dtype)


@_of_any_layout
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """log_softmax along `dim` among the elements where `mask` holds, -inf elsewhere; NaN where it holds nowhere."""
    return F.log_softmax(_excluded("log_softmax", input, dtype, mask, -1), _dims(input, dim)[0], dtype=dtype)


@_of_any_layout
def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negated elements."""
    return F.softmax(F.neg(_excluded("softmin", input, dtype, mask, 1)), _dims(input, dim)[0], dtype=dtype)


def _excluded(name: str, input: Tensor, dtype: Any, mask: Tensor | None, sign: int) -> Tensor:
    values = input if dtype is None else F.to(input, dtype)
    return _filled(values, mask, _lowest(name, values.dtype, sign))


@_of_any_layout
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The elements where `mask` holds, divided by their norm along `dim` (at least `eps`); 0 elsewhere."""
    values = input if dtype is None else F.to(input, dtype)
    length = norm(values, ord, dim, keepdim=True, mask=mask)
    return F.div(_filled(values, mask, 0), F.clamp_min(length, eps))


_LOWEST_SIGN = {"amax": -1, "argmax": -1, "logsumexp": -1, "logaddexp": -1, "amin": 1, "argmin": 1}
_NEUTRAL = {"sum": 0, "cumsum": 0, "prod": 1, "cumprod": 1}
_NORMALISATIONS = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


def _input_mask(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The mask of a call with `mask=` as a bool tensor of the input's shape. ValueError without a mask."""
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    return _broadcast(input, mask)


def _output_mask(op: Any, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Where the result of `op(input, *args, **kwargs)` of this module is made of at least one element. ValueError for another function."""
    name = getattr(op, "__name__", op)
    if not callable(op) or name not in __all__ or name == "logaddexp":
        raise ValueError(f"_output_mask expected masked operation (got callable {name})")
    mask = F.ones(list(input.shape), dtype=_dtype.bool) if kwargs.get("mask") is None else _input_mask(input, **kwargs)
    if name in _NORMALISATIONS:
        return mask
    at = 1 if name == "norm" else 0
    dim = args[at] if len(args) > at else kwargs.get("dim", -1 if name == "median" else None)
    return F.any(mask, _dims(input, dim), bool(kwargs.get("keepdim", False)))


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """The neutral element of a reduction of the input's dtype, None if it has none. NotImplementedError for other names and dtypes."""
    name, kind = op_name.rsplit(".", 1)[-1], input.dtype
    if name in ("mean", "std", "var"):
        return None
    if name in _NEUTRAL:
        value: Any = _NEUTRAL[name]
    elif name in _LOWEST_SIGN:
        value = _lowest(name, kind, _LOWEST_SIGN[name])
    elif name == "median":
        value, kind = math.nan, kind if _is_inexact(kind) else _dtype.float32
    elif name == "norm":
        value = math.inf if args and args[0] == -math.inf else 0
    else:
        raise NotImplementedError(f"identity of {op_name} on {kind} input")
    return F.full([], value, dtype=kind, device=input.device)
