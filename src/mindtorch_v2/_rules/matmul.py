"""Rules of matrix products. Their results are contiguous."""

from __future__ import annotations

from typing import Any

from .. import _dtype as _d
from ._common import broadcast, not_implemented, shape_text, wrap_dim
from .geometry import Shape, is_contiguous, numel
from .pointwise import _check_alpha, _check_number
from .promotion import result_type
from .spec import Spec, rule
from .view import expand


def _refuse_bool(tensor: Any, op: str) -> None:
    if tensor.dtype is _d.bool:
        raise not_implemented(op, tensor.dtype)


def _check_mm(a: Shape, b: Shape) -> None:
    if a[1] != b[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")


def _check_same(a: Any, b: Any) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype.ctype} != {b.dtype.ctype}")


def _product(shape: Shape, like: Any) -> Spec:
    return Spec(shape, like.dtype, None, like.dtype.opmath)


@rule(flops="2 * numel(out) * size(self, -1)")
def mm(self: Any, mat2: Any) -> Spec:
    """[n, k] @ [k, m]: [n, m]."""
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix")
    _check_mm(self.shape, mat2.shape)
    _check_same(self, mat2)
    _refuse_bool(self, "addmm_impl_cpu_")
    return _product((self.shape[0], mat2.shape[1]), self)


@rule(flops="2 * numel(out) * size(self, -1)")
def bmm(self: Any, mat2: Any) -> Spec:
    """[b, n, k] @ [b, k, m]: [b, n, m]."""
    _check_batches(self, mat2)
    if self.dtype is not mat2.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.cpp} but found {mat2.dtype.cpp}")
    _refuse_bool(self, "bmm")
    return _product((self.shape[0], self.shape[1], mat2.shape[2]), self)


def _check_three(batch1: Any, batch2: Any) -> None:
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.dim() != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")


def _check_batches(batch1: Any, batch2: Any) -> None:
    _check_three(batch1, batch2)
    wanted = (batch1.shape[0], batch1.shape[2])
    if tuple(batch2.shape[:2]) != wanted:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {shape_text(wanted)} but got: "
            f"{shape_text(batch2.shape[:2])}."
        )


def _check_factors(beta: Any, alpha: Any, tensor: Any) -> None:
    _check_number(beta, tensor.dtype)
    _check_number(alpha, tensor.dtype)


def _check_addmm(added: Any, mat1: Any, mat2: Any) -> None:
    for first, a, b in (("self", added, mat2), ("mat1", mat1, mat2)):
        if a.dtype is not b.dtype:
            raise RuntimeError(f"{first} and mat2 must have the same dtype, but got {a.dtype.cpp} and {b.dtype.cpp}")


@rule(flops="2 * numel(out) * size(mat1, -1)")
def addmm(self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Spec:
    """beta * self + alpha * mat1 @ mat2; self expands to the product."""
    for name, matrix in (("mat1", mat1), ("mat2", mat2)):
        if matrix.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.dim()}-D tensor")
    _check_addmm(self, mat1, mat2)
    _check_mm(mat1.shape, mat2.shape)
    shape = (mat1.shape[0], mat2.shape[1])
    expand(self, shape)
    _check_factors(beta, alpha, self)
    _refuse_bool(self, "addmm_impl_cpu_")
    return _product(shape, self)


@rule(flops="2 * numel(out) * size(batch1, -1)")
def baddbmm(self: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Spec:
    """beta * self + alpha * batch1 @ batch2; self expands to the product."""
    _check_three(batch1, batch2)
    shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
    expand(self, shape)
    if self.dtype is not batch1.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {self.dtype.ctype}, batch1: {batch1.dtype.ctype}, batch2: "
            f"{batch2.dtype.ctype}"
        )
    _check_batches(batch1, batch2)
    if batch2.dtype is not batch1.dtype:
        raise RuntimeError(f"expected scalar type {batch1.dtype.cpp} but found {batch2.dtype.cpp}")
    _check_factors(beta, alpha, self)
    _refuse_bool(self, "baddbmm")
    return _product(shape, self)


