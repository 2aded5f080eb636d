/* Products of matrices and vectors: in float, or in double for inputs of float64; rounded once, to the output's dtype. */

#include "ops_shape.h"

#define PRODUCT(suffix, type)                                                                                                    \
    ES_FAST static void product_##suffix(const type *a, const type *b, type *c, int64_t rows, int64_t inner, int64_t columns) {  \
        enum { INNER = 128, COLUMNS = 512 };                                                                                     \
        for (int64_t k0 = 0; k0 < inner; k0 += INNER)                                                                            \
            for (int64_t j0 = 0; j0 < columns; j0 += COLUMNS) {                                                                  \
                int64_t k1 = k0 + INNER < inner ? k0 + INNER : inner, width = j0 + COLUMNS < columns ? COLUMNS : columns - j0;   \
                for (int64_t i = 0; i < rows; i++) {                                                                             \
                    type *restrict line = c + i * columns + j0;                                                                  \
                    int64_t k = k0;                                                                                              \
                    for (; k + 4 <= k1; k += 4) {                                                                                \
                        const type *restrict b0 = b + k * columns + j0, *restrict b1 = b0 + columns;                             \
                        const type *restrict b2 = b1 + columns, *restrict b3 = b2 + columns;                                     \
                        const type *x = a + i * inner + k;                                                                       \
                        type x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];                                                         \
                        for (int64_t j = 0; j < width; j++) line[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];        \
                    }                                                                                                            \
                    for (; k < k1; k++) {                                                                                        \
                        const type *restrict b0 = b + k * columns + j0;                                                          \
                        type x0 = a[i * inner + k];                                                                              \
                        for (int64_t j = 0; j < width; j++) line[j] += x0 * b0[j];                                               \
                    }                                                                                                            \
                }                                                                                                                \
            }                                                                                                                    \
    }
PRODUCT(float, float)
PRODUCT(double, double)

/* The geometry of a product with PyTorch's rules for matmul. */
typedef struct Product {
    int64_t rows, inner, columns, batches, dims[EM_MAX_DIMS];
    int ndim, batch_ndim; /* of the result */
    bool left_vector, right_vector;
    int64_t batch_dims[EM_MAX_DIMS];
} Product;

static bool shape_product(int left, const int64_t *a, int right, const int64_t *b, Product *product) {
    memset(product, 0, sizeof *product);
    if (left < 1 || right < 1) return false;
    product->left_vector = left == 1;
    product->right_vector = right == 1;
    product->rows = left == 1 ? 1 : a[left - 2];
    product->inner = a[left - 1];
    product->columns = right == 1 ? 1 : b[right - 1];
    if (product->inner != (right == 1 ? b[0] : b[right - 2])) return false;
    int more_left = left > 2 ? left - 2 : 0, more_right = right > 2 ? right - 2 : 0, count = more_left > more_right ? more_left : more_right;
    product->batches = 1;
    product->batch_ndim = count;
    for (int d = 0; d < count; d++) {
        int64_t x = d >= count - more_left ? a[d - (count - more_left)] : 1, y = d >= count - more_right ? b[d - (count - more_right)] : 1;
        if (x != y && x != 1 && y != 1) return false;
        product->dims[d] = product->batch_dims[d] = x == 1 ? y : x;
        product->batches *= product->dims[d];
    }
    product->ndim = count;
    if (left > 1) product->dims[product->ndim++] = product->rows;
    if (right > 1) product->dims[product->ndim++] = product->columns;
    return true;
}

/* The matrix or vector with the batch dimensions of the product in front. */
static EmTensor with_batches(const EmTensor *tensor, const Product *product) {
    int own = tensor->ndim == 1 ? 1 : 2;
    int64_t dims[EM_MAX_DIMS];
    memcpy(dims, product->batch_dims, sizeof dims);
    for (int d = 0; d < own; d++) dims[product->batch_ndim + d] = tensor->dims[tensor->ndim - own + d];
    return em_expand(tensor, product->batch_ndim + own, dims);
}

/* All products, batch after batch; freed by free(). As doubles for float64, as floats otherwise. */
static void *products(const EmTensor *a, const EmTensor *b, const Product *product, bool wide, bool sum_batches) {
    EmTensor left = with_batches(a, product), right = with_batches(b, product);
    int64_t size = product->rows * product->columns, step = sum_batches ? 0 : size;
    if (wide) {
        double *x = em_read_reals(&left), *y = em_read_reals(&right), *out = es_doubles(sum_batches ? size : size * product->batches);
        for (int64_t n = 0; n < product->batches; n++)
            product_double(x + n * product->rows * product->inner, y + n * product->inner * product->columns, out + n * step, product->rows, product->inner,
                           product->columns);
        free(x);
        free(y);
        return out;
    }
    float *x = em_read_floats(&left), *y = em_read_floats(&right), *out = es_alloc(sum_batches ? size : size * product->batches, sizeof(float));
    for (int64_t n = 0; n < product->batches; n++)
        product_float(x + n * product->rows * product->inner, y + n * product->inner * product->columns, out + n * step, product->rows, product->inner,
                      product->columns);
    free(x);
    free(y);
    return out;
}

