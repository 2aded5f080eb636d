/* Reductions: in double, or in int64 where the result is integral. NaN wins in maxima and minima. */

#include "ops_shape.h"

enum { SUM, MEAN, PROD, AMAX, AMIN, ALL, ANY, VAR, STD, NORM, LOGSUMEXP };

static double sum_of(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

static double extreme_of(const double *x, int64_t n, bool greatest) {
    double found = x[0];
    for (int64_t i = 1; i < n && !isnan(found); i++)
        if (isnan(x[i]) || (greatest ? x[i] > found : x[i] < found)) found = x[i];
    return found;
}

static double variance_of(const double *x, int64_t n, double correction) {
    double mean = sum_of(x, n) / (double)n, sum = 0, divisor = (double)n - correction;
    for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
    return sum / (divisor > 0 ? divisor : 0);
}

static double norm_of(const double *x, int64_t n, double p) {
    double sum = 0;
    if (isinf(p)) {
        if (!n) return 0;
        double found = fabs(x[0]);
        for (int64_t i = 1; i < n && !isnan(found); i++)
            if (isnan(x[i]) || (p > 0 ? fabs(x[i]) > found : fabs(x[i]) < found)) found = fabs(x[i]);
        return found;
    }
    for (int64_t i = 0; i < n; i++) {
        double a = fabs(x[i]);
        sum += p == 0 ? (x[i] != 0) : p == 1 ? a : p == 2 ? a * a : pow(a, p);
    }
    return p == 0 || p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

static double logsumexp_of(const double *x, int64_t n) {
    if (!n) return -INFINITY;
    double most = extreme_of(x, n, true), sum = 0;
    if (isnan(most)) return most;
    if (isinf(most)) most = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - most);
    return log(sum) + most;
}

static double reduce_line(int kind, const double *x, int64_t n, double p) {
    double result;
    switch (kind) {
    case SUM: return sum_of(x, n);
    case MEAN: return sum_of(x, n) / (double)n;
    case PROD:
        result = 1;
        for (int64_t i = 0; i < n; i++) result *= x[i];
        return result;
    case AMAX:
    case AMIN: return extreme_of(x, n, kind == AMAX);
    case ALL:
        for (int64_t i = 0; i < n; i++)
            if (x[i] == 0) return 0;
        return 1;
    case ANY:
        for (int64_t i = 0; i < n; i++)
            if (x[i] != 0) return 1;
        return 0;
    case VAR: return variance_of(x, n, p);
    case STD: return sqrt(variance_of(x, n, p));
    case NORM: return norm_of(x, n, p);
    default: return logsumexp_of(x, n);
    }
}

static int64_t reduce_integers(int kind, const int64_t *x, int64_t n) {
    uint64_t result = kind == PROD || kind == ALL; /* unsigned: overflow wraps */
    if (kind == AMAX || kind == AMIN) result = (uint64_t)x[0];
    for (int64_t i = 0; i < n; i++) {
        switch (kind) {
        case SUM: result += (uint64_t)x[i]; break;
        case PROD: result *= (uint64_t)x[i]; break;
        case AMAX: result = (uint64_t)(x[i] > (int64_t)result ? x[i] : (int64_t)result); break;
        case AMIN: result = (uint64_t)(x[i] < (int64_t)result ? x[i] : (int64_t)result); break;
        case ALL: result = result && x[i] != 0; break;
        default: result = result || x[i] != 0; break;
        }
    }
    return (int64_t)result;
}

/* One line of complex numbers: sums, means, products and truth. */
static double complex reduce_complex(int kind, const double complex *x, int64_t n) {
    double complex result = kind == PROD || kind == ALL;
    for (int64_t i = 0; i < n; i++) {
        if (kind == PROD) result *= x[i];
        else if (kind == ALL) result = result != 0 && x[i] != 0;
        else if (kind == ANY) result = result != 0 || x[i] != 0;
        else result += x[i];
    }
    return kind == MEAN ? result / (double)n : result;
}

static void reduce_into(const EmTensor *self, const bool *marked, int kind, double p, const EmTensor *out) {
    int64_t lines, length;
    EmTensor view = es_lines(self, marked, &lines, &length);
    if (em_is_complex(self->dtype)) {
        double complex *x = em_read_complex(&view), *results = es_alloc(lines, sizeof *results);
        for (int64_t i = 0; i < lines; i++) results[i] = reduce_complex(kind, x + i * length, length);
        em_write_complex(out, results);
        free(x);
        free(results);
    } else if (es_whole(self->dtype) && es_whole(out->dtype)) {
        int64_t *x = em_read_integers(&view), *results = es_int64s(lines);
        for (int64_t i = 0; i < lines; i++) results[i] = reduce_integers(kind, x + i * length, length);
        em_write_integers(out, results);
        free(x);
        free(results);
    } else {
        double *x = em_read_reals(&view), *results = es_doubles(lines);
        for (int64_t i = 0; i < lines; i++) results[i] = reduce_line(kind, x + i * length, length, p);
        em_write_reals(out, results);
        free(x);
        free(results);
    }
}

/* tensors: self, out; array: dims; integer: kind, real: p or the correction. */
static void reduce_kernel(EmCall *call) {
    bool marked[EM_MAX_DIMS];
    es_mark(call->array[0].values, call->array[0].present ? call->array[0].size : 0, call->tensor[0].ndim, marked);
    reduce_into(&call->tensor[0], marked, (int)call->integer[0], call->real[0], &call->tensor[1]);
}

static aclnnStatus reduce_to(aclOpExecutor *ex, int kind, double p, const aclTensor *self, const aclIntArray *dims, bool keep, const aclTensor *out,
                             uint32_t from, uint32_t to) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, from);
    ES_DTYPE(out, to);
    bool marked[EM_MAX_DIMS];
    EM_REQUIRE(es_mark(dims ? dims->values : NULL, dims ? (int64_t)dims->size : 0, self->ndim, marked), "a dimension is out of range or named twice");
    EM_REQUIRE(es_reduced(self, marked, keep, out), "out does not have the shape of the reduced tensor");
    if (kind == AMAX || kind == AMIN)
        for (int d = 0; d < self->ndim; d++) EM_REQUIRE(!marked[d] || self->dims[d] > 0, "a dimension without elements has no extreme");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_array(ex, dims);
    em_integer(ex, kind);
    em_real(ex, p);
    return em_ready(ex, reduce_kernel, 0);
}

