/* Activations of neural networks, forward. */
#include "ops_pointwise.h"

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

static double gelu(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }

static double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(M_SQRT2 * M_2_SQRTPI / 2 * (x + 0.044715 * x * x * x))); }

static double softplus(double x, double beta, double threshold) { return x * beta > threshold ? x : log1p(exp(x * beta)) / beta; }

static double relu6_of_shifted(double x) { return isnan(x) ? x : fmin(fmax(x + 3, 0), 6); }

static double log_sigmoid(double x) { return (x < 0 ? x : 0) - log1p(exp(-fabs(x))); }

static double shrink_soft(double x, double lambda) { return x > lambda ? x - lambda : x < -lambda ? x + lambda : x * 0; }

KERNEL_RI(relu_kernel, 1, pw_maximum(a, 0), a > 0 ? a : 0)
KERNEL_R(leaky_relu_kernel, 1, a > 0 ? a : a * r0)
KERNEL_R(gelu_kernel, 1, gelu(a))
KERNEL_R(gelu_tanh_kernel, 1, gelu_tanh(a))
KERNEL_R(silu_kernel, 1, a * pw_sigmoid(a))
KERNEL_R(mish_kernel, 1, a * tanh(pw_log1p_exp(a)))
KERNEL_R(elu_kernel, 1, a <= 0 ? r1 * r0 * expm1(a * r2) : a * r1)
KERNEL_R(celu_kernel, 1, a > 0 ? a : r0 * expm1(a / r0))
KERNEL_R(selu_kernel, 1, SELU_SCALE * (a > 0 ? a : SELU_ALPHA * expm1(a)))
KERNEL_R(softplus_kernel, 1, softplus(a, r0, r1))
KERNEL_R(hardswish_kernel, 1, a * relu6_of_shifted(a) / 6)
KERNEL_R(hardsigmoid_kernel, 1, relu6_of_shifted(a) / 6)
KERNEL_RI(hardtanh_kernel, 1, pw_minimum(pw_maximum(a, s0), s1), (a < s0 ? s0 : a) > s1 ? s1 : a < s0 ? s0 : a)
KERNEL_R(hardshrink_kernel, 1, a >= -r0 && a <= r0 ? 0 : a)
KERNEL_R(softshrink_kernel, 1, shrink_soft(a, r0))
KERNEL_RI(threshold_kernel, 1, a <= s0 ? s1 : a, a <= s0 ? s1 : a)
KERNEL_R(log_sigmoid_kernel, 1, log_sigmoid(a))

