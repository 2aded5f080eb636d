"""Functions that PyTorch writes in Python over operators: `split`, `norm`, `einsum`'s call forms, `unique`, ..."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from ... import _dtype
from ..._dispatch import ops
from ..._dispatch.native import builtin, overridable
from ..._dispatch.refusals import check_by_text
from ..._dispatch.return_types import named
from ..._tensor import Size, Tensor


@overridable
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple:
    """Pieces of one size, or of the given sizes, along a dimension; views."""
    if isinstance(split_size_or_sections, (list, tuple)):
        return ops.split_with_sizes(tensor, tuple(split_size_or_sections), dim)
    if isinstance(split_size_or_sections, int) or not isinstance(tensor, Tensor):
        return ops.split(tensor, split_size_or_sections, dim)
    return ops.split_with_sizes(tensor, split_size_or_sections, dim)


@overridable
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """The vector norm over `dim` (all dimensions by default); p: a number, or 'fro' or 'nuc' for matrix norms."""
    dims = (dim,) if isinstance(dim, int) else dim
    keywords = {"dtype": dtype} if out is None else {"dtype": dtype, "out": out}
    if isinstance(p, str):
        if p == "fro" and (dims is None or len(dims) <= 2):
            return ops.linalg_vector_norm(input, 2, dims, keepdim, **keywords)
        return ops.linalg_matrix_norm(input, p, list(range(input.dim())) if dims is None else dims, keepdim, **keywords)
    return ops.linalg_vector_norm(input, 2.0 if p is None else p, dims, keepdim, **keywords)


@overridable
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> tuple:
    """(L and U in one matrix, pivots), and with `get_infos` how each matrix went."""
    found = ops._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    kept = named("_lu_with_info", ("LU", "pivots", "info"))(found) if get_infos else tuple(found[:2])
    if out is None:
        return kept
    for buffer, value in zip(out, kept, strict=True):
        (buffer if buffer.shape == value.shape else buffer.resize_as_(value)).copy_(value)
    return out


@overridable
def einsum(*args: Any) -> Tensor:
    """Einstein summation: `einsum('ij,jk->ik', a, b)`, operands also as one list, or as (operand, subscripts) pairs."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation, operands = _equation(args)
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        return einsum(equation, *operands[0])
    return ops.einsum(equation, list(operands))


def _equation(args: Sequence) -> tuple[str, list]:
    def letters(subscripts: Sequence) -> str:
        text = ""
        for s in subscripts:
            if s is Ellipsis:
                text += "..."
            elif 0 <= s < 26:
                text += chr(ord("A") + s)
            elif 26 <= s < 52:
                text += chr(ord("a") + s - 26)
            else:
                raise ValueError(f"einsum(): subscript {s} is not within the valid range [0, 52)")
        return text

    equation = ",".join(letters(s) for s in args[1::2] if isinstance(s, (list, tuple)))
    if len(args) % 2:
        equation += "->" + letters(args[-1])
        return equation, list(args[:-1:2])
    return equation, list(args[::2])


@overridable
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The distinct elements (or slices along `dim`), with the inverse map and counts on request."""
    if dim is not None:
        values, inverse, counts = ops.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = ops._unique2(
            input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts
        )
    return _chosen(values, inverse, counts, return_inverse, return_counts)


@overridable
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """One of each run of equal elements."""
    values, inverse, counts = ops.unique_consecutive(input, return_inverse, return_counts, dim)
    return _chosen(values, inverse, counts, return_inverse, return_counts)


def _chosen(values: Tensor, inverse: Tensor, counts: Tensor, return_inverse: bool, return_counts: bool) -> Any:
    found = [values]
    if return_inverse:
        found.append(inverse)
    if return_counts:
        found.append(counts)
    return found[0] if len(found) == 1 else tuple(found)


def _tensors(tensors: tuple) -> list:
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


_CDIST_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


@overridable
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm distances of all pairs of rows, of shape (*batch, rows of x1, rows of x2). ValueError for an unknown `compute_mode`."""
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if isinstance(p, (int, float)) and p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return ops.cdist(x1, x2, p, _CDIST_MODES[compute_mode])


