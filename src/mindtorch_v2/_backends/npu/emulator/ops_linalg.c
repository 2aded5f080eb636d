/* Decompositions of matrices: LU (as inverses and determinants), QR, Cholesky, singular values; and systems with triangular matrices. All in complex doubles.
 *
 * Note [Signs]
 * QR has Householder's signs, as LAPACK has them. Singular vectors are determined up to a phase of each pair; here the largest component of each right one is positive.
 */

#include "ops_shape.h"

#define NUMBERS (ES_DT(ACL_FLOAT) | ES_DT(ACL_DOUBLE) | ES_COMPLEX)
#define AT(matrix, columns, i, j) (matrix)[(i) * (columns) + (j)]

typedef double complex Number;

static Number *numbers(int64_t count) { return es_alloc(count, sizeof(Number)); }

static void write_numbers(const EmTensor *tensor, const Number *values) {
    if (em_is_complex(tensor->dtype)) {
        em_write_complex(tensor, values);
        return;
    }
    double *reals = es_doubles(tensor->numel);
    for (int64_t i = 0; i < tensor->numel; i++) reals[i] = creal(values[i]);
    em_write_reals(tensor, reals);
    free(reals);
}

static int64_t rows_of(const EmTensor *t) { return t->dims[t->ndim - 2]; }
static int64_t columns_of(const EmTensor *t) { return t->dims[t->ndim - 1]; }
static int64_t batch_of(const EmTensor *t) { return es_product(t->dims, 0, t->ndim - 2); }

/* In place by rows with partial pivoting; `order` gets the permutation, and the result is its sign: 0 of a singular matrix. */
static int factor(Number *a, int64_t n, int64_t *order) {
    int sign = 1;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (cabs(AT(a, n, i, k)) > cabs(AT(a, n, best, k))) best = i;
        if (AT(a, n, best, k) == 0) return 0;
        if (best != k) {
            sign = -sign;
            int64_t place = order[k];
            order[k] = order[best], order[best] = place;
            for (int64_t j = 0; j < n; j++) {
                Number other = AT(a, n, k, j);
                AT(a, n, k, j) = AT(a, n, best, j), AT(a, n, best, j) = other;
            }
        }
        for (int64_t i = k + 1; i < n; i++) {
            Number ratio = AT(a, n, i, k) /= AT(a, n, k, k);
            for (int64_t j = k + 1; j < n; j++) AT(a, n, i, j) -= ratio * AT(a, n, k, j);
        }
    }
    return sign;
}

/* tensors: self, out. */
static void inverse_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t n = columns_of(self), size = n * n, *order = es_int64s(n);
    Number *a = em_read_complex(self), *made = numbers(self->numel);
    for (int64_t b = 0; b < batch_of(self); b++) {
        Number *lu = a + b * size, *x = made + b * size;
        if (!factor(lu, n, order)) {
            em_kernel_failed(call, ES_INDEX_ERROR, "%s: the matrix %lld is singular", call->name, (long long)b);
            break;
        }
        for (int64_t c = 0; c < n; c++) {
            for (int64_t i = 0; i < n; i++) {
                Number value = order[i] == c;
                for (int64_t j = 0; j < i; j++) value -= AT(lu, n, i, j) * AT(x, n, j, c);
                AT(x, n, i, c) = value;
            }
            for (int64_t i = n - 1; i >= 0; i--) {
                Number value = AT(x, n, i, c);
                for (int64_t j = i + 1; j < n; j++) value -= AT(lu, n, i, j) * AT(x, n, j, c);
                AT(x, n, i, c) = value / AT(lu, n, i, i);
            }
        }
    }
    write_numbers(&call->tensor[1], made);
    free(a);
    free(made);
    free(order);
}

/* tensors: self, sign, logarithm of the absolute value. */
static void slogdet_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t n = columns_of(self), *order = es_int64s(n), count = batch_of(self);
    Number *a = em_read_complex(self), *signs = numbers(count), *logs = numbers(count);
    for (int64_t b = 0; b < count; b++) {
        Number *lu = a + b * n * n;
        int sign = factor(lu, n, order);
        signs[b] = sign;
        logs[b] = sign ? 0 : -INFINITY;
        for (int64_t i = 0; sign && i < n; i++) {
            double size = cabs(AT(lu, n, i, i));
            signs[b] *= AT(lu, n, i, i) / size;
            logs[b] += log(size);
        }
    }
    write_numbers(&call->tensor[1], signs);
    write_numbers(&call->tensor[2], logs);
    free(a);
    free(signs);
    free(logs);
    free(order);
}