/* Of a tensor alone. */
#define ACTIVATION(NAME, SELF, OUT, CONST, IN, RULE, KERNEL)                \
    EM_OP(aclnn##NAME, const aclTensor *SELF, CONST aclTensor *OUT) {       \
        EM_BEGIN(aclnn##NAME);                                              \
        TRY(pw_check1(ex, SELF, OUT, IN, IN, RULE));                        \
        return em_ready(ex, KERNEL, 0);                                     \
    }
/* Of a tensor and one number, an attribute. */
#define ACTIVATION1(NAME, NUMBER, RULE, KERNEL)                                                     \
    EM_OP(aclnn##NAME, const aclTensor *self, const aclScalar *NUMBER, aclTensor *out) {            \
        EM_BEGIN(aclnn##NAME);                                                                      \
        TRY(pw_check1(ex, self, out, D_FLOATS, D_FLOATS, RULE));                                    \
        TRY(pw_add_real(ex, NUMBER));                                                               \
        return em_ready(ex, KERNEL, 0);                                                             \
    }

#define D_SELU (D_FLOATS | D_I32 | D_I8)

ACTIVATION(Relu, self, out, const, D_FLOATS | D_I8 | D_I32 | D_I64, TO_SAME, relu_kernel)
ACTIVATION(Gelu, self, out, , D_FLOATS, TO_SAME, gelu_kernel)
ACTIVATION(Silu, self, out, , D_FLOATS, TO_SAME, silu_kernel)
ACTIVATION(Mish, self, out, , D_FLOATS, TO_SAME, mish_kernel)
ACTIVATION(Selu, self, out, , D_SELU, TO_SAME, selu_kernel)
ACTIVATION(Hardswish, self, out, const, D_FLOATS, TO_SAME, hardswish_kernel)
ACTIVATION(Hardsigmoid, self, out, , D_FLOATS | D_I32, TO_SAME, hardsigmoid_kernel)
ACTIVATION(LogSigmoid, self, out, , D_FLOATS, TO_SAME, log_sigmoid_kernel)
ACTIVATION1(LeakyRelu, negativeSlope, TO_CASTABLE, leaky_relu_kernel)
ACTIVATION1(Hardshrink, lambd, TO_CASTABLE, hardshrink_kernel)

EM_OP(aclnnSoftshrink, const aclTensor *self, const aclScalar *lambd, aclTensor *out) {
    EM_BEGIN(aclnnSoftshrink);
    EM_NOT_NULL(lambd);
    EM_REQUIRE(pw_value(lambd) >= 0, "lambd is negative");
    TRY(pw_check1(ex, self, out, D_FLOATS, D_FLOATS, TO_CASTABLE));
    TRY(pw_add_real(ex, lambd));
    return em_ready(ex, softshrink_kernel, 0);
}

EM_OP(aclnnCelu, const aclTensor *self, const aclScalar *alpha, aclTensor *out) {
    EM_BEGIN(aclnnCelu);
    EM_NOT_NULL(alpha);
    EM_REQUIRE(pw_value(alpha) != 0, "alpha is 0");
    TRY(pw_check1(ex, self, out, D_FLOATS, D_FLOATS, TO_CASTABLE));
    TRY(pw_add_real(ex, alpha));
    return em_ready(ex, celu_kernel, 0);
}

EM_OP(aclnnGeluV2, const aclTensor *x, int64_t approximate, aclTensor *y) {
    EM_BEGIN(aclnnGeluV2);
    EM_REQUIRE(approximate == 0 || approximate == 1, "approximate is %lld, not 0 or 1", (long long)approximate);
    TRY(pw_check1(ex, x, y, D_FLOATS, D_FLOATS, TO_SAME));
    return em_ready(ex, approximate ? gelu_tanh_kernel : gelu_kernel, 0);
}

EM_OP(aclnnElu, const aclTensor *self, const aclScalar *alpha, const aclScalar *scale, const aclScalar *inputScale, aclTensor *out) {
    EM_BEGIN(aclnnElu);
    TRY(pw_check1(ex, self, out, D_FLOATS, D_FLOATS, TO_CASTABLE));
    TRY(pw_add_real(ex, alpha));
    TRY(pw_add_real(ex, scale));
    TRY(pw_add_real(ex, inputScale));
    return em_ready(ex, elu_kernel, 0);
}

EM_OP(aclnnSoftplus, const aclTensor *self, const aclScalar *beta, const aclScalar *threshold, aclTensor *out) {
    EM_BEGIN(aclnnSoftplus);
    TRY(pw_check1(ex, self, out, D_FLOATS, D_FLOATS, TO_CASTABLE));
    TRY(pw_add_real(ex, beta));
    TRY(pw_add_real(ex, threshold));
    return em_ready(ex, softplus_kernel, 0);
}

EM_OP(aclnnHardtanh, const aclTensor *self, const aclScalar *clipValueMin, const aclScalar *clipValueMax, aclTensor *out) {
    EM_BEGIN(aclnnHardtanh);
    TRY(pw_check1(ex, self, out, D_REALS | D_INTS, D_REALS | D_INTS, TO_SAME));
    TRY(pw_add_number(ex, clipValueMin, self->dtype));
    TRY(pw_add_number(ex, clipValueMax, self->dtype));
    return em_ready(ex, hardtanh_kernel, 0);
}

EM_OP(aclnnThreshold, const aclTensor *self, const aclScalar *threshold, const aclScalar *value, aclTensor *out) {
    EM_BEGIN(aclnnThreshold);
    TRY(pw_check1s(ex, self, threshold, out, D_FLOATS | D_INTS, D_FLOATS | D_INTS, TO_CASTABLE));
    EM_NOT_NULL(value);
    EM_REQUIRE(pw_is(value->dtype, D_COMMON), "the value's dtype is not supported");
    em_scalar(ex, value);
    return em_ready(ex, threshold_kernel, 0);
}

/* The buffer is documented as unused: it is left alone, and may be NULL. */
EM_OP(aclnnLogSigmoidForward, const aclTensor *self, aclTensor *out, aclTensor *buffer) {
    EM_BEGIN(aclnnLogSigmoidForward);
    (void)buffer;
    TRY(pw_check1(ex, self, out, D_FLOATS, D_FLOATS, TO_SAME));
    return em_ready(ex, log_sigmoid_kernel, 0);
}

/* One weight for all, or one for each channel, which is dimension 1. */
static void prelu_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *weight = &call->tensor[1];
    double *x = em_read_reals(self), *w = em_read_reals(weight);
    int64_t inner = 1;
    for (int d = 2; d < self->ndim; d++) inner *= self->dims[d];
    for (int64_t k = 0; k < self->numel; k++)
        if (!(x[k] > 0)) x[k] *= w[weight->numel == 1 ? 0 : k / inner % weight->numel];
    em_write_reals(&call->tensor[2], x);
    free(x), free(w);
}

EM_OP(aclnnPrelu, const aclTensor *self, const aclTensor *weight, aclTensor *out) {
    EM_BEGIN(aclnnPrelu);
    EM_NOT_NULL(self);
    EM_NOT_NULL(weight);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_FLOATS) && weight->dtype == self->dtype && out->dtype == self->dtype, "the dtypes differ or are not supported");
    EM_REQUIRE(em_same_shape(self, out), "self and out differ in shape");
    EM_REQUIRE(em_numel(weight) == 1 || (self->ndim > 1 && em_numel(weight) == self->dims[1]), "weight has neither one element nor one for each channel");
    em_tensor(ex, self);
    em_tensor(ex, weight);
    em_tensor(ex, out);
    return em_ready(ex, prelu_kernel, 0);
}