static void matmul_kernel(EmCall *call) {
    const EmTensor *a = &call->tensor[0], *b = &call->tensor[1], *out = &call->tensor[2];
    Product product;
    shape_product(a->ndim, a->dims, b->ndim, b->dims, &product);
    bool wide = a->dtype == ACL_DOUBLE || b->dtype == ACL_DOUBLE;
    void *result = products(a, b, &product, wide, false);
    if (wide) em_write_reals(out, result);
    else em_write_floats(out, result);
    free(result);
}

static aclnnStatus matmul_like(aclOpExecutor *ex, const aclTensor *self, const aclTensor *mat2, aclTensor *out, int left, int right, int8_t cube) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(mat2);
    EM_NOT_NULL(out);
    ES_CUBE_OF(cube, self->dtype);
    ES_DTYPE(self, ES_REALS);
    ES_DTYPE(mat2, ES_REALS);
    EM_REQUIRE(out->dtype == em_promote(self->dtype, mat2->dtype), "out has dtype %d, but the product of %d and %d has another", out->dtype, self->dtype,
               mat2->dtype);
    if (left) ES_RANK(self, left);
    if (right) ES_RANK(mat2, right);
    Product product;
    EM_REQUIRE(shape_product(self->ndim, self->dims, mat2->ndim, mat2->dims, &product), "self and mat2 cannot be multiplied");
    EM_REQUIRE(es_has_shape(out, product.ndim, product.dims), "out does not have the shape of the product");
    em_tensor(ex, self);
    em_tensor(ex, mat2);
    em_tensor(ex, out);
    return em_ready(ex, matmul_kernel, 0);
}

EM_OP(aclnnMm, const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType) {
    EM_BEGIN(aclnnMm);
    return matmul_like(ex, self, mat2, out, 2, 2, cubeMathType);
}

EM_OP(aclnnMatmul, const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType) {
    EM_BEGIN(aclnnMatmul);
    return matmul_like(ex, self, mat2, out, 0, 0, cubeMathType);
}

EM_OP(aclnnBatchMatMul, const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType) {
    EM_BEGIN(aclnnBatchMatMul);
    return matmul_like(ex, self, mat2, out, 3, 3, cubeMathType);
}

EM_OP(aclnnMv, const aclTensor *self, const aclTensor *vec, aclTensor *out, int8_t cubeMathType) {
    EM_BEGIN(aclnnMv);
    return matmul_like(ex, self, vec, out, 2, 1, cubeMathType);
}

EM_OP(aclnnDot, const aclTensor *self, const aclTensor *tensor, aclTensor *out) {
    EM_BEGIN(aclnnDot);
    return matmul_like(ex, self, tensor, out, 1, 1, 0);
}

/* out = beta * self + alpha * (left @ right): self is ignored, NaN or not, when beta is 0. */
static void add_product_kernel(EmCall *call) {
    const EmTensor *a = &call->tensor[1], *b = &call->tensor[2], *out = &call->tensor[3];
    double beta = call->scalar[0].real, alpha = call->scalar[1].real;
    bool sum = call->integer[0], wide = out->dtype == ACL_DOUBLE;
    Product product;
    shape_product(a->ndim, a->dims, b->ndim, b->dims, &product);
    EmTensor self = em_expand(&call->tensor[0], out->ndim, out->dims);
    double *base = beta != 0 ? em_read_reals(&self) : es_doubles(out->numel);
    void *result = products(a, b, &product, wide, sum);
    for (int64_t i = 0; i < out->numel; i++) {
        double term = alpha * (wide ? ((double *)result)[i] : ((float *)result)[i]);
        base[i] = beta != 0 ? beta * base[i] + term : term;
    }
    em_write_reals(out, base);
    free(base);
    free(result);
}

static aclnnStatus add_product(aclOpExecutor *ex, const aclTensor *self, const aclTensor *left, const aclTensor *right, const aclScalar *beta,
                               const aclScalar *alpha, aclTensor *out, int left_rank, int right_rank, bool sum, int8_t cube) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(left);
    EM_NOT_NULL(right);
    EM_NOT_NULL(beta);
    EM_NOT_NULL(alpha);
    EM_NOT_NULL(out);
    ES_CUBE_OF(cube, left->dtype);
    ES_DTYPE(self, ES_REALS);
    ES_DTYPE(left, ES_REALS);
    ES_SAME_DTYPE(left, right);
    EM_REQUIRE(out->dtype == em_promote(self->dtype, left->dtype), "out has dtype %d, but the sum of %d and %d has another", out->dtype, self->dtype,
               left->dtype);
    ES_RANK(left, left_rank);
    ES_RANK(right, right_rank);
    Product product;
    EM_REQUIRE(shape_product(left->ndim, left->dims, right->ndim, right->dims, &product), "the matrices cannot be multiplied");
    if (left_rank == 3) EM_REQUIRE(left->dims[0] == right->dims[0], "the matrices differ in their number");
    EM_REQUIRE(es_has_shape(out, product.ndim - sum, product.dims + sum), "out does not have the shape of the product");
    EM_REQUIRE(em_broadcasts(self, out, out), "self does not broadcast to out's shape");
    em_tensor(ex, self);
    em_tensor(ex, left);
    em_tensor(ex, right);
    em_tensor(ex, out);
    em_scalar(ex, beta);
    em_scalar(ex, alpha);
    em_integer(ex, sum);
    return em_ready(ex, add_product_kernel, 0);
}