/* q (m x m) and r (m x n) of a (m x n), by reflections. */
static void householder(Number *a, int64_t m, int64_t n, Number *q) {
    Number *v = numbers(m);
    for (int64_t i = 0; i < m * m; i++) q[i] = i % (m + 1) == 0;
    for (int64_t k = 0; k < n && k < m; k++) {
        double below = 0, norm;
        for (int64_t i = k + 1; i < m; i++) below += creal(AT(a, n, i, k) * conj(AT(a, n, i, k)));
        Number alpha = AT(a, n, k, k);
        if (below == 0 && cimag(alpha) == 0) continue; /* nothing to reflect */
        norm = sqrt(below + creal(alpha * conj(alpha)));
        double beta = creal(alpha) >= 0 ? -norm : norm;
        Number tau = (beta - alpha) / beta;
        v[k] = 1;
        for (int64_t i = k + 1; i < m; i++) v[i] = AT(a, n, i, k) / (alpha - beta);
        for (int64_t j = k; j < n; j++) {
            Number sum = 0;
            for (int64_t i = k; i < m; i++) sum += conj(v[i]) * AT(a, n, i, j);
            for (int64_t i = k; i < m; i++) AT(a, n, i, j) -= conj(tau) * v[i] * sum;
        }
        for (int64_t i = 0; i < m; i++) {
            Number sum = 0;
            for (int64_t j = k; j < m; j++) sum += AT(q, m, i, j) * v[j];
            for (int64_t j = k; j < m; j++) AT(q, m, i, j) -= tau * sum * conj(v[j]);
        }
        for (int64_t i = k + 1; i < m; i++) AT(a, n, i, k) = 0;
    }
    free(v);
}

/* tensors: self, Q, R. */
static void qr_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out_q = &call->tensor[1], *out_r = &call->tensor[2];
    int64_t m = rows_of(self), n = columns_of(self), columns = out_q->numel ? columns_of(out_q) : 0, rows = rows_of(out_r);
    Number *a = em_read_complex(self), *whole = numbers(m * m), *q = numbers(out_q->numel), *r = numbers(out_r->numel);
    for (int64_t b = 0; b < batch_of(self); b++) {
        Number *own = a + b * m * n;
        householder(own, m, n, whole);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < columns; j++) AT(q + b * m * columns, columns, i, j) = AT(whole, m, i, j);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < n; j++) AT(r + b * rows * n, n, i, j) = AT(own, n, i, j);
    }
    write_numbers(out_q, q);
    write_numbers(out_r, r);
    free(a);
    free(whole);
    free(q);
    free(r);
}

/* Jacobi's rotations of the columns of a (m x n, m >= n) until they are orthogonal; v (n x n) collects them. */
static void orthogonalise(Number *a, int64_t m, int64_t n, Number *v) {
    for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double alpha = 0, beta = 0;
                Number gamma = 0;
                for (int64_t i = 0; i < m; i++) {
                    alpha += creal(AT(a, n, i, p) * conj(AT(a, n, i, p)));
                    beta += creal(AT(a, n, i, q) * conj(AT(a, n, i, q)));
                    gamma += conj(AT(a, n, i, p)) * AT(a, n, i, q);
                }
                double size = cabs(gamma);
                if (size <= 1e-16 * sqrt(alpha * beta) || size == 0) continue;
                off = fmax(off, size / sqrt(alpha * beta));
                Number phase = gamma / size;
                double zeta = (beta - alpha) / (2 * size), t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta)), c = 1 / sqrt(1 + t * t), s = c * t;
                for (int which = 0; which < 2; which++) {
                    Number *x = which ? v : a;
                    for (int64_t i = 0; i < (which ? n : m); i++) {
                        Number first = AT(x, n, i, p), second = AT(x, n, i, q) * conj(phase);
                        AT(x, n, i, p) = c * first - s * second;
                        AT(x, n, i, q) = s * first + c * second;
                    }
                }
            }
        if (off < 1e-15) return;
    }
}

