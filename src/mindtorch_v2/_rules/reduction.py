"""Rules of reductions: sums, extrema, norms, variances. Their results are contiguous."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _dtype as _d
from .._dtype import dtype
from .._warnings import warn_of_call
from ._common import as_list, check_dtype, not_implemented, shape_text, wrap_dim, wrap_dims
from .geometry import Shape
from .promotion import promote_types
from .spec import Spec, rule

_Dim = int | Sequence[int] | None


def reduced_shape(self: Any, dim: _Dim, keepdim: bool = False, empty_is_all: bool = True) -> Shape:
    """self's shape without the reduced dims (with keepdim: of size 1). None, and mostly an empty list, reduce all."""
    shape = self.shape
    ndim = len(shape)
    dims = None if dim is None else wrap_dims(as_list(dim), ndim)
    if dims is None or (not dims and empty_is_all):
        return (1,) * ndim if keepdim else ()
    if keepdim:
        return tuple(1 if at in dims else size for at, size in enumerate(shape))
    return tuple(size for at, size in enumerate(shape) if at not in dims)


def check_not_empty(
    self: Any, dim: _Dim, op: str, error: type[Exception] = RuntimeError, hint: bool = True, brackets: bool = True
) -> None:
    """Refuses to reduce without an element: IndexError for an empty `dim`, `error` for an empty tensor."""
    op = f"{op}()" if brackets else op
    if self.numel():
        return
    dims = [] if dim is None else as_list(dim)
    if not dims:
        advice = " Specify the reduction dim with the 'dim' argument." if hint else ""
        raise error(f"{op}: Expected reduction dim to be specified for input.numel() == 0.{advice}")
    for at in wrap_dims(dims, self.dim()):
        if self.dim() and not self.shape[at]:
            raise IndexError(f"{op}: Expected reduction dim {at} to have non-zero size.")


def _floating(d: dtype) -> bool:
    return d.is_floating_point or d.is_complex


def _check_variance(self: Any, op: str, correction: Any) -> None:
    if correction.__class__ is complex and correction.imag:
        raise RuntimeError("value cannot be converted to type double without overflow")
    if not _floating(self.dtype):
        raise RuntimeError(f"{op} only support floating point and complex dtypes")


def _warn_of_correction(self: Any, shape: tuple, correction: Any, op: str) -> None:
    count = math.prod(shape)
    if (self.numel() // count if count else 0) <= (1 if correction is None else correction.real):
        warn_of_call(
            f"{op}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by "
            "output numel)."
        )


@rule(flops="numel(self)", batch="along")
def reduction(
    self: Any,
    dim: _Dim = None,
    keepdim: bool = False,
    dtypes: str = "all",
    op: str = "",
    nonempty: str | None = None,
) -> Spec:
    """One value of self's dtype over `dim` (an int, a list, None for all).

    nonempty: the name in messages where there is no value of nothing. IndexError for a dim out of range, RuntimeError for one named twice.
    """
    if nonempty is not None:
        check_not_empty(self, dim, nonempty)
    shape = reduced_shape(self, dim, keepdim)
    check_dtype(self.dtype, dtypes, op)
    return Spec(shape, self.dtype, None, self.dtype.opmath)


@rule(flops="numel(self)", batch="along")
def summed(
    self: Any,
    dim: _Dim = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    op: str = "sum_cpu",
    complex_refused: str | None = None,
) -> Spec:
    """A sum or a product over `dim`: of integers and bool in int64.

    complex_refused: the name in the message where complex numbers are refused.
    """
    source = self.dtype
    shape = reduced_shape(self, dim, keepdim)
    if complex_refused is not None and source.is_complex:
        raise RuntimeError(f"{complex_refused} on CPU does not support complex inputs")
    target = dtype or (_d.int64 if source.category < _d.CATEGORY_FLOATING else source)
    check_dtype(target, "all", op)
    if complex_refused is None and target is _d.int64 and source.category < _d.CATEGORY_FLOATING:
        return Spec(shape, target)  # kernels add and multiply integers in int64 without a copy
    return Spec(shape, target, None, target.opmath)


@rule(flops="numel(self)", batch="along")
def mean(self: Any, dim: _Dim = None, keepdim: bool = False, dtype: dtype | None = None) -> Spec:
    """The mean over `dim`, of a floating or complex dtype."""
    target = dtype or self.dtype
    if not _floating(target):
        which = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {target.cpp}"
        )
    shape = reduced_shape(self, dim, keepdim)
    check_dtype(target, "all", "mean_cpu")
    return Spec(shape, target, None, target.opmath)


@rule(flops="numel(self)", batch="along")
def truth(self: Any, dim: _Dim = None, keepdim: bool = False) -> Spec:
    """Whether all or any elements over `dim` hold: bool, of uint8 uint8. An empty list of dims reduces none."""
    shape = reduced_shape(self, dim, keepdim, empty_is_all=False)
    return Spec(shape, _d.uint8 if self.dtype is _d.uint8 else _d.bool)


@rule(flops="numel(self)", batch="along")
def counted(self: Any, dim: _Dim = None) -> Spec:
    """A number of elements over `dim`: int64."""
    return Spec(reduced_shape(self, dim), _d.int64)