EM_OP(aclnnReduceSum, const aclTensor *self, const aclIntArray *dims, bool keepDims, aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnReduceSum);
    EM_NOT_NULL(dims);
    EM_NOT_NULL(out);
    EM_REQUIRE(out->dtype == dtype, "out does not have the dtype asked for");
    return reduce_to(ex, SUM, 0, self, dims, keepDims, out, ES_COMMON | ES_COMPLEX, ES_COMMON | ES_COMPLEX);
}

EM_OP(aclnnMean, const aclTensor *self, const aclIntArray *dim, bool keepDim, aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnMean);
    EM_NOT_NULL(dim);
    EM_NOT_NULL(out);
    EM_REQUIRE(out->dtype == dtype, "out does not have the dtype asked for");
    return reduce_to(ex, MEAN, 0, self, dim, keepDim, out, ES_COMMON | ES_COMPLEX, ES_REALS | ES_COMPLEX);
}

EM_OP(aclnnProd, const aclTensor *self, const aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnProd);
    EM_NOT_NULL(out);
    EM_REQUIRE(out->dtype == dtype, "out does not have the dtype asked for");
    return reduce_to(ex, PROD, 0, self, NULL, false, out, ES_COMMON | ES_COMPLEX, ES_COMMON | ES_COMPLEX);
}

/* The kernel of reductions along one dimension given as a number. */
static void reduce_dim_kernel(EmCall *call) {
    bool marked[EM_MAX_DIMS] = {false};
    marked[em_dim(&call->tensor[0], call->integer[1])] = true;
    reduce_into(&call->tensor[0], marked, (int)call->integer[0], 0, &call->tensor[1]);
}

EM_OP(aclnnProdDim, const aclTensor *self, int64_t dim, bool keepDim, const aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnProdDim);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON | ES_COMPLEX);
    EM_REQUIRE(out->dtype == dtype, "out does not have the dtype asked for");
    ES_DIM(at, dim, self);
    bool marked[EM_MAX_DIMS] = {false};
    marked[at] = true;
    EM_REQUIRE(es_reduced(self, marked, keepDim, out), "out does not have the shape of the reduced tensor");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, PROD);
    em_integer(ex, at);
    return em_ready(ex, reduce_dim_kernel, 0);
}