/* Columns `from` to `n` of u (m x n) become a basis of what the others leave. */
static void complete(Number *u, int64_t m, int64_t n, int64_t from) {
    for (int64_t c = from; c < n; c++) {
        double best = -1;
        Number *kept = numbers(m);
        for (int64_t e = 0; e < m; e++) { /* the unit vector that the others reach least */
            Number *x = numbers(m);
            double norm = 0;
            x[e] = 1;
            for (int pass = 0; pass < 2; pass++)
                for (int64_t j = 0; j < c; j++) {
                    Number dot = 0;
                    for (int64_t i = 0; i < m; i++) dot += conj(AT(u, n, i, j)) * x[i];
                    for (int64_t i = 0; i < m; i++) x[i] -= dot * AT(u, n, i, j);
                }
            for (int64_t i = 0; i < m; i++) norm += creal(x[i] * conj(x[i]));
            if (norm > best + 1e-9) {
                best = norm;
                for (int64_t i = 0; i < m; i++) kept[i] = x[i] / sqrt(norm);
            }
            free(x);
        }
        for (int64_t i = 0; i < m; i++) AT(u, n, i, c) = kept[i];
        free(kept);
    }
}

/* Of a (m x n, m >= n): u (m x wide) with n singular vectors and the rest of a basis, sigma, v (n x n). a is spoilt. */
static void decompose(Number *a, int64_t m, int64_t n, int64_t wide, Number *u, double *sigma, Number *v) {
    orthogonalise(a, m, n, v);
    int64_t *order = es_int64s(n), rank = 0;
    double *size = es_doubles(n);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) size[j] += creal(AT(a, n, i, j) * conj(AT(a, n, i, j)));
        size[j] = sqrt(size[j]);
        int64_t at = j;
        for (; at > 0 && size[order[at - 1]] < size[j]; at--) order[at] = order[at - 1];
        order[at] = j;
    }
    Number *turned = numbers(n * n);
    for (int64_t k = 0; k < n; k++) {
        int64_t from = order[k], top = 0;
        sigma[k] = size[from];
        for (int64_t i = 1; i < n; i++)
            if (cabs(AT(v, n, i, from)) > cabs(AT(v, n, top, from)) + 1e-12) top = i;
        Number phase = AT(v, n, top, from) / cabs(AT(v, n, top, from)); /* Note [Signs] */
        for (int64_t i = 0; i < n; i++) AT(turned, n, i, k) = AT(v, n, i, from) / phase;
        if (sigma[k] > sigma[0] * 1e-300 && sigma[k] > 0) {
            for (int64_t i = 0; i < m; i++) AT(u, wide, i, k) = AT(a, n, i, from) / phase / sigma[k];
            rank = k + 1;
        }
    }
    memcpy(v, turned, (size_t)(n * n) * sizeof(Number));
    complete(u, m, wide, rank);
    free(turned);
    free(order);
    free(size);
}

/* tensors: input, sigma, u, v; integers: fullMatrices, computeUV. */
static void svd_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out_u = &call->tensor[2], *out_v = &call->tensor[3];
    int64_t m = rows_of(self), n = columns_of(self), k = m < n ? m : n, large = m < n ? n : m, count = batch_of(self);
    bool full = call->integer[0], vectors = call->integer[1], wide = m < n;
    int64_t kept = full ? large : k;
    Number *a = em_read_complex(self), *u = numbers(large * kept), *v = numbers(k * k), *turned = numbers(m * n);
    Number *us = vectors ? numbers(out_u->numel) : NULL, *vs = vectors ? numbers(out_v->numel) : NULL;
    double *sigmas = es_doubles(count * k);
    for (int64_t b = 0; b < count; b++) {
        const Number *own = a + b * m * n;
        for (int64_t i = 0; i < m; i++) /* of a wide matrix the adjoint is decomposed */
            for (int64_t j = 0; j < n; j++) {
                if (wide) AT(turned, m, j, i) = conj(AT(own, n, i, j));
                else AT(turned, n, i, j) = AT(own, n, i, j);
            }
        memset(u, 0, (size_t)(large * kept) * sizeof(Number));
        decompose(turned, large, k, kept, u, sigmas + b * k, v);
        if (!vectors) continue;
        memcpy((wide ? vs : us) + b * large * kept, u, (size_t)(large * kept) * sizeof(Number));
        memcpy((wide ? us : vs) + b * k * k, v, (size_t)(k * k) * sizeof(Number));
    }
    em_write_reals(&call->tensor[1], sigmas);
    if (vectors) {
        write_numbers(out_u, us);
        write_numbers(out_v, vs);
    }
    free(a), free(u), free(v), free(turned), free(us), free(vs), free(sigmas);
}

