/* Filling tensors: with a value, with sequences, with a diagonal. */
#include "ops_pointwise.h"

/* The value in the form that the tensor's dtype takes: exactly. */
static void fill(const EmTensor *out, double complex value, int64_t integer) {
    if (em_is_complex(out->dtype)) {
        double complex *results = pw_allocate(out->numel, sizeof *results);
        for (int64_t k = 0; k < out->numel; k++) results[k] = value;
        em_write_complex(out, results);
        free(results);
    } else if (em_is_floating(out->dtype)) {
        double *results = pw_allocate(out->numel, sizeof *results);
        for (int64_t k = 0; k < out->numel; k++) results[k] = creal(value);
        em_write_reals(out, results);
        free(results);
    } else {
        int64_t *results = pw_allocate(out->numel, sizeof *results);
        for (int64_t k = 0; k < out->numel; k++) results[k] = integer;
        em_write_integers(out, results);
        free(results);
    }
}

static void fill_kernel(EmCall *call) { fill(&call->tensor[0], pw_complex_scalar(call, 0), pw_integer_scalar(call, 0)); }
static void one_kernel(EmCall *call) { fill(&call->tensor[0], 1, 1); }
static void zero_kernel(EmCall *call) { fill(&call->tensor[0], 0, 0); }

EM_OP(aclnnInplaceFillScalar, aclTensor *selfRef, const aclScalar *value) {
    EM_BEGIN(aclnnInplaceFillScalar);
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(value);
    EM_REQUIRE(pw_is(selfRef->dtype, D_NUMBERS), "selfRef has dtype %d, which is not supported", selfRef->dtype);
    em_tensor(ex, selfRef);
    TRY(pw_add_number(ex, value, selfRef->dtype));
    return em_ready(ex, fill_kernel, 0);
}

static void fill_tensor_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[1], *value = &call->tensor[0];
    size_t size = em_item_size(out->dtype);
    char bytes[16];
    memcpy(bytes, em_at(value, 0), size);
    for (int64_t k = 0; k < out->numel; k++) memcpy(em_at(out, k), bytes, size);
}

EM_OP(aclnnInplaceFillTensor, aclTensor *selfRef, const aclTensor *value) {
    EM_BEGIN(aclnnInplaceFillTensor);
    EM_NOT_NULL(selfRef);
    EM_NOT_NULL(value);
    EM_REQUIRE(pw_is(selfRef->dtype, D_COMMON | D_UNSIGNED), "selfRef has dtype %d, which is not supported", selfRef->dtype);
    EM_REQUIRE(value->dtype == selfRef->dtype, "value and selfRef differ in dtype");
    EM_REQUIRE(value->ndim <= 1 && em_numel(value) == 1, "value is not one element");
    em_tensor(ex, value);
    em_tensor(ex, selfRef);
    return em_ready(ex, fill_tensor_kernel, 0);
}

static aclnnStatus fill_with(aclOpExecutor *ex, const aclTensor *self, uint32_t set, EmKernel kernel) {
    EM_NOT_NULL(self);
    EM_REQUIRE(pw_is(self->dtype, set), "selfRef has dtype %d, which is not supported", self->dtype);
    em_tensor(ex, self);
    return em_ready(ex, kernel, 0);
}

EM_OP(aclnnInplaceOne, const aclTensor *selfRef) {
    EM_BEGIN(aclnnInplaceOne);
    return fill_with(ex, selfRef, D_COMMON | DT(ACL_UINT16), one_kernel);
}

EM_OP(aclnnInplaceZero, aclTensor *selfRef) {
    EM_BEGIN(aclnnInplaceZero);
    return fill_with(ex, selfRef, D_NUMBERS | DT(ACL_UINT16), zero_kernel);
}

/* start + k * step: in integers where all numbers are. */
static void sequence_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[0];
    const aclScalar *start = &call->scalar[0], *step = &call->scalar[1];
    if (!em_is_floating(start->dtype) && !em_is_floating(step->dtype)) {
        int64_t first = pw_integer_scalar(call, 0), by = pw_integer_scalar(call, 1), *results = pw_allocate(out->numel, sizeof *results);
        for (int64_t k = 0; k < out->numel; k++) results[k] = WRAP(U(first) + U(k) * U(by));
        em_write_integers(out, results);
        free(results);
    } else {
        double first = pw_real_scalar(call, 0, ACL_DOUBLE), by = pw_real_scalar(call, 1, ACL_DOUBLE), *results = pw_allocate(out->numel, sizeof *results);
        for (int64_t k = 0; k < out->numel; k++) results[k] = first + (double)k * by;
        em_write_reals(out, results);
        free(results);
    }
}