@rule(flops="2 * numel(batch1) * size(batch2, -1)")
def addbmm(self: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Spec:
    """beta * self + alpha * the sum of batch1 @ batch2 over the batch: [n, m]."""
    sizes = []
    for batch, dim in ((batch1, 1), (batch2, 2)):  # the result's shape is read before the matrices are looked at
        if not batch.dim():
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        sizes.append(batch.shape[wrap_dim(dim, batch.dim())])
    if batch1.dim() != 3 or batch2.dim() != 3:
        expand(self, sizes)
    _check_three(batch1, batch2)
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            "Incompatible matrix sizes for bmm "
            f"({batch1.shape[1]}x{batch1.shape[2]} and {batch2.shape[1]}x{batch2.shape[2]})"
        )
    shape = (batch1.shape[1], batch2.shape[2])
    expand(self, shape)
    if batch1.shape[0]:
        _check_addmm(self, batch1, batch2)
    _check_factors(beta, alpha, self)
    return _product(shape, self)


@rule(flops="2 * numel(mat)")
def addmv(self: Any, mat: Any, vec: Any, beta: Any = 1, alpha: Any = 1) -> Spec:
    """beta * self + alpha * mat @ vec: [n]."""
    if mat.dim() != 2 or vec.dim() != 1 or self.dim() > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.dim()}, {mat.dim()}, {vec.dim()}")
    return _matrix_vector(self.numel(), self, mat, vec, beta, alpha)


@rule(flops="2 * numel(self)")
def mv(self: Any, vec: Any) -> Spec:
    """[n, k] @ [k]: [n]."""
    if self.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {self.dim()}, {vec.dim()}")
    return _matrix_vector(self.shape[0], vec, self, vec, 1, 1)


def _matrix_vector(length: int, added: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Spec:
    rows, columns = mat.shape
    if columns != vec.shape[0] or length not in (1, rows):
        raise RuntimeError(f"size mismatch, got input ({length}), mat ({rows}x{columns}), vec ({vec.shape[0]})")
    if not added.dtype is mat.dtype is vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {added.dtype.cpp}, {mat.dtype.cpp}, and "
            f"{vec.dtype.cpp}"
        )
    _check_factors(beta, alpha, mat)
    _refuse_bool(mat, "addmv_impl_cpu")
    return _product((rows,), mat)


@rule(flops="2 * numel(self)")
def dot(self: Any, tensor: Any, op: str = "dot") -> Spec:
    """The product of two vectors: no dimensions. Also vdot."""
    if self.dim() != 1 or tensor.dim() != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.dim()}D and {tensor.dim()}D tensors")
    if self.dtype is not tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {self.dtype.cpp} and {tensor.dtype.cpp}"
        )
    if self.numel() != tensor.numel():
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {shape_text(self.shape)} and src {shape_text(tensor.shape)} to "
            "have the same "
            f"number of elements, but got {self.numel()} and {tensor.numel()} elements respectively"
        )
    _refuse_bool(self, "dot")
    return _product((), self)


@rule(flops="numel(out)")
def outer(self: Any, vec2: Any) -> Spec:
    """Every product of two vectors' elements: [n, m], promoted."""
    for name, vector in (("self", self), ("vec2", vec2)):
        if vector.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.dim()}-D")
    target = result_type(self, vec2)
    return Spec((self.shape[0], vec2.shape[0]), target, None, target.opmath)


@rule(flops="2 * numel(out)")
def addr(self: Any, vec1: Any, vec2: Any, beta: Any = 1, alpha: Any = 1) -> Spec:
    """beta * self + alpha * outer(vec1, vec2); self expands to the product, all promote."""
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.dim() != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.dim()}-D")
    shape = (vec1.shape[0], vec2.shape[0])
    expand(self, shape)
    target = result_type(self, vec1, vec2)
    _check_alpha(beta, target, "beta")
    _check_alpha(alpha, target)
    return Spec(shape, target, None, target.opmath)


