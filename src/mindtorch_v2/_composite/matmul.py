"""Products and distances made of other operators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from mindtorch_v2._dtype import FLOAT8, float8_e4m3fn, float32, int8, int32, uint8
from mindtorch_v2._generated import functions as F
from mindtorch_v2._rules._common import wrap_dim
from mindtorch_v2._rules.linalg import check_inexact
from mindtorch_v2._tensor import Tensor


def linalg_matmul(self: Tensor, other: Tensor) -> Tensor:
    """`matmul`."""
    return F.matmul(self, other)


def inner(self: Tensor, other: Tensor, out: Tensor | None = None) -> Tensor:
    """The sum of products over the last dimension of both."""
    if not self.dim() or not other.dim():
        return F.mul(self, other) if out is None else F.mul(self, other, out=out)
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    if out is None:
        return tensordot(self, other, [-1], [-1])
    if out.dtype is not self.dtype:
        raise RuntimeError(
            f"tensordot: Expected the output tensor to have dtype {self.dtype.cpp}, but got an output tensor with dtype {out.dtype.cpp}"
        )
    return F.tensordot(self, other, [-1], [-1], out=out)


def tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    """The sum of products over pairs of dimensions; the free ones of `self` come first."""
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self.dtype is not other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    first = [d % self.dim() for d in dims_self]
    second = [d % other.dim() for d in dims_other]
    total = 1
    for a, b, named, other_named in zip(first, second, dims_self, dims_other, strict=True):
        m, n = self.shape[a], other.shape[b]
        if n == 1 and m != 1:
            self = F.sum(self, [a], True)
        elif m == 1 and n != 1:
            other = F.sum(other, [b], True)
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {named} and second has size {n} in dim "
                f"{other_named}"
            )
        total *= self.shape[a]
    free_self = [d for d in range(self.dim()) if d not in first]
    free_other = [d for d in range(other.dim()) if d not in second]
    shape = [self.shape[d] for d in free_self] + [other.shape[d] for d in free_other]
    rows = math.prod(self.shape[d] for d in free_self)
    columns = math.prod(other.shape[d] for d in free_other)
    left = F.reshape(F.permute(self, free_self + first), [rows, total])
    right = F.reshape(F.permute(other, second + free_other), [total, columns])
    return F.reshape(F.mm(left, right), shape)


def kron(self: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product; the shorter shape is filled up with leading ones."""
    ndim = max(self.dim(), other.dim())
    a = [1] * (ndim - self.dim()) + list(self.shape)
    b = [1] * (ndim - other.dim()) + list(other.shape)
    left = F.reshape(self, [x for n in a for x in (n, 1)])
    right = F.reshape(other, [x for n in b for x in (1, n)])
    return F.reshape(F.contiguous(F.mul(left, right)), [m * n for m, n in zip(a, b, strict=True)])


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the order that costs least; the first and the last may be vectors."""
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    matrices = list(tensors)
    row = matrices[0].dim() == 1
    column = matrices[-1].dim() == 1
    if row:
        matrices[0] = F.unsqueeze(matrices[0], 0)
    if column:
        matrices[-1] = F.unsqueeze(matrices[-1], -1)
    for place, matrix in enumerate(matrices):
        if matrix.dim() != 2:
            which = {0: "the first tensor must be 1D or 2D", count - 1: "the last tensor must be 1D or 2D"}
            words = which.get(place, f"tensor {place} must be 2D")
            raise RuntimeError(f"multi_dot(): {words} but got {matrix.dim()}D")
    for place, matrix in enumerate(matrices):
        if matrix.dtype is not matrices[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {matrices[0].dtype.ctype} and tensor "
                f"{place} {matrix.dtype.ctype}"
            )
    for place, (matrix, following) in enumerate(itertools.pairwise(matrices)):
        if matrix.shape[1] != following.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {place} and {place + 1} with shapes {list(tensors[place].shape)} and "
                f"{list(tensors[place + 1].shape)} cannot be multiplied"
            )
    result = _product(matrices, _cheapest([m.shape[0] for m in matrices] + [matrices[-1].shape[1]]), 0, count - 1)
    if column:
        result = F.squeeze(result, -1)
    return F.squeeze(result, 0) if row else result


def chain_matmul(matrices: Sequence[Tensor]) -> Tensor:
    """The product of two-dimensional matrices in the order that costs least."""
    for matrix in matrices:
        if matrix.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.dim()}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices)


def _cheapest(sizes: Sequence[int]) -> list[list[int]]:
    """split[i][j]: after which matrix the product i..j is best split."""
    count = len(sizes) - 1
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i][j] = min(options)
    return split


def _product(matrices: Sequence[Tensor], split: list[list[int]], i: int, j: int) -> Tensor:
    if i == j:
        return matrices[i]
    k = split[i][j]
    return F.mm(_product(matrices, split, i, k), _product(matrices, split, k + 1, j))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[..., o] = x1[..., i] W[o, i, j] x2[..., j] + b[o]."""
    if input1.dim() == input2.dim():
        for dim, (one, other) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
            if one != other:
                raise RuntimeError(
                    f"bilinear(): input batch dimensions do not match at dim {dim}: got {one} and {other}"
                )
    else:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape)} and {list(input2.shape)}"
        )
    for dim in (1, 2):
        wrap_dim(dim, weight.dim())
    if input1.shape[-1] != weight.shape[1]:
        raise RuntimeError(
            f"bilinear(): input1 size does not match weight size: got {input1.shape[-1]} but expected {weight.shape[1]}"
        )
    if input2.shape[-1] != weight.shape[2]:
        raise RuntimeError(
            f"bilinear(): input2 size does not match weight size: got {input2.shape[-1]} but expected {weight.shape[2]}"
        )
    if not input1.dtype is input2.dtype is weight.dtype:
        raise RuntimeError(
            f"All tensors must have the same dtype, got input1: {input1.dtype.ctype}, input2: {input2.dtype.ctype}, weight: "
            f"{weight.dtype.ctype}"
        )
    lead = list(input1.shape[:-1])
    first = F.reshape(input1, [-1, input1.shape[-1]])
    second = F.reshape(input2, [-1, input2.shape[-1]])
    mixed = F.matmul(F.unsqueeze(first, 0), weight)  # (outputs, batch, second's width)
    result = F.contiguous(F.t(F.sum(F.mul(mixed, F.unsqueeze(second, 0)), -1, dtype=mixed.dtype)))
    if bias is not None:
        result = F.add(result, bias)
    return F.reshape(result, [*lead, weight.shape[0]])