/* tensors: self, out; integer: upper. */
static void cholesky_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    int64_t n = columns_of(self);
    bool upper = call->integer[0];
    Number *a = em_read_complex(self), *made = numbers(self->numel);
    for (int64_t b = 0; b < batch_of(self); b++) {
        const Number *own = a + b * n * n;
        Number *l = made + b * n * n;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = j; i < n; i++) {
                Number value = upper ? conj(AT(own, n, j, i)) : AT(own, n, i, j);
                Number *into = upper ? &AT(l, n, j, i) : &AT(l, n, i, j);
                for (int64_t k = 0; k < j; k++)
                    value -= upper ? conj(AT(l, n, k, i)) * AT(l, n, k, j) : AT(l, n, i, k) * conj(AT(l, n, j, k));
                if (i == j) {
                    if (!(creal(value) > 0)) {
                        em_kernel_failed(call, ES_INDEX_ERROR, "%s: the matrix %lld is not positive definite", call->name, (long long)b);
                        goto done;
                    }
                    *into = sqrt(creal(value));
                } else {
                    value /= upper ? AT(l, n, j, j) : AT(l, n, j, j);
                    *into = upper ? conj(value) : value;
                }
            }
    }
done:
    write_numbers(&call->tensor[1], made);
    free(a);
    free(made);
}

/* tensors: self (right sides), A, x, m (a copy of A); integers: upper, transpose, unitriangular. */
static void triangular_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *matrix = &call->tensor[1];
    int64_t n = columns_of(matrix), columns = columns_of(self), batch = batch_of(self);
    bool transpose = call->integer[1], unit = call->integer[2], upper = (bool)call->integer[0] != transpose;
    Number *a = em_read_complex(matrix), *x = em_read_complex(self);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t step = 0; step < n; step++) {
                int64_t i = upper ? n - 1 - step : step, from = upper ? i + 1 : 0, to = upper ? n : i;
                Number *own = a + b * n * n, *right = x + b * n * columns, value = AT(right, columns, i, c);
                for (int64_t j = from; j < to; j++) value -= (transpose ? AT(own, n, j, i) : AT(own, n, i, j)) * AT(right, columns, j, c);
                AT(right, columns, i, c) = unit ? value : value / AT(own, n, i, i);
            }
    write_numbers(&call->tensor[2], x);
    write_numbers(&call->tensor[3], a);
    free(a);
    free(x);
}