@rule(flops="numel(self)", batch="along")
def deviation(self: Any, dim: _Dim = None, keepdim: bool = False, correction: Any = None, op: str = "var") -> Spec:
    """The variance over `dim` or its root: real. Warns, once, where the correction leaves nothing to divide by."""
    _check_variance(self, "std and var", correction)
    shape = reduced_shape(self, dim, keepdim)
    _warn_of_correction(self, shape, correction, op)
    return Spec(shape, self.dtype.to_real(), None, self.dtype.opmath)


@rule(flops="numel(self)", batch="along")
def logsumexp(self: Any, dim: _Dim = None, keepdim: bool = False) -> Spec:
    """The logarithm of a sum of exponentials over `dim`: of the default dtype where self is not floating."""
    target = self.dtype if _floating(self.dtype) else _d.get_default_dtype()
    shape = reduced_shape(self, dim, keepdim)
    check_dtype(target, "all", "logsumexp")
    return Spec(shape, target, None, target.opmath)


@rule(flops="2 * numel(self)", batch="along")  # power and sum
def vector_norm(self: Any, ord: Any = 2, dim: _Dim = None, keepdim: bool = False, dtype: dtype | None = None) -> Spec:
    """The norm of order `ord` over `dim`: real. RuntimeError for integers, a narrowing dtype, or a norm without
    identity over nothing."""
    source = self.dtype
    name = "linalg.vector_norm"
    if not _floating(source):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {source.cpp}")
    if dtype is not None:
        if not _floating(dtype):
            raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.cpp}")
        if source.is_complex != dtype.is_complex:
            kind = "complex for complex" if source.is_complex else "real for real"
            raise RuntimeError(f"{name}: dtype should be {kind} inputs, but got {dtype.cpp}")
        if promote_types(source, dtype) is not dtype:
            raise RuntimeError(
                f"{name}: the dtype of the input ({source.cpp}) should be convertible without narrowing to the "
                "specified "
                f"dtype ({dtype.cpp})"
            )
    order = 2 if ord is None else ord
    if (order < 0 or order == float("inf")) and not self.numel():
        dims = [] if dim is None else as_list(dim)
        if not dims:
            raise RuntimeError(
                f"{name} cannot compute the {order:g} norm on an empty tensor because the operation does not have an "
                "identity"
            )
        for at in wrap_dims(dims, self.dim()):
            if not self.shape[at]:
                raise RuntimeError(
                    f"{name} cannot compute the {order:g} norm on the dimension {at}"
                    "because this dimension is empty and the operation does not have an identity"
                )
    target = dtype or source
    return Spec(reduced_shape(self, dim, keepdim), target.to_real(), None, target.opmath)


def _check_order_exists(self: Any, op: str) -> None:
    if self.dtype.is_complex:
        raise RuntimeError(f"{op}(): does not support complex input")


@rule(flops="numel(self)", batch="along")
def arg_reduction(self: Any, dim: int | None = None, keepdim: bool = False, op: str = "argmax") -> Spec:
    """int64: where the extremum is, in the flat tensor without `dim`. RuntimeError for bool and complex input,
    IndexError for empty input."""
    _check_order_exists(self, op)
    if self.dtype is _d.bool:
        raise RuntimeError(f"{op}(): does not support bool input")
    check_not_empty(self, dim, op, IndexError, hint=False)
    return Spec(reduced_shape(self, dim, keepdim), _d.int64, None, self.dtype.opmath)


@rule(flops="numel(self)", batch="along")
def reduction_with_indices(
    self: Any,
    dim: int = -1,
    keepdim: bool = False,
    op: str = "max",
    dtypes: str | None = None,
    kernel: str = "",
    scalars: bool = True,
) -> tuple[Spec, Spec]:
    """(values, int64 indices) along one dim.

    dtypes, kernel: those that are taken, and the kernel's name in the message; without, all that have an order. scalars: whether a tensor without
    dimensions is looked at too.
    """
    at = wrap_dim(dim, self.dim())
    if dtypes is None:
        _check_order_exists(self, op)
    check_not_empty(self, at, op)
    if dtypes is not None and (scalars or self.dim()):
        check_dtype(self.dtype, dtypes, kernel)
    shape = reduced_shape(self, at, keepdim)
    return Spec(shape, self.dtype, None, self.dtype.opmath), Spec(shape, _d.int64)


@rule(flops="0", batch="along")
def kthvalue(self: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Spec, Spec]:
    """(values, int64 indices) of the k-th smallest along `dim`; k counts from 1."""
    at = wrap_dim(dim, self.dim())
    check_not_empty(self, at, "kthvalue")
    length = self.shape[at] if self.dim() else 1
    if not 0 < k <= length:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    if self.dim():
        check_dtype(self.dtype, "real_numeric", "kthvalue_cpu")
    shape = reduced_shape(self, at, keepdim)
    return Spec(shape, self.dtype, None, self.dtype.opmath), Spec(shape, _d.int64)