@overridable
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple:
    """Coordinate grids from 1-D tensors; indexing 'ij' or 'xy'."""
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=2
        )
    return ops.meshgrid(_tensors(tensors), indexing="ij" if indexing is None else indexing)


@overridable
def broadcast_tensors(*tensors: Any) -> tuple:
    """The tensors expanded to their common shape; views."""
    views = ops.broadcast_tensors(tensors)
    return tuple(views) if isinstance(views, list) else views  # else what took over the call gave back, of fx a proxy


def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape of shapes. RuntimeError when they do not broadcast, ValueError for a negative length."""
    given = [(shape,) if isinstance(shape, int) else shape for shape in shapes]
    common = [1] * max(map(len, given), default=0)
    for index, shape in enumerate(given):
        for at in range(-1, -1 - len(shape), -1):
            n = shape[at]
            if n < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if n != 1 and common[at] not in (1, n):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {at}! Mismatching argument at index {index} had {shape}; but expected "
                    f"shape should be broadcastable to {common}"
                )
            if n != 1:
                common[at] = n
    return Size(common)


def _at_least(name: str) -> Any:
    def function(*tensors: Any) -> Any:
        if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
            return getattr(ops, name)(tensors[0])
        given = _tensors(tensors)
        for at, tensor in enumerate(given):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"expected Tensor as element {at} in argument 0, but got {type(tensor).__name__}")
        return tuple(getattr(ops, name)(t) for t in given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Views of the tensors with at least {name[8]} dimensions."
    return overridable(function)


atleast_1d, atleast_2d, atleast_3d = (_at_least(f"atleast_{n}d") for n in (1, 2, 3))


@overridable
def block_diag(*tensors: Any) -> Tensor:
    """A block-diagonal matrix of 0-, 1- and 2-dim tensors."""
    return ops.block_diag(tensors)


@overridable
def cartesian_prod(*tensors: Any) -> Tensor:
    """Rows of all combinations of the elements of 1-D tensors."""
    return ops.cartesian_prod(tensors)


@overridable
def chain_matmul(*matrices: Any, out: Any = None) -> Tensor:
    """The product of matrices."""
    return ops.chain_matmul(matrices)


@overridable
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """A contraction over the last `dims` dimensions of a and the first of b, or over the listed pairs."""
    if isinstance(dims, Tensor):
        dims = dims.item() if dims.numel() == 1 else dims.tolist()
    if not isinstance(dims, (int, list, tuple)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got "
            f"dims={dims}"
        )
    if isinstance(dims, (list, tuple)):
        left, right = (list(d) if isinstance(d, (list, tuple)) else [d] for d in dims)
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-dims, 0)), list(range(dims))
    if out is None:
        return ops.tensordot(a, b, left, right)
    if out.dtype is not a.dtype:
        raise RuntimeError(
            f"tensordot: Expected the output tensor to have dtype {a.dtype.cpp}, but got an output tensor with dtype {out.dtype.cpp}"
        )
    return ops.tensordot(a, b, left, right, out=out)


@builtin
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """How many points, rows of `input` (..., D), lie in each box of a grid: (hist, bin_edges), the edges a tuple of D tensors.

    `bins` is a count, a count per dimension, or the edges per dimension; `range` the smallest and the largest edge of each dimension, in one
    list. `weight` has a number per point. RuntimeError where their counts do not fit.
    """
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    points = ops.reshape(input, [-1, input.shape[-1]])
    count = points.shape[-1]
    given = [bins] * count if isinstance(bins, int) else list(bins)
    if len(given) != count:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    edges, flat, inside = [], None, None
    for place, one in enumerate(given):
        column = ops.select(points, 1, place)
        limits = None if range is None else list(range[2 * place : 2 * place + 2])
        own = one if isinstance(one, Tensor) else ops.histogram(column, bins=one, range=limits)[1]
        edges.append(own)
        boxes = own.numel() - 1
        at = ops.sub(ops.searchsorted(own, ops.contiguous(column), right=True), 1)
        at = ops.where(ops.eq(column, own[-1]), boxes - 1, at)
        within = ops.logical_and(ops.ge(column, own[0]), ops.le(column, own[-1]))
        flat = at if flat is None else ops.add(ops.mul(flat, boxes), at)
        inside = within if inside is None else ops.logical_and(inside, within)
    shape = [own.numel() - 1 for own in edges]
    kept = ops.masked_select(flat, inside)
    weights = None if weight is None else ops.masked_select(ops.reshape(weight, [-1]), inside)
    hist = ops.to(ops.bincount(kept, weights, prod(shape)), input.dtype)
    hist = ops.reshape(hist, shape)
    if density:
        hist = ops.div(hist, ops.sum(hist))
        for place, own in enumerate(edges):
            widths = [1] * count
            widths[place] = -1
            hist = ops.div(hist, ops.reshape(ops.diff(own), widths))
    return named("histogramdd", ("hist", "bin_edges"))((hist, tuple(edges)))


@builtin
def nonzero(input: Tensor, *, out: Any = None, as_tuple: bool = False) -> Any:
    """The indices of the non-zero elements: a matrix of rows, or a tuple of index vectors."""
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"nonzero(): argument 'out' must be Tensor, not {type(out).__name__}")
    if not isinstance(as_tuple, bool):
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return ops.unbind(ops.nonzero(input), 1) if input.dim() else (ops.nonzero(ops.atleast_1d(input))[:, 0],)
    return ops.nonzero(input) if out is None else ops.nonzero(input, out=out)


@builtin
def detach_(input: Tensor) -> Tensor:
    """Take a tensor out of its graph, in place."""
    return input.detach_()


@builtin
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give a tensor the shape of another one, in place."""
    return input.resize_as_(the_template, memory_format=memory_format)


