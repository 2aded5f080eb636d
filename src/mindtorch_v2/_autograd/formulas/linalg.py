"""Derivatives of factorisations and solvers.

`grads` are the gradients of all results, None where a result was not used. The formulas hold for complex matrices: a
gradient is that of the real part of the inner product.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._dispatch import ops
from ..._tensor import Tensor

Grads = Sequence[Tensor | None]


def _h(x: Tensor) -> Tensor:
    """The conjugate transpose of each matrix."""
    turned = ops.transpose(x, -2, -1)
    return ops.conj(turned) if x.dtype.is_complex else turned


def _diagonal(x: Tensor) -> Tensor:
    return ops.diagonal(x, 0, -2, -1)


def _skew(x: Tensor) -> Tensor:
    return x - _h(x)


def _real(x: Tensor) -> Tensor:
    return ops.real(x) if x.dtype.is_complex else x


def _sum_none(*terms: Tensor | None) -> Tensor | None:
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def cholesky_gradient(grad: Tensor, upper: bool, factor: Tensor) -> Tensor:
    """The gradient of the matrix, symmetric."""
    lower, given = (_h(factor), _h(grad)) if upper else (factor, grad)
    product = ops.matmul(_h(lower), given)
    symmetric = ops.tril(product) + _h(ops.tril(product, -1))
    inner = ops.linalg_solve_triangular(lower, symmetric, upper=False, left=False)
    result = ops.linalg_solve_triangular(_h(lower), inner, upper=True) * 0.5
    if result.dtype.is_complex:  # the diagonal of a Hermitian matrix is real
        result = (result + _h(result)) * 0.5
    return result


def cholesky_solve_gradient(
    grad: Tensor, factor: Tensor, result: Tensor, upper: bool, needs: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of the right side and of the factor (of all its elements, as if none were zero)."""
    of_b = ops.cholesky_solve(grad, factor, upper)
    if not needs[1]:
        return of_b, None
    both = ops.matmul(of_b, _h(result))
    both = both + _h(both)
    return of_b, -ops.matmul(factor, both) if upper else -ops.matmul(both, factor)


def cholesky_inverse_gradient(grad: Tensor, factor: Tensor, upper: bool, result: Tensor) -> Tensor:
    """The gradient of the factor (of all its elements, as if none were zero)."""
    both = ops.matmul(result, ops.matmul(grad + _h(grad), result))
    return -ops.matmul(factor, both) if upper else -ops.matmul(both, factor)


def inv_gradient(grad: Tensor, inverse: Tensor) -> Tensor:
    """-A^-H grad A^-H."""
    turned = _h(inverse)
    return -ops.matmul(turned, ops.matmul(grad, turned))


def _is_vector(a_shape: Sequence[int], b_shape: Sequence[int]) -> bool:
    return len(b_shape) == 1 or (len(a_shape) - 1 == len(b_shape) and tuple(b_shape) == tuple(a_shape[:-1]))