#define MATRIX(self)                                                                                                  \
    EM_NOT_NULL(self);                                                                                                \
    ES_DTYPE(self, NUMBERS);                                                                                          \
    EM_REQUIRE((self)->ndim >= 2, "%s must have at least 2 dimensions", #self);
#define SQUARE(self)                                                                                                  \
    MATRIX(self)                                                                                                      \
    EM_REQUIRE((self)->dims[(self)->ndim - 1] == (self)->dims[(self)->ndim - 2], "%s must be square", #self);
#define LIKE(self, out)                                                                                               \
    EM_NOT_NULL(out);                                                                                                 \
    ES_SAME_DTYPE(self, out);                                                                                         \
    ES_SAME_SHAPE(self, out);
#define HAS(tensor, first, second)                                                                                    \
    EM_REQUIRE((tensor)->ndim == self->ndim && (tensor)->dims[self->ndim - 2] == (first) && (tensor)->dims[self->ndim - 1] == (second), \
               "%s must be of %lld x %lld", #tensor, (long long)(first), (long long)(second));

static aclDataType real_of(aclDataType dtype) { return dtype == ACL_COMPLEX64 ? ACL_FLOAT : dtype == ACL_COMPLEX128 ? ACL_DOUBLE : dtype; }

EM_OP(aclnnInverse, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnInverse);
    SQUARE(self)
    LIKE(self, out)
    em_tensor(ex, self);
    em_tensor(ex, out);
    return em_ready(ex, inverse_kernel, 0);
}

EM_OP(aclnnSlogdet, const aclTensor *self, aclTensor *signOut, aclTensor *logOut) {
    EM_BEGIN(aclnnSlogdet);
    SQUARE(self)
    EM_NOT_NULL(signOut);
    EM_NOT_NULL(logOut);
    ES_SAME_DTYPE(self, signOut);
    EM_REQUIRE(logOut->dtype == real_of(self->dtype), "logOut has another dtype than the absolute values of self");
    EM_REQUIRE(es_has_shape(signOut, self->ndim - 2, self->dims) && es_has_shape(logOut, self->ndim - 2, self->dims), "results must have the batch's shape");
    em_tensor(ex, self);
    em_tensor(ex, signOut);
    em_tensor(ex, logOut);
    return em_ready(ex, slogdet_kernel, 0);
}

EM_OP(aclnnLinalgQr, const aclTensor *self, int64_t mode, aclTensor *Q, aclTensor *R) {
    EM_BEGIN(aclnnLinalgQr);
    MATRIX(self)
    EM_NOT_NULL(Q);
    EM_NOT_NULL(R);
    EM_REQUIRE(mode >= 0 && mode <= 2, "mode must be 0 to 2"); /* reduced, complete, r */
    ES_SAME_DTYPE(self, Q);
    ES_SAME_DTYPE(self, R);
    int64_t m = self->dims[self->ndim - 2], n = self->dims[self->ndim - 1], k = mode == 1 ? m : m < n ? m : n;
    if (mode != 2) HAS(Q, m, k)
    HAS(R, k, n)
    em_tensor(ex, self);
    em_tensor(ex, Q);
    em_tensor(ex, R);
    return em_ready(ex, qr_kernel, 0);
}

EM_OP(aclnnSvd, const aclTensor *input, const bool fullMatrices, const bool computeUV, aclTensor *sigma, aclTensor *u, aclTensor *v) {
    EM_BEGIN(aclnnSvd);
    const aclTensor *self = input;
    MATRIX(self)
    EM_NOT_NULL(sigma);
    EM_NOT_NULL(u);
    EM_NOT_NULL(v);
    int64_t m = self->dims[self->ndim - 2], n = self->dims[self->ndim - 1], k = m < n ? m : n;
    EM_REQUIRE(sigma->dtype == real_of(self->dtype), "sigma has another dtype than the absolute values of input");
    if (computeUV) {
        ES_SAME_DTYPE(self, u);
        ES_SAME_DTYPE(self, v);
        HAS(u, m, fullMatrices ? m : k)
        HAS(v, n, fullMatrices ? n : k)
    }
    em_tensor(ex, self);
    em_tensor(ex, sigma);
    em_tensor(ex, u);
    em_tensor(ex, v);
    em_integer(ex, fullMatrices);
    em_integer(ex, computeUV);
    return em_ready(ex, svd_kernel, 0);
}

EM_OP(aclnnLinalgCholesky, const aclTensor *self, bool upper, aclTensor *out) {
    EM_BEGIN(aclnnLinalgCholesky);
    SQUARE(self)
    LIKE(self, out)
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, upper);
    return em_ready(ex, cholesky_kernel, 0);
}

EM_OP(aclnnTriangularSolve, const aclTensor *self, const aclTensor *A, bool upper, bool transpose, bool unitriangular, aclTensor *xOut, aclTensor *mOut) {
    EM_BEGIN(aclnnTriangularSolve);
    MATRIX(self)
    SQUARE(A)
    LIKE(self, xOut)
    LIKE(A, mOut)
    ES_SAME_DTYPE(self, A);
    EM_REQUIRE(self->ndim == A->ndim && self->dims[self->ndim - 2] == A->dims[A->ndim - 1], "self and A do not fit");
    for (int d = 0; d < self->ndim - 2; d++) EM_REQUIRE(self->dims[d] == A->dims[d], "self and A differ in dimension %d", d);
    em_tensor(ex, self);
    em_tensor(ex, A);
    em_tensor(ex, xOut);
    em_tensor(ex, mOut);
    em_integer(ex, upper);
    em_integer(ex, transpose);
    em_integer(ex, unitriangular);
    return em_ready(ex, triangular_kernel, 0);
}