EM_OP(aclnnAmax, const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *out) {
    EM_BEGIN(aclnnAmax);
    EM_NOT_NULL(self);
    EM_NOT_NULL(dim);
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(self, out);
    return reduce_to(ex, AMAX, 0, self, dim, keepDim, out, ES_COMMON, ES_COMMON);
}

EM_OP(aclnnAmin, const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *out) {
    EM_BEGIN(aclnnAmin);
    EM_NOT_NULL(self);
    EM_NOT_NULL(dim);
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(self, out);
    return reduce_to(ex, AMIN, 0, self, dim, keepDim, out, ES_COMMON, ES_COMMON);
}

EM_OP(aclnnMax, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnMax);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(self, out);
    return reduce_to(ex, AMAX, 0, self, NULL, false, out, ES_COMMON, ES_COMMON);
}

EM_OP(aclnnMin, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnMin);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(self, out);
    return reduce_to(ex, AMIN, 0, self, NULL, false, out, ES_COMMON, ES_COMMON);
}

EM_OP(aclnnAll, const aclTensor *self, const aclIntArray *dim, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnAll);
    EM_NOT_NULL(dim);
    return reduce_to(ex, ALL, 0, self, dim, keepdim, out, ES_COMMON, ES_BOOL | ES_DT(ACL_UINT8));
}

EM_OP(aclnnAny, const aclTensor *self, const aclIntArray *dim, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnAny);
    EM_NOT_NULL(dim);
    return reduce_to(ex, ANY, 0, self, dim, keepdim, out, ES_COMMON, ES_BOOL | ES_DT(ACL_UINT8));
}

EM_OP(aclnnVar, const aclTensor *self, const aclIntArray *dim, bool unbiased, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnVar);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(self, out);
    return reduce_to(ex, VAR, unbiased, self, dim, keepdim, out, ES_REALS, ES_REALS);
}

EM_OP(aclnnVarCorrection, const aclTensor *self, const aclIntArray *dim, int64_t correction, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnVarCorrection);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(self, out);
    return reduce_to(ex, VAR, (double)correction, self, dim, keepdim, out, ES_REALS, ES_REALS);
}

EM_OP(aclnnStd, const aclTensor *self, const aclIntArray *dim, const int64_t correction, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnStd);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_SAME_DTYPE(self, out);
    return reduce_to(ex, STD, (double)correction, self, dim, keepdim, out, ES_REALS, ES_REALS);
}

EM_OP(aclnnNorm, const aclTensor *self, const aclScalar *pScalar, const aclIntArray *dim, bool keepdim, aclTensor *out) {
    EM_BEGIN(aclnnNorm);
    EM_NOT_NULL(pScalar);
    EM_NOT_NULL(dim);
    return reduce_to(ex, NORM, pScalar->real, self, dim, keepdim, out, ES_REALS, ES_REALS);
}

EM_OP(aclnnLinalgVectorNorm, const aclTensor *self, const aclScalar *ord, const aclIntArray *dims, bool keepDims, const aclDataType dtype, aclTensor *out) {
    EM_BEGIN(aclnnLinalgVectorNorm);
    EM_NOT_NULL(ord);
    EM_NOT_NULL(dims);
    EM_NOT_NULL(out);
    EM_REQUIRE(out->dtype == dtype, "out does not have the dtype asked for");
    EM_REQUIRE(ord->real == 0 || ord->real == 1 || ord->real == 2 || ord->real == 3 || isinf(ord->real), "ord must be 0, 1, 2, 3 or infinite, not %g", ord->real);
    return reduce_to(ex, NORM, ord->real, self, dims, keepDims, out, ES_REALS, ES_REALS);
}

EM_OP(aclnnLogSumExp, const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *out) {
    EM_BEGIN(aclnnLogSumExp);
    EM_NOT_NULL(dim);
    return reduce_to(ex, LOGSUMEXP, 0, self, dim, keepDim, out, ES_COMMON, ES_REALS);
}

/* Two results of one tensor. tensors: self, first, second; array: dims; integers: both kinds; real: the correction. */
static void reduce_pair_kernel(EmCall *call) {
    bool marked[EM_MAX_DIMS];
    EmTensor self = call->tensor[0];
    es_mark(call->array[0].values, call->array[0].present ? call->array[0].size : 0, self.ndim, marked);
    char *copy = es_pack(&self, self.dtype); /* an output may share memory with self */
    self = es_packed(self.dtype, self.ndim, self.dims, copy);
    reduce_into(&self, marked, (int)call->integer[0], call->real[0], &call->tensor[1]);
    reduce_into(&self, marked, (int)call->integer[1], call->real[0], &call->tensor[2]);
    free(copy);
}

