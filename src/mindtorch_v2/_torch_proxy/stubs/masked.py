"""Reductions of `torch.masked` over the elements where a mask holds."""

from __future__ import annotations

from typing import Any

import mindtorch_v2 as mt


def _mask(input: Any, mask: Any) -> Any:
    return mt.ones_like(input, dtype=mt.bool) if mask is None else mask.expand(input.shape)


def _dims(input: Any, dim: Any) -> list[int]:
    if dim is None or dim == ():
        return list(range(input.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


def _lowest(input: Any, sign: int) -> Any:
    if input.dtype.is_floating_point:
        return sign * float("inf")
    info = mt.iinfo(input.dtype)
    return info.max if sign > 0 else info.min


def sum(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The sum of the elements where `mask` holds."""
    kept = mt.where(_mask(input, mask), input, mt.zeros((), dtype=input.dtype, device=input.device))
    return mt.sum(kept, _dims(input, dim), keepdim=keepdim, dtype=dtype)


def mean(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The mean of the elements where `mask` holds; nan where it holds nowhere."""
    dims = _dims(input, dim)
    count = mt.sum(_mask(input, mask), dims, keepdim=keepdim)
    return sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask) / count


def var(
    input: Any, dim: Any = None, unbiased: bool = True, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """The variance of the elements where `mask` holds; nan where there are too few."""
    dims = _dims(input, dim)
    input = input if dtype is None else input.to(dtype)
    count = mt.sum(_mask(input, mask), dims, keepdim=True)
    centre = sum(input, dims, keepdim=True, mask=mask) / count
    total = sum((input - centre) ** 2, dims, keepdim=True, mask=mask)
    result = total / (count - int(unbiased)).clamp(min=0)
    return result if keepdim else result.squeeze(dims)


def std(
    input: Any, dim: Any = None, unbiased: bool = True, *, keepdim: bool = False, dtype: Any = None, mask: Any = None
) -> Any:
    """The standard deviation of the elements where `mask` holds; nan where there are too few."""
    return var(input, dim, unbiased, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def amax(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The largest of the elements where `mask` holds."""
    input = input if dtype is None else input.to(dtype)
    return mt.amax(mt.where(_mask(input, mask), input, _lowest(input, -1)), _dims(input, dim), keepdim=keepdim)


def amin(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The smallest of the elements where `mask` holds."""
    input = input if dtype is None else input.to(dtype)
    return mt.amin(mt.where(_mask(input, mask), input, _lowest(input, 1)), _dims(input, dim), keepdim=keepdim)


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The softmax over the elements where `mask` holds; the others give 0, or nan where it holds nowhere."""
    input = input if dtype is None else input.to(dtype)
    return mt.softmax(mt.where(_mask(input, mask), input, float("-inf")), dim)