def _folds(shape: Shape, stride: Shape) -> bool:
    """Whether the batch dims and the rows of a tensor lie one after the other, so that one matrix holds them all."""
    return 0 in shape or all(stride[at] == stride[at + 1] * shape[at + 1] for at in range(len(shape) - 2))


@rule(flops="2 * numel(out) * size(self, -1)")
def matmul(self: Any, other: Any) -> Spec:
    """The product of vectors, matrices and (broadcast) batches of matrices.

    A batch times one matrix or vector is one large product, and says so in its errors; other batches are like `bmm`.
    """
    first, second = self.dim(), other.dim()
    if not first or not second:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {first}D and {second}D")
    if first == 1 and second == 1:
        return dot(self, other)
    if first == 2 and second == 1:
        return mv(self, other)
    if first == 2 and second == 2:
        return mm(self, other)
    left = tuple(self.shape) if first > 1 else (1, *self.shape)
    right = tuple(other.shape) if second > 1 else (*other.shape, 1)
    batch = broadcast(left[:-2], right[:-2])
    shape = (*batch, *((left[-2],) if first > 1 else ()), *((right[-1],) if second > 1 else ()))
    if second <= 2 and (first <= 2 or _folds(self.shape, self.stride())):
        _check_folded((numel(left[:-1]), left[-1]), other, right, self)
    elif first == 1 and second > 2 and _folds(*_transposed(other)):
        _check_folded((numel(right[:-2]) * right[-1], right[-2]), self, left[::-1], other)
    else:
        _check_batched(self, other, numel(batch), left[-1], right[-2])
    _refuse_bool(self, "addmm_impl_cpu_" if second <= 2 else "bmm")
    return _product(shape, self)


def _transposed(tensor: Any) -> tuple[Shape, Shape]:
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    return (*shape[:-2], shape[-1], shape[-2]), (*stride[:-2], stride[-1], stride[-2])


def _check_folded(rows: Shape, small: Any, small_shape: Shape, large: Any) -> None:
    """A batch seen as one matrix [rows] times a vector or a matrix."""
    if small.dim() == 1:
        if rows[1] != small.shape[0]:
            raise RuntimeError(
                f"size mismatch, got input ({rows[0]}), mat ({rows[0]}x{rows[1]}), vec ({small.shape[0]})"
            )
        if small.dtype is not large.dtype:
            raise RuntimeError(
                "addmv input tensors must have the same dtype, but got "
                f"{small.dtype.cpp}, {large.dtype.cpp}, and {small.dtype.cpp}"
            )
        return
    _check_mm(rows, small_shape)
    _check_same(large, small)


def _check_batched(self: Any, other: Any, count: int, columns: int, rows: int) -> None:
    if columns != rows:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {shape_text((count, columns))} but got: "
            f"{shape_text((count, rows))}."
        )
    if self.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.cpp} but found {other.dtype.cpp}")


@rule(flops="2 * numel(out) * size(self, -1)")
def weight_int8pack_mm(self: Any, mat2: Any, scales: Any) -> Spec:
    """self [m, k] by the rows of bytes of mat2 [n, k], each of which has a scale: [m, n] in self's dtype."""
    columns, rows = self.shape[-1] if self.dim() else 0, mat2.shape[0] if mat2.dim() else 0
    for right, words in (
        (
            self.dtype.is_floating_point and self.dtype.itemsize in (2, 4),
            "A to be either 32-bit or 16-bit float tensor.",
        ),
        (is_contiguous(self.shape, self.stride()), "A to be contiguous."),
        (self.dim() == 2, "A to be 2D tensor."),
        (mat2.dtype is _d.int8, "B to be int8 tensor."),
        (is_contiguous(mat2.shape, mat2.stride()), "B to be contiguous."),
        (mat2.dim() == 2 and mat2.shape[1] == columns, f"B.size(1) == {columns}"),
        (scales.dim() == 1 and scales.shape[0] == rows, f"scales to be 1d tensor with size {rows}"),
        (scales.dtype is self.dtype, "scales to have the dtype of A."),
    ):
        if not right:
            raise RuntimeError(f"_weight_int8pack_mm_cpu : expect {words}")
    return Spec((self.shape[0], rows), self.dtype)