static aclnnStatus reduce_pair(aclOpExecutor *ex, const aclTensor *self, const aclIntArray *dims, bool keep, aclTensor *first, aclTensor *second,
                               int first_kind, int second_kind, double p, uint32_t from) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(first);
    EM_NOT_NULL(second);
    ES_DTYPE(self, from);
    ES_SAME_DTYPE(self, first);
    ES_SAME_DTYPE(self, second);
    bool marked[EM_MAX_DIMS];
    EM_REQUIRE(es_mark(dims ? dims->values : NULL, dims ? (int64_t)dims->size : 0, self->ndim, marked), "a dimension is out of range or named twice");
    EM_REQUIRE(es_reduced(self, marked, keep, first) && es_reduced(self, marked, keep, second), "an output does not have the shape of the reduced tensor");
    em_tensor(ex, self);
    em_tensor(ex, first);
    em_tensor(ex, second);
    em_array(ex, dims);
    em_integer(ex, first_kind);
    em_integer(ex, second_kind);
    em_real(ex, p);
    return em_ready(ex, reduce_pair_kernel, 0);
}

EM_OP(aclnnVarMean, const aclTensor *self, const aclIntArray *dim, int64_t correction, bool keepdim, aclTensor *varOut, aclTensor *meanOut) {
    EM_BEGIN(aclnnVarMean);
    return reduce_pair(ex, self, dim, keepdim, varOut, meanOut, VAR, MEAN, (double)correction, ES_REALS);
}

EM_OP(aclnnAminmax, const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *minOut, aclTensor *maxOut) {
    EM_BEGIN(aclnnAminmax);
    EM_NOT_NULL(self);
    EM_REQUIRE(em_numel(self) > 0, "a tensor without elements has no extremes");
    return reduce_pair(ex, self, dim, keepDim, minOut, maxOut, AMIN, AMAX, 0, ES_COMMON);
}

static void trace_kernel(EmCall *call) {
    EmTensor view = call->tensor[0];
    view.strides[0] += view.strides[1];
    view.dims[0] = view.numel = view.dims[0] < view.dims[1] ? view.dims[0] : view.dims[1];
    view.ndim = 1;
    bool marked[EM_MAX_DIMS] = {true};
    reduce_into(&view, marked, SUM, 0, &call->tensor[1]);
}

EM_OP(aclnnTrace, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnTrace);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON | ES_COMPLEX);
    ES_RANK(self, 2);
    ES_RANK(out, 0);
    EM_REQUIRE(out->dtype == (es_whole(self->dtype) ? ACL_INT64 : self->dtype), "out has another dtype than the sum");
    em_tensor(ex, self);
    em_tensor(ex, out);
    return em_ready(ex, trace_kernel, 0);
}

static void bincount_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *weights = &call->tensor[1], *out = &call->tensor[2];
    int64_t *values = em_read_integers(self);
    double *amounts = weights->present ? em_read_reals(weights) : NULL, *counts = es_doubles(out->numel);
    for (int64_t i = 0; i < self->numel; i++) {
        if (values[i] < 0 || values[i] >= out->numel) {
            em_kernel_failed(call, ES_INDEX_ERROR, "aclnnBincount: the value %lld has no place in out", (long long)values[i]);
            break;
        }
        counts[values[i]] += amounts ? amounts[i] : 1;
    }
    em_write_reals(out, counts);
    free(values);
    free(amounts);
    free(counts);
}

EM_OP(aclnnBincount, const aclTensor *self, const aclTensor *weights, int64_t minlength, aclTensor *out) {
    EM_BEGIN(aclnnBincount);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_INTS);
    ES_RANK(self, 1);
    ES_RANK(out, 1);
    EM_REQUIRE(minlength >= 0 && out->dims[0] >= minlength, "out is shorter than minlength, or minlength is negative");
    if (weights) {
        ES_SAME_SHAPE(self, weights);
        ES_DTYPE(weights, ES_COMMON);
        ES_DTYPE(out, ES_DT(ACL_FLOAT) | ES_DT(ACL_DOUBLE));
    } else {
        ES_DTYPE(out, ES_INDICES);
    }
    em_tensor(ex, self);
    em_tensor(ex, weights);
    em_tensor(ex, out);
    return em_ready(ex, bincount_kernel, 0);
}