@overridable
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The positions in a tensor of `shape`, by dimension, of indices into its elements in order.

    TypeError for indices or a shape that are no integers, ValueError for a negative size.
    """
    if indices.is_complex() or indices.is_floating_point() or indices.dtype is _dtype.DTYPES["bool"]:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if not indices.numel() or not sizes:
        return tuple(indices.clone() for _ in sizes)
    steps = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
    divided = ops.floor_divide(ops.unsqueeze(indices, -1), _row(indices, steps))
    return ops.unbind(ops.remainder(divided, _row(indices, sizes)), -1)


def _row(like: Tensor, values: Sequence[int]) -> Tensor:
    return ops.cat([ops.full([1], value, dtype=like.dtype, device=like.device) for value in values])


_SIGNATURES_OF_WHERE = (
    "Tensor condition",
    "Tensor condition, Tensor input, Tensor other, *, Tensor? out=None",
    "Tensor condition, Scalar self, Tensor other",
    "Tensor condition, Tensor input, Scalar other",
    "Tensor condition, Scalar self, Scalar other",
)
_NO_NUMBERS = frozenset((str, bytes, list, tuple, dict))


@builtin
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where the condition holds, `other` elsewhere; with the condition alone, `nonzero(as_tuple=True)`."""
    if (
        not isinstance(condition, Tensor)
        or (input is None) is not (other is None)
        or input.__class__ in _NO_NUMBERS
        or other.__class__ in _NO_NUMBERS
    ):
        given = tuple(value for value in (condition, input, other) if value is not None)
        check_by_text("where", _SIGNATURES_OF_WHERE, given, {} if out is None else {"out": out})
    if out is not None and not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        if input is None and other is None:
            given = f"({type(condition).__name__}, out={type(out).__name__})"
            raise TypeError(
                f"where() received an invalid combination of arguments - got {given}, but expected one of:\n * (Tensor condition)\n"
                " * (Tensor condition, Tensor input, Tensor other, *, Tensor out = None)\n"
            )
        name, place, value = ("other", 3, other) if isinstance(input, Tensor) else ("input", 2, input)
        raise TypeError(f"where(): argument '{name}' (position {place}) must be Tensor, not {type(value).__name__}")
    if input is None and other is None:
        return ops.where(condition)
    return ops.where(condition, input, other) if out is None else ops.where(condition, input, other, out=out)


@overridable
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of overlapping frames of a signal: (batch, frequencies, frames)."""
    return ops.stft(
        input,
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        pad_mode,
        normalized=normalized,
        onesided=onesided,
        return_complex=return_complex,
        align_to_window=align_to_window,
    )