def solve_gradient(
    grad: Tensor, A: Tensor, result: Tensor, b_shape: Sequence[int], left: bool, needs: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of matrix and right side."""
    vector = _is_vector(A.shape, b_shape)
    of_b = ops.linalg_solve(_h(A), grad, left=left) if not vector else _solve_vector(_h(A), grad)
    if not needs[0]:
        return None, of_b
    if vector:
        of_a = -ops.unsqueeze(of_b, -1) * _conj(ops.unsqueeze(result, -2))
    elif left:
        of_a = -ops.matmul(of_b, _h(result))
    else:
        of_a = -ops.matmul(_h(result), of_b)
    return of_a, of_b if needs[1] else None


def _solve_vector(a: Tensor, b: Tensor) -> Tensor:
    return ops.squeeze(ops.linalg_solve(a, ops.unsqueeze(b, -1)), -1)


def _conj(x: Tensor) -> Tensor:
    return ops.conj(x) if x.dtype.is_complex else x


def solve_triangular_gradient(
    grad: Tensor, A: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool, needs: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of the triangle (zero elsewhere) and the right side."""
    of_b = ops.linalg_solve_triangular(_h(A), grad, upper=not upper, left=left, unitriangular=unitriangular)
    if not needs[0]:
        return None, of_b
    full = -ops.matmul(of_b, _h(result)) if left else -ops.matmul(_h(result), of_b)
    kept = ops.triu(full, int(unitriangular)) if upper else ops.tril(full, -int(unitriangular))
    return kept, of_b if needs[1] else None


def det_gradient(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    """grad conj(det) A^-H; for singular matrices the cofactors, from the singular values."""
    scale = grad * _conj(result)
    singular = A.device.type != "meta" and bool(ops.any(ops.eq(result.detach(), 0)))
    if not singular:
        return ops.linalg_solve(_h(A), ops.diag_embed(ops.expand(ops.unsqueeze(scale, -1), A.shape[:-1])))
    u, s, vh = ops.linalg_svd(A)
    n = A.shape[-1]
    others = [
        ops.prod(ops.cat([ops.narrow(s, -1, 0, i), ops.narrow(s, -1, i + 1, n - i - 1)], -1), -1) for i in range(n)
    ]
    turn = ops.unsqueeze(ops.unsqueeze(grad * _conj(ops.linalg_det(ops.matmul(u, vh))), -1), -1)
    return turn * ops.matmul(u * ops.unsqueeze(ops.stack(others, -1), -2), vh)


def slogdet_gradient(grads: Grads, A: Tensor, sign: Tensor) -> Tensor:
    """A^-H times the gradient of the logarithm, and for complex matrices that of the sign."""
    of_sign, of_log = grads
    if A.dtype.is_complex:
        scale = None if of_log is None else ops.to(of_log, A.dtype)
        if of_sign is not None:
            turn = ops.imag(ops.conj(of_sign) * sign)
            scale = _sum_none(scale, ops.complex(ops.zeros_like(turn), -turn))
    else:
        scale = of_log
    if scale is None:
        return ops.zeros_like(A)
    return ops.linalg_solve(_h(A), ops.diag_embed(ops.expand(ops.unsqueeze(scale, -1), A.shape[:-1])))


def qr_gradient(grads: Grads, A_shape: Sequence[int], Q: Tensor, R: Tensor, mode: str) -> Tensor:
    """The gradient of the matrix. RuntimeError for the modes that have none."""
    of_q, of_r = grads
    rows, columns = A_shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') "
            "if you are going to require gradients."
        )
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    if rows >= columns:
        return _qr_tall(of_q, of_r, Q, R)
    # The left square gives Q, and the rest is Q times what stands right in R.
    square = ops.narrow(R, -1, 0, rows)
    if of_r is None:
        left = _qr_tall(of_q, None, Q, square)
        return ops.cat([left, ops.new_zeros(R, [*A_shape[:-1], columns - rows])], -1)
    of_right = ops.narrow(of_r, -1, rows, columns - rows)
    rest = ops.matmul(Q, ops.narrow(R, -1, rows, columns - rows))
    of_q = _sum_none(of_q, ops.matmul(rest, _h(of_right)))
    left = _qr_tall(of_q, ops.narrow(of_r, -1, 0, rows), Q, square)
    return ops.cat([left, ops.matmul(Q, of_right)], -1)


def _qr_tall(of_q: Tensor | None, of_r: Tensor | None, q: Tensor, r: Tensor) -> Tensor:
    first = None if of_r is None else ops.matmul(ops.triu(of_r), _h(r))
    second = None if of_q is None else -ops.matmul(_h(q), of_q)
    upper = ops.triu(_sum_none(first, second))
    whole = upper + _h(upper)
    whole = whole - ops.diag_embed(_diagonal(whole)) * 0.5
    inner = _sum_none(of_q, ops.matmul(q, whole))
    return ops.linalg_solve_triangular(_h(r), inner, upper=False, left=False)


def svd_gradient(grads: Grads, U: Tensor, S: Tensor, Vh: Tensor, shape: Sequence[int], compute_uv: bool) -> Tensor:
    """The gradient of the matrix. RuntimeError where the singular vectors were not computed, or where the loss depends on their phase."""
    of_u, of_s, of_vh = grads
    if not compute_uv:
        raise RuntimeError(
            "svd_backward: Setting compute_uv to false in torch.svd doesn't compute singular matrices, and hence we cannot compute "
            "backward. Please use torch.svd(compute_uv=True)"
        )
    rows, columns = shape[-2:]
    k = S.shape[-1]
    if U.shape[-1] != k:
        U = ops.narrow(U, -1, 0, k)
        of_u = None if of_u is None else ops.narrow(of_u, -1, 0, k)
    if Vh.shape[-2] != k:
        Vh = ops.narrow(Vh, -2, 0, k)
        of_vh = None if of_vh is None else ops.narrow(of_vh, -2, 0, k)
    if of_u is None and of_vh is None:
        scaled = ops.to(of_s, U.dtype) if U.dtype.is_complex else of_s
        return ops.matmul(U * ops.unsqueeze(scaled, -2), Vh)
    row, column = ops.unsqueeze(S, -2), ops.unsqueeze(S, -1)
    gaps = row * row - column * column
    gaps = gaps + ops.eye(k, dtype=S.dtype, device=S.device)
    left = None if of_u is None else _skew(ops.matmul(_h(U), of_u))
    right = None if of_vh is None else _skew(ops.matmul(Vh, _h(of_vh)))
    _check_phase(left, right)
    inner = _sum_none(
        None if left is None else (left / gaps) * row,
        None if right is None else column * (right / gaps),
        None if of_s is None else ops.diag_embed(of_s),
    )
    if U.dtype.is_complex and left is not None and right is not None:
        inner = inner + ops.diag_embed(_diagonal(left) / (2 * S))
    if rows > k and of_u is not None:
        outer = of_u / row
        result = ops.matmul(U, inner) + outer - ops.matmul(U, ops.matmul(_h(U), outer))
        result = ops.matmul(result, Vh)
        if columns > k and of_vh is not None:
            result = result + _beyond(U, S, Vh, of_vh)
        return result
    result = ops.matmul(U, ops.matmul(inner, Vh))
    if columns > k and of_vh is not None:
        result = result + _beyond(U, S, Vh, of_vh)
    return result


def _beyond(u: Tensor, s: Tensor, vh: Tensor, of_vh: Tensor) -> Tensor:
    """What the right singular vectors contribute outside of their own span."""
    outer = of_vh / ops.unsqueeze(s, -1)
    return ops.matmul(u, outer - ops.matmul(ops.matmul(outer, _h(vh)), vh))


def _check_phase(left: Tensor | None, right: Tensor | None) -> None:
    """Singular vectors are unique up to a phase; RuntimeError when the loss depends on it."""
    total = _sum_none(left, right)
    if total is None or not total.dtype.is_complex or total.device.type == "meta":
        return
    phase = ops.imag(_diagonal(total.detach()))
    if not bool(ops.allclose(phase, ops.zeros_like(phase), rtol=1e-2, atol=1e-2)):
        raise RuntimeError(
            "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss "
            "function depends on this quantity, so it is ill-defined."
        )


def eigh_gradient(grads: Grads, values: Tensor, vectors: Tensor, compute_v: bool) -> Tensor:
    """The gradient of a Hermitian matrix. RuntimeError where the eigenvectors were not computed."""
    return _eigen_gradient(grads, values, vectors, True, compute_v)


def eig_gradient(grads: Grads, values: Tensor, vectors: Tensor, like_complex: bool) -> Tensor:
    """The gradient of a matrix; real where that is."""
    result = _eigen_gradient(grads, values, vectors, False, True)
    return result if like_complex else ops.real(result)


def _eigen_gradient(grads: Grads, values: Tensor, vectors: Tensor, hermitian: bool, has_vectors: bool) -> Tensor:
    of_values, of_vectors = grads
    if not has_vectors:
        raise RuntimeError(
            "linalg_eig_backward: Cannot compute the backward of the eigenvalues without the eigenvectors; they must be computed"
        )
    if of_vectors is None:
        inner = ops.unsqueeze(of_values, -1) * _h(vectors)
        if hermitian:
            return ops.matmul(vectors, inner)
        return ops.linalg_solve(_h(vectors), inner)
    product = ops.matmul(_h(vectors), of_vectors)
    if product.dtype.is_complex and product.device.type != "meta":
        phase = ops.imag(_diagonal(product.detach()))
        if not bool(ops.allclose(phase, ops.zeros_like(phase), rtol=1e-2, atol=1e-2)):
            name = "linalg_eigh_backward" if hermitian else "linalg_eig_backward"
            raise RuntimeError(
                f"{name}: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The specified loss "
                "function depends on this quantity, so it is ill-defined."
            )
    gaps = ops.unsqueeze(values, -2) - ops.unsqueeze(values, -1)
    gaps = gaps + ops.eye(values.shape[-1], dtype=gaps.dtype, device=gaps.device)
    if not hermitian:
        norms = ops.matmul(_h(vectors), vectors * ops.unsqueeze(_real(_diagonal(product)), -2))
        product = product - norms
    inner = product / _conj(gaps)
    inner = inner - ops.diag_embed(_diagonal(inner))
    if of_values is not None:
        inner = inner + ops.diag_embed(of_values)
    if hermitian:
        result = ops.matmul(vectors, ops.matmul(inner, _h(vectors)))
        return (result + _h(result)) / 2
    return ops.linalg_solve(_h(vectors), ops.matmul(inner, _h(vectors)))


def lu_gradient(of_lower: Tensor | None, of_upper: Tensor | None, P: Tensor | None, L: Tensor, U: Tensor) -> Tensor:
    """The gradient of P^H times the matrix (of the matrix where P is given)."""
    rows, inner = L.shape[-2:]
    columns = U.shape[-1]
    if rows == columns:
        result = _lu_square(of_lower, of_upper, L, U)
    elif rows < columns:
        result = _lu_wide(of_lower, of_upper, L, U)
    else:
        result = _lu_tall(of_lower, of_upper, L, U, inner)
    return result if P is None else ops.matmul(P, result)


def _lu_middle(below: Tensor | None, above: Tensor | None) -> Tensor:
    return _sum_none(None if below is None else ops.tril(below, -1), None if above is None else ops.triu(above))


def _lu_square(of_lower: Tensor | None, of_upper: Tensor | None, lower: Tensor, upper: Tensor) -> Tensor:
    below = None if of_lower is None else ops.matmul(_h(lower), of_lower)
    above = None if of_upper is None else ops.matmul(of_upper, _h(upper))
    return _lu_between(_lu_middle(below, above), lower, upper)


def _lu_between(middle: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """L^-H middle U^-H."""
    right = ops.linalg_solve_triangular(_h(upper), middle, upper=False, left=False)
    return ops.linalg_solve_triangular(_h(lower), right, upper=True, unitriangular=True)


def _lu_wide(of_lower: Tensor | None, of_upper: Tensor | None, lower: Tensor, upper: Tensor) -> Tensor:
    k = lower.shape[-1]
    rest = upper.shape[-1] - k
    square = ops.narrow(upper, -1, 0, k)
    if of_upper is None:
        left = _lu_square(of_lower, None, lower, square)
        return ops.cat([left, ops.new_zeros(left, [*left.shape[:-1], rest])], -1)
    of_rest = ops.narrow(of_upper, -1, k, rest)
    below = -ops.matmul(of_rest, _h(ops.narrow(upper, -1, k, rest)))
    if of_lower is not None:
        below = below + ops.matmul(_h(lower), of_lower)
    above = ops.matmul(ops.narrow(of_upper, -1, 0, k), _h(square))
    left = _lu_between(_lu_middle(below, above), lower, square)
    right = ops.linalg_solve_triangular(_h(lower), of_rest, upper=True, unitriangular=True)
    return ops.cat([left, right], -1)


def _lu_tall(of_lower: Tensor | None, of_upper: Tensor | None, lower: Tensor, upper: Tensor, k: int) -> Tensor:
    rest = lower.shape[-2] - k
    square = ops.narrow(lower, -2, 0, k)
    if of_lower is None:
        top = _lu_square(None, of_upper, square, upper)
        return ops.cat([top, ops.new_zeros(top, [*top.shape[:-2], rest, k])], -2)
    of_rest = ops.narrow(of_lower, -2, k, rest)
    above = -ops.matmul(_h(ops.narrow(lower, -2, k, rest)), of_rest)
    if of_upper is not None:
        above = above + ops.matmul(of_upper, _h(upper))
    below = ops.matmul(_h(square), ops.narrow(of_lower, -2, 0, k))
    top = _lu_between(_lu_middle(below, above), square, upper)
    bottom = ops.linalg_solve_triangular(_h(upper), of_rest, upper=False, left=False)
    return ops.cat([top, bottom], -2)


def lu_of_both(grads: Grads, P: Tensor, L: Tensor, U: Tensor) -> Tensor:
    """The gradient of the matrix from those of L and U."""
    return lu_gradient(grads[1], grads[2], P, L, U)


def lu_factor_gradient(grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """The gradient of the matrix from that of L and U in one matrix."""
    P, L, U = ops.lu_unpack(LU, pivots)
    k = L.shape[-1]
    of_lower = ops.tril(ops.narrow(grad, -1, 0, k), -1)
    of_upper = ops.triu(ops.narrow(grad, -2, 0, k))
    return lu_gradient(of_lower, of_upper, P, L, U)


def lu_unpack_gradient(grads: Grads, shape: Sequence[int]) -> Tensor | None:
    """L's gradient below the diagonal, U's on and above it, in one matrix."""
    rows, columns = shape[-2:]
    k = min(rows, columns)
    parts = []
    if grads[1] is not None:
        below = ops.tril(grads[1], -1)
        parts.append(ops.pad(below, [0, columns - k]) if columns > k else below)
    if grads[2] is not None:
        above = ops.triu(grads[2])
        parts.append(ops.pad(above, [0, 0, 0, rows - k]) if rows > k else above)
    return _sum_none(*parts)


def pinv_gradient(grad: Tensor, result: Tensor, A: Tensor) -> Tensor:
    """The gradient of the matrix, from the formula of Golub and Pereyra."""
    turned, of_turned = _h(result), _h(grad)
    first = -ops.matmul(turned, ops.matmul(grad, turned))
    inner = ops.matmul(of_turned, ops.matmul(result, turned))
    second = inner - ops.matmul(A, ops.matmul(result, inner))
    outer = ops.matmul(ops.matmul(turned, result), of_turned)
    third = outer - ops.matmul(ops.matmul(outer, result), A)
    return first + second + third


def lstsq_gradient(
    grads: Grads, A: Tensor, b: Tensor, solution: Tensor, needs: Sequence[bool]
) -> tuple[Tensor | None, Tensor | None]:
    """The gradients of matrix and right side, through the pseudo-inverse."""
    of_x, of_residual = grads[0], grads[1] if len(grads) > 1 else None
    vector = _is_vector(A.shape, b.shape)
    right = ops.unsqueeze(b, -1) if vector else b
    of_a = of_b = None
    if of_x is not None:
        given = ops.unsqueeze(of_x, -1) if vector else of_x
        inverse = ops.linalg_pinv(A)
        of_b = ops.matmul(_h(inverse), given)
        if needs[0]:
            of_a = pinv_gradient(ops.matmul(given, _h(right)), inverse, A)
    if of_residual is not None and of_residual.numel():
        x = ops.unsqueeze(solution, -1) if vector else solution
        rest = ops.matmul(A, x) - right
        weighted = 2 * ops.unsqueeze(of_residual, -2) * rest
        of_b = _sum_none(of_b, -weighted)
        if needs[0]:
            of_a = _sum_none(of_a, ops.matmul(weighted, _h(x)))
    if of_b is not None and vector:
        of_b = ops.squeeze(of_b, -1)
    return of_a if needs[0] else None, of_b if needs[1] else None


def matrix_exp_gradient(grad: Tensor, A: Tensor) -> Tensor:
    """The upper right block of exp([[A^H, grad], [0, A^H]])."""
    n = A.shape[-1]
    turned = _h(A)
    zero = ops.zeros_like(turned)
    block = ops.cat([ops.cat([turned, grad], -1), ops.cat([zero, turned], -1)], -2)
    whole = ops.linalg_matrix_exp(block)
    return ops.narrow(ops.narrow(whole, -2, 0, n), -1, n, n)


__all__ = [
    "cholesky_gradient",
    "cholesky_inverse_gradient",
    "cholesky_solve_gradient",
    "det_gradient",
    "eig_gradient",
    "eigh_gradient",
    "inv_gradient",
    "lstsq_gradient",
    "lu_factor_gradient",
    "lu_of_both",
    "lu_unpack_gradient",
    "matrix_exp_gradient",
    "pinv_gradient",
    "qr_gradient",
    "slogdet_gradient",
    "solve_gradient",
    "solve_triangular_gradient",
    "svd_gradient",
]