def vecdot(x: Tensor, y: Tensor, dim: int = -1) -> Tensor:
    """The sum of conj(x) * y along `dim`, broadcast; both of one floating or complex dtype."""
    op = "linalg.vecdot"
    check_inexact(x, op)
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"{op}: Expected x and y to have the same dtype, but found x of type {x.dtype.cpp} and y of type {y.dtype.cpp} "
            "instead"
        )
    return F.sum(F.mul(F.conj(x), y), dim)


def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along `dim`, or along the first dimension of size 3."""
    if dim is None:
        dim = next((d for d, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return F.linalg_cross(self, other, dim=dim)


# Distances


def cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: int | None = None) -> Tensor:
    """Distances of all pairs of rows, batches broadcast."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if compute_mode is not None and not 0 <= compute_mode <= 2:
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {compute_mode}")
    first, second = x1, x2
    lead = _broadcast_lead(x1.shape[:-2], x2.shape[:-2])
    first = F.expand(x1, [*lead, *x1.shape[-2:]])
    second = F.expand(x2, [*lead, *x2.shape[-2:]])
    return F._cdist_forward(first, second, float(p), compute_mode)


def _broadcast_lead(a: Sequence[int], b: Sequence[int]) -> list[int]:
    ndim = max(len(a), len(b))
    first, second = [1] * (ndim - len(a)) + list(a), [1] * (ndim - len(b)) + list(b)
    for place, (m, n) in enumerate(zip(first, second, strict=True)):
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {place}"
            )
    return [n if m == 1 else m for m, n in zip(first, second, strict=True)]


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return F.norm(F.add(F.sub(x1, x2), eps), p, max(x1.dim(), x2.dim()) - 1, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle along `dim`; norms below `eps` count as `eps`."""
    if not (x1.dtype.is_floating_point or x1.dtype.is_complex):
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {x1.dtype.cpp}")
    lengths = [F.clamp_min(F.linalg_vector_norm(x, 2, [dim], True), eps) for x in F.broadcast_tensors([x1, x2])]
    return F.sum(F.mul(F.div(x1, lengths[0]), F.div(x2, lengths[1])), dim)


def pdist(self: Tensor, p: float) -> Tensor:
    """The distances of all pairs of rows."""
    if self.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.dim()}D")
    if not self.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return F._pdist_forward(self.contiguous(), p)


def _check_matrices(self: Tensor, mat2: Tensor) -> None:
    for number, matrix in ((1, self), (2, mat2)):
        if matrix.dim() != 2:
            raise RuntimeError(f"mat{number} must be a matrix")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({self.shape[0]}x{self.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})"
        )


def _check_bytes(self: Tensor, mat2: Tensor, bias: Tensor | None) -> None:
    for number, matrix in ((1, self), (2, mat2)):
        if matrix.dtype not in FLOAT8:
            raise RuntimeError(f"Expected mat{number} to be Float8 matrix got {matrix.dtype.cpp}")
    if bias is not None and bias.numel() != mat2.shape[1]:
        raise RuntimeError(f"Bias must be size {mat2.shape[1]} but got {bias.numel()}")


def scaled_mm(
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None,
    scale_result: Tensor | None,
    out_dtype: Any,
    use_fast_accum: bool,
) -> Tensor:
    """The product of float8 matrices with a scale each, or one for each row of the first and column of the second."""
    _check_matrices(self, mat2)
    whole = scale_a.numel() == 1 and scale_b.numel() == 1
    bytes_ = self.dtype in FLOAT8 and mat2.dtype in FLOAT8
    by_row = bytes_ and tuple(scale_a.shape) == (self.shape[0], 1) and tuple(scale_b.shape) == (1, mat2.shape[1])
    if not whole and not by_row:
        raise ValueError("Invalid scaling configuration.")
    _check_bytes(self, mat2, bias)
    left, right = (matrix.to(float32) for matrix in (self, mat2))
    if whole:
        left, right = left * scale_a.reshape(()).to(float32), right * scale_b.reshape(()).to(float32)
    else:
        left, right = left * scale_a, right * scale_b
    product = F.mm(left, right)
    if bias is not None:
        product = product + bias.to(float32)
    wanted = self.dtype if out_dtype is None else out_dtype
    if wanted is float8_e4m3fn:  # which has no infinities: a cast overflows to NaN, and this saturates
        product = product.clamp(-448, 448)
    return product.to(wanted)


def scaled_mm_v2(
    self: Tensor,
    mat2: Tensor,
    scale_a: Sequence[Tensor],
    recipe_a: Sequence[int],
    swizzle_a: Sequence[int],
    scale_b: Sequence[Tensor],
    recipe_b: Sequence[int],
    swizzle_b: Sequence[int],
    bias: Tensor | None,
    out_dtype: Any,
    contraction_dim: Sequence[int],
    use_fast_accum: bool,
    out: Tensor | None = None,
) -> Tensor:
    """`scaled_mm` by recipes: 0, one scale for a matrix, or 1, one for each row and column. NotImplementedError for others."""
    if list(recipe_a) != list(recipe_b) or list(recipe_a) not in ([0], [1]) or any(swizzle_a) or any(swizzle_b):
        raise NotImplementedError(
            "_scaled_mm_v2: only scales of whole matrices, or of rows and columns, are supported on CPU"
        )
    if out is not None and out.dtype is not (out_dtype or self.dtype):
        raise ValueError("out_dtype must match output matrix type")
    product = scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, None, out_dtype, use_fast_accum)
    return product if out is None else F.narrow_copy(product, 0, 0, product.shape[0], out=out)


def int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of matrices of bytes, with sums in int32. RuntimeError for other dtypes and shapes."""
    for name, tensor in (("self", self), ("mat2", mat2)):
        if tensor.dim() != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {tensor.dim()}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {self.shape[1]} and {mat2.shape[0]}"
        )
    if self.dtype not in (int8, uint8):
        raise RuntimeError(f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {self.dtype.ctype}")
    if mat2.dtype is not int8:
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got {mat2.dtype.ctype}")
    return F.mm(F.to(self, int32), F.to(mat2, int32))


def addmm_activation(
    self: Tensor, mat1: Tensor, mat2: Tensor, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Tensor:
    """relu, or gelu, of `addmm`."""
    result = F.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return F.gelu(result) if use_gelu else F.relu(result)