/* The first half times the sigmoid of the second, along a dimension. */
static void glu_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[1];
    int dim = (int)call->integer[0];
    int64_t inner = 1, half = self->dims[dim] / 2;
    for (int d = dim + 1; d < self->ndim; d++) inner *= self->dims[d];
    double *x = em_read_reals(self), *results = pw_allocate(out->numel, sizeof *results);
    for (int64_t k = 0; k < out->numel; k++) {
        int64_t outer = k / (half * inner), first = outer * 2 * half * inner + k % (half * inner);
        results[k] = x[first] * pw_sigmoid(x[first + half * inner]);
    }
    em_write_reals(out, results);
    free(x), free(results);
}

EM_OP(aclnnGlu, const aclTensor *self, int64_t dim, const aclTensor *out) {
    EM_BEGIN(aclnnGlu);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_REALS) && pw_is(out->dtype, D_REALS), "the dtypes are not supported");
    EM_REQUIRE(self->ndim > 0 && dim >= -self->ndim && dim < self->ndim, "dim is out of range");
    if (dim < 0) dim += self->ndim;
    EM_REQUIRE(self->dims[dim] % 2 == 0, "the dimension's size is odd");
    EM_REQUIRE(out->ndim == self->ndim, "out and self differ in their number of dimensions");
    for (int d = 0; d < self->ndim; d++) EM_REQUIRE(out->dims[d] == (d == dim ? self->dims[d] / 2 : self->dims[d]), "out's shape is not that of a half");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, dim);
    return em_ready(ex, glu_kernel, 0);
}