EM_OP(aclnnAddmm, const aclTensor *self, const aclTensor *mat1, const aclTensor *mat2, const aclScalar *beta, const aclScalar *alpha, aclTensor *out,
      int8_t cubeMathType) {
    EM_BEGIN(aclnnAddmm);
    return add_product(ex, self, mat1, mat2, beta, alpha, out, 2, 2, false, cubeMathType);
}

EM_OP(aclnnBaddbmm, const aclTensor *self, const aclTensor *batch1, const aclTensor *batch2, const aclScalar *beta, const aclScalar *alpha, aclTensor *out,
      int8_t cubeMathType) {
    EM_BEGIN(aclnnBaddbmm);
    return add_product(ex, self, batch1, batch2, beta, alpha, out, 3, 3, false, cubeMathType);
}

EM_OP(aclnnAddbmm, const aclTensor *self, const aclTensor *batch1, const aclTensor *batch2, const aclScalar *beta, const aclScalar *alpha, aclTensor *out,
      int8_t cubeMathType) {
    EM_BEGIN(aclnnAddbmm);
    return add_product(ex, self, batch1, batch2, beta, alpha, out, 3, 3, true, cubeMathType);
}

/* The order of alpha and beta is another one here. */
EM_OP(aclnnAddmv, const aclTensor *self, const aclTensor *mat, const aclTensor *vec, const aclScalar *alpha, const aclScalar *beta, aclTensor *out,
      int8_t cubeMathType) {
    EM_BEGIN(aclnnAddmv);
    return add_product(ex, self, mat, vec, beta, alpha, out, 2, 1, false, cubeMathType);
}

static void addr_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[3];
    EmTensor self = em_expand(&call->tensor[0], 2, out->dims);
    const aclScalar *beta = &call->scalar[0], *alpha = &call->scalar[1];
    bool with_beta = beta->dtype != ACL_DT_UNDEFINED, with_alpha = alpha->dtype != ACL_DT_UNDEFINED;
    int64_t columns = out->dims[1];
    if (es_whole(out->dtype)) {
        int64_t *base = em_read_integers(&self), *x = em_read_integers(&call->tensor[1]), *y = em_read_integers(&call->tensor[2]);
        int64_t b = with_beta ? beta->integer : 1, a = with_alpha ? alpha->integer : 1;
        for (int64_t i = 0; i < out->numel; i++) base[i] = b * base[i] + a * x[i / columns] * y[i % columns];
        em_write_integers(out, base);
        free(base);
        free(x);
        free(y);
        return;
    }
    double *base = em_read_reals(&self), *x = em_read_reals(&call->tensor[1]), *y = em_read_reals(&call->tensor[2]);
    double b = with_beta ? beta->real : 1, a = with_alpha ? alpha->real : 1;
    for (int64_t i = 0; i < out->numel; i++) base[i] = (b != 0 ? b * base[i] : 0) + a * x[i / columns] * y[i % columns];
    em_write_reals(out, base);
    free(base);
    free(x);
    free(y);
}

EM_OP(aclnnAddr, const aclTensor *self, const aclTensor *vec1, const aclTensor *vec2, const aclScalar *betaOptional, const aclScalar *alphaOptional,
      aclTensor *out) {
    EM_BEGIN(aclnnAddr);
    EM_NOT_NULL(self);
    EM_NOT_NULL(vec1);
    EM_NOT_NULL(vec2);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON);
    ES_DTYPE(vec1, ES_COMMON);
    ES_DTYPE(vec2, ES_COMMON);
    ES_RANK(vec1, 1);
    ES_RANK(vec2, 1);
    int64_t dims[2] = {vec1->dims[0], vec2->dims[0]};
    EM_REQUIRE(es_has_shape(out, 2, dims), "out does not have the shape of the outer product");
    EM_REQUIRE(em_broadcasts(self, out, out), "self does not broadcast to out's shape");
    EM_REQUIRE(out->dtype == em_promote(self->dtype, em_promote(vec1->dtype, vec2->dtype)), "out has another dtype than the result");
    em_tensor(ex, self);
    em_tensor(ex, vec1);
    em_tensor(ex, vec2);
    em_tensor(ex, out);
    em_scalar(ex, betaOptional);
    em_scalar(ex, alphaOptional);
    return em_ready(ex, addr_kernel, 0);
}