static aclnnStatus sequence(aclOpExecutor *ex, const aclScalar *start, const aclScalar *end, const aclScalar *step, const aclTensor *out, bool closed) {
    EM_NOT_NULL(start);
    EM_NOT_NULL(end);
    EM_NOT_NULL(step);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(start->dtype, D_COMMON) && pw_is(end->dtype, D_COMMON) && pw_is(step->dtype, D_COMMON), "a number's dtype is not supported");
    EM_REQUIRE(pw_is(out->dtype, D_REALS | D_I32 | D_I64), "out has dtype %d, which is not supported", out->dtype);
    double from = pw_value(start), to = pw_value(end), by = pw_value(step);
    EM_REQUIRE(by != 0, "step is 0");
    EM_REQUIRE(by > 0 ? from <= to : from >= to, "start, end and step contradict each other");
    double steps = (to - from) / by;
    int64_t size = closed ? (int64_t)floor(steps) + 1 : (int64_t)ceil(steps);
    float short_steps = ((float)to - (float)from) / (float)by; /* for float numbers the size may be computed in float */
    int64_t short_size = closed ? (int64_t)floorf(short_steps) + 1 : (int64_t)ceilf(short_steps);
    EM_REQUIRE(out->ndim == 1 && (out->dims[0] == size || out->dims[0] == short_size), "out is not one-dimensional of %lld elements", (long long)size);
    em_tensor(ex, out);
    em_scalar(ex, start);
    em_scalar(ex, step);
    return em_ready(ex, sequence_kernel, 0);
}

EM_OP(aclnnArange, const aclScalar *start, const aclScalar *end, const aclScalar *step, aclTensor *out) {
    EM_BEGIN(aclnnArange);
    return sequence(ex, start, end, step, out, false);
}

EM_OP(aclnnRange, const aclScalar *start, const aclScalar *end, const aclScalar *step, aclTensor *out) {
    EM_BEGIN(aclnnRange);
    return sequence(ex, start, end, step, out, true);
}

/* Both halves are counted from their own end, so that the last element is exact. */
static void linspace_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[0];
    double start = call->real[0], end = call->real[1], *results = pw_allocate(out->numel, sizeof *results);
    double step = out->numel > 1 ? (end - start) / (double)(out->numel - 1) : 0;
    for (int64_t k = 0; k < out->numel; k++) results[k] = k < out->numel / 2 || out->numel == 1 ? start + (double)k * step : end - (double)(out->numel - 1 - k) * step;
    em_write_reals(out, results);
    free(results);
}

EM_OP(aclnnLinspace, const aclScalar *start, const aclScalar *end, int64_t steps, aclTensor *out) {
    EM_BEGIN(aclnnLinspace);
    EM_NOT_NULL(start);
    EM_NOT_NULL(end);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(start->dtype, D_COMMON) && pw_is(end->dtype, D_COMMON), "a number's dtype is not supported");
    EM_REQUIRE(pw_is(out->dtype, D_REALS | D_I8 | D_U8 | D_I16 | D_I32), "out has dtype %d, which is not supported", out->dtype);
    EM_REQUIRE(steps >= 0 && em_numel(out) == steps, "out has %lld elements, not %lld", (long long)em_numel(out), (long long)steps);
    em_tensor(ex, out);
    em_real(ex, pw_value(start));
    em_real(ex, pw_value(end));
    return em_ready(ex, linspace_kernel, 0);
}

static void eye_kernel(EmCall *call) {
    const EmTensor *out = &call->tensor[0];
    int64_t *results = pw_allocate(out->numel, sizeof *results);
    for (int64_t k = 0; k < out->dims[0] && k < out->dims[1]; k++) results[k * out->dims[1] + k] = 1;
    em_write_integers(out, results);
    free(results);
}

EM_OP(aclnnEye, int64_t n, int64_t m, aclTensor *out) {
    EM_BEGIN(aclnnEye);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(out->dtype, D_FLOATS | D_INTS | D_BOOL), "out has dtype %d, which is not supported", out->dtype);
    EM_REQUIRE(n >= 0 && m >= 0, "n or m is negative");
    EM_REQUIRE(out->ndim == 2 && out->dims[0] == n && out->dims[1] == m, "out's shape is not (n, m)");
    em_tensor(ex, out);
    return em_ready(ex, eye_kernel, 0);
}