@rule(flops="2 * numel(out) * size(input, -1)")
def linear(input: Any, weight: Any, bias: Any = None) -> Spec:
    """input [..., k] @ weight [m, k] transposed + bias [m]: [..., m]; a weight [k] without bias gives [...]."""
    if not input.dim() or not weight.dim():
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.dim()}D and {weight.dim()}D"
        )
    if weight.dim() == 1:
        if bias is not None:
            raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
        return matmul(input, weight)
    if weight.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.dim()}D")
    rows, columns = weight.shape
    count = numel(input.shape[:-1])
    if input.dim() > 2 and not _folds(input.shape, input.stride()):
        _check_batched(input, weight, numel(input.shape[:-2]), input.shape[-1], columns)
        if bias is not None:
            broadcast((*input.shape[:-1], rows), bias.shape)
        return _product((*input.shape[:-1], rows), input)
    if bias is not None:
        _check_addmm(bias, input, weight)
    _check_mm((count, input.shape[-1]), (columns, rows))
    if bias is None:
        _check_same(input, weight)
    else:
        expand(bias, (count, rows))
    _refuse_bool(input, "addmm_impl_cpu_")
    return _product((*input.shape[:-1], rows), input)


@rule(flops="3 * numel(out)", batch="along")
def cross(self: Any, other: Any, dim: int | None = -1) -> Spec:
    """The product of 3-vectors along `dim` (None: the first dim of size 3)."""
    if self.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if dim is None:
        threes = [at for at, size in enumerate(self.shape) if size == 3]
        if not threes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = threes[0]
    at = wrap_dim(dim, self.dim())
    if self.shape[at] != 3 or other.shape[at] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.shape[at]} and {other.shape[at]}"
        )
    if self.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.cpp} but found {other.dtype.cpp}")
    _refuse_bool(self, "cross")
    return _product(broadcast(self.shape, other.shape), self)


@rule(flops="3 * numel(out) * size(x1, -1)", batch="leading")
def cdist(x1: Any, x2: Any) -> Spec:
    """The distance of every pair of rows: [..., n, m]."""
    for name, tensor in (("X1", x1), ("X2", x2)):
        if not tensor.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {tensor.dtype.cpp}")
        if tensor.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {tensor.dim()}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if x1.numel() and x2.numel() and x1.dtype.itemsize < 4:
        raise not_implemented("cdist", x1.dtype)
    if x1.numel() and x2.numel() and x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.cpp} but found {x2.dtype.cpp}")
    return _product((*broadcast(x1.shape[:-2], x2.shape[:-2]), x1.shape[-2], x2.shape[-2]), x1)


@rule(flops="numel(out) * size(self, 1)")
def pdist(self: Any) -> Spec:
    """The distances of all pairs of rows: [rows * (rows - 1) / 2]."""
    rows = self.shape[0]
    if rows > 1 and self.dtype not in (_d.float32, _d.float64):
        raise not_implemented("pdist", self.dtype)
    return Spec((rows * (rows - 1) // 2,), self.dtype, None, self.dtype)


@rule(flops="2 * numel(grad) * size(self, 1)")
def pdist_backward(self: Any, grad: Any, distances: Any) -> Spec:
    """The gradient of the rows, from the distances and their gradient."""
    wanted = pdist(self).shape
    for tensor in (grad, distances):
        if tuple(tensor.shape) != wanted:
            raise RuntimeError(
                f"expected one value for each pair, {shape_text(wanted)}, but got {shape_text(tensor.shape)}"
            )
        if tensor.dtype is not self.dtype:
            raise RuntimeError(f"expected scalar type {self.dtype.cpp} but found {tensor.dtype.cpp}")
    return Spec(tuple(self.shape), self.dtype, None, self.dtype)