@rule(flops="numel(self)", batch="along")
def aminmax(self: Any, dim: int | None = None, keepdim: bool = False) -> tuple[Spec, Spec]:
    """(min, max), over all or along one dim."""
    if dim is None:
        if not self.numel():
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
    else:
        at = wrap_dim(dim, self.dim())
        if self.dim() and not self.shape[at]:
            raise IndexError(f"aminmax: Expected reduction dim {at} to have non-zero size.")
    check_dtype(self.dtype, "real", "aminmax_cpu")
    shape = reduced_shape(self, dim, keepdim)
    spec = Spec(shape, self.dtype, None, self.dtype.opmath)
    return spec, Spec(shape, self.dtype)


@rule(flops="4 * numel(self)", batch="along")  # the mean; difference, square and sum
def var_mean(
    self: Any, dim: _Dim = None, keepdim: bool = False, op: str = "var_mean", correction: Any = None
) -> tuple[Spec, Spec]:
    """(variance or deviation: real, mean). RuntimeError for integers, and for a correction that is no real number."""
    _check_variance(self, op, correction)
    shape = reduced_shape(self, dim, keepdim)
    _warn_of_correction(self, shape, correction, op)
    return Spec(shape, self.dtype.to_real(), None, self.dtype.opmath), Spec(shape, self.dtype)


@rule(flops="numel(self)", batch="along")
def cumulative(self: Any, dim: int, dtype: dtype | None = None, op: str = "cumsum") -> Spec:
    """cumsum, cumprod (int64 for integers), logcumsumexp (floating types only): self's shape, contiguous."""
    wrap_dim(dim, self.dim())
    source = self.dtype
    if op == "logcumsumexp":
        check_dtype(source, "floating", "logcumsumexp_out_cpu")
        target = source
    else:
        target = dtype or (_d.int64 if source.category < _d.CATEGORY_FLOATING else source)
    return Spec(tuple(self.shape), target, None, target.opmath)


@rule(flops="numel(self)", batch="along")
def cumulative_with_indices(self: Any, dim: int, op: str = "cummax") -> tuple[Spec, Spec]:
    """(values, int64 indices) of cummax and cummin."""
    if self.dim():
        if self.numel():
            wrap_dim(dim, self.dim())
            check_dtype(self.dtype, "real", f"{op}_cpu")
    elif dim not in (0, -1):
        raise IndexError(f"{op}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    shape = tuple(self.shape)
    return Spec(shape, self.dtype, None, self.dtype.opmath), Spec(shape, _d.int64)


@rule(flops="5 * numel(self)", batch="along")  # maximum, difference, exp, sum, division
def softmax(self: Any, dim: int, dtype: dtype | None = None, op: str = "softmax", half_to_float: bool = False) -> Spec:
    """softmax and log_softmax: contiguous, of floating dtype. NotImplementedError for integers without `dtype`."""
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")
    target = dtype or self.dtype
    last = wrap_dim(dim, self.dim()) >= self.dim() - 1
    if self.numel() and (not target.is_floating_point or target in _d.FLOAT8):
        raise not_implemented(f"{op}_{'lastdim_' if last else ''}kernel_impl", target)
    return Spec(tuple(self.shape), target, None, target.opmath)


@rule(flops="4 * numel(grad)", batch="along")  # product, sum, difference, product
def softmax_backward(grad: Any, output: Any, dim: int, op: str = "softmax_backward") -> Spec:
    """The gradient of softmax or log_softmax: like its result, contiguous. RuntimeError unless the operands agree in shape
    and dtype."""
    if tuple(grad.shape) != tuple(output.shape):
        raise RuntimeError(
            f"Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but "
            f"{shape_text(grad.shape)} does not equal {shape_text(output.shape)} (while checking arguments for {op})"
        )
    last = wrap_dim(dim, grad.dim()) >= grad.dim() - 1
    if grad.numel() and not grad.dtype.is_floating_point:
        raise not_implemented(f"{op}_{'lastdim_' if last else ''}kernel_impl", grad.dtype)
    if grad.dtype is not output.dtype:
        raise RuntimeError(f"expected scalar type {grad.dtype.cpp} but found {output.dtype.cpp}")
    return Spec(tuple(grad.shape), grad.dtype, None, grad.dtype.opmath)


@rule(flops="min(self.shape)")
def trace(self: Any) -> Spec:
    """The sum of a matrix's diagonal, which the kernel takes alone into the dtype that it adds in."""
    if self.dtype is _d.bool:
        raise not_implemented("trace", self.dtype)
    if self.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.dim()}")
    target = _d.int64 if self.dtype.category < _d.CATEGORY_FLOATING else self.dtype
    return Spec((), target, None, None if target.is_floating_point else target.opmath)


@rule(flops="numel(self)", batch="along")
def hash_tensor(self: Any, dim: _Dim, keepdim: bool, mode: int) -> Spec:
    """uint64: the exclusive or of the elements' bits over `dim`."""
    check_not_empty(self, dim, "hash_tensor", brackets=False)
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    shape = reduced_shape(self, dim, keepdim)
    if self.dtype.is_complex:
        raise not_implemented("xor_sum_cpu", self.dtype)
    return Spec(shape, _d.uint64)
