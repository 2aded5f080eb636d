/* Gradients of activations: a is the output's gradient, b the activation's input or result. */
#include "ops_pointwise.h"

#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_SCALE 1.0507009873554804934193349852946

static double gelu_slope(double x) { return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-x * x / 2) * M_2_SQRTPI * M_SQRT1_2 / 2; }

static double gelu_tanh_slope(double x) {
    const double factor = M_SQRT2 * M_2_SQRTPI / 2, cubic = 0.044715;
    double tangent = tanh(factor * (x + cubic * x * x * x));
    return 0.5 * (1 + tangent) + 0.5 * x * (1 - tangent * tangent) * factor * (1 + 3 * cubic * x * x);
}

static double silu_slope(double x) {
    double sigmoid = pw_sigmoid(x);
    return sigmoid * (1 + x * (1 - sigmoid));
}

static double mish_slope(double x) {
    double tangent = tanh(pw_log1p_exp(x));
    return tangent + x * pw_sigmoid(x) * (1 - tangent * tangent);
}

static double hardswish_slope(double x) { return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1; }

static double elu_slope(double x, double alpha, double scale, double input_scale, int64_t is_result) {
    if (!(x <= 0)) return scale;
    return is_result ? input_scale * (x + alpha * scale) : alpha * scale * input_scale * exp(x * input_scale);
}

KERNEL_R(leaky_relu_kernel, 2, b > 0 ? a : a * r0)
KERNEL_R(gelu_kernel, 2, a * gelu_slope(b))
KERNEL_R(gelu_tanh_kernel, 2, a * gelu_tanh_slope(b))
KERNEL_R(silu_kernel, 2, a * silu_slope(b))
KERNEL_R(mish_kernel, 2, a * mish_slope(b))
KERNEL_R(elu_kernel, 2, a * elu_slope(b, r0, r1, r2, i0))
KERNEL_R(selu_kernel, 2, b > 0 ? a * SELU_SCALE : a * (b + SELU_SCALE * SELU_ALPHA))
KERNEL_R(softplus_kernel, 2, b * r0 > r1 ? a : a * pw_sigmoid(b * r0))
KERNEL_R(hardswish_kernel, 2, a * hardswish_slope(b))
KERNEL_R(hardsigmoid_kernel, 2, b > -3 && b < 3 ? a / 6 : 0)
KERNEL_R(hardtanh_kernel, 2, b <= r0 || b >= r1 ? 0 : a)
KERNEL_RI(threshold_kernel, 2, b <= s0 ? 0 : a, b <= s0 ? 0 : a)
KERNEL_R(log_sigmoid_kernel, 2, a * pw_sigmoid(-b))
KERNEL_RC(sigmoid_kernel, 2, a * (1 - b) * b, a * conj((1 - b) * b))
KERNEL_R(tanh_kernel, 2, a * (1 - b * b))

/* The gradient and the input are of one dtype and shape. */
#define GRADIENT(NAME, INPUT, OUT, CONST, SET, KERNEL)                                                      \
    EM_OP(aclnn##NAME##Backward, const aclTensor *gradOutput, const aclTensor *INPUT, CONST aclTensor *OUT) { \
        EM_BEGIN(aclnn##NAME##Backward);                                                                    \
        TRY(pw_equal_shapes(ex, gradOutput, INPUT));                                                        \
        TRY(pw_check2(ex, gradOutput, INPUT, OUT, SET, SET, TO_EQUAL));                                     \
        return em_ready(ex, KERNEL, 0);                                                                     \
    }
GRADIENT(Silu, self, gradInput, , D_FLOATS, silu_kernel)
GRADIENT(Mish, self, gradInput, , D_FLOATS, mish_kernel)
GRADIENT(Selu, result, gradInput, , D_FLOATS | D_I32 | D_I8 | D_U8, selu_kernel)
GRADIENT(Hardswish, self, out, , D_FLOATS, hardswish_kernel)
GRADIENT(Hardsigmoid, self, out, , D_FLOATS, hardsigmoid_kernel)
GRADIENT(Sigmoid, output, gradInput, , D_REALS | D_COMPLEX, sigmoid_kernel)
GRADIENT(Tanh, output, gradInput, , D_REALS, tanh_kernel)

EM_OP(aclnnGeluBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *gradInput) {
    EM_BEGIN(aclnnGeluBackward);
    TRY(pw_check2(ex, gradOutput, self, gradInput, D_FLOATS, D_FLOATS, TO_SAME));
    return em_ready(ex, gelu_kernel, 0);
}

EM_OP(aclnnGeluBackwardV2, const aclTensor *gradOutput, const aclTensor *self, char *approximate, aclTensor *gradInput) {
    EM_BEGIN(aclnnGeluBackwardV2);
    EM_NOT_NULL(approximate);
    bool tangent = !strcmp(approximate, "tanh");
    EM_REQUIRE(tangent || !strcmp(approximate, "none"), "approximate is '%s', not 'none' or 'tanh'", approximate);
    TRY(pw_check2(ex, gradOutput, self, gradInput, D_FLOATS, D_FLOATS, TO_SAME));
    return em_ready(ex, tangent ? gelu_tanh_kernel : gelu_kernel, 0);
}

EM_OP(aclnnLeakyReluBackward, const aclTensor *gradOutput, const aclTensor *self, const aclScalar *negativeSlope, bool selfIsResult, aclTensor *out) {
    EM_BEGIN(aclnnLeakyReluBackward);
    EM_NOT_NULL(negativeSlope);
    EM_REQUIRE(!selfIsResult || pw_value(negativeSlope) >= 0, "a result cannot come from a negative slope");
    TRY(pw_check2(ex, gradOutput, self, out, D_REALS, D_ALL, TO_CASTABLE));
    TRY(pw_add_real(ex, negativeSlope));
    return em_ready(ex, leaky_relu_kernel, 0);
}

EM_OP(aclnnEluBackward, const aclTensor *gradOutput, const aclScalar *alpha, const aclScalar *scale, const aclScalar *inputScale, bool isResult,
      const aclTensor *selfOrResult, aclTensor *gradInput) {
    EM_BEGIN(aclnnEluBackward);
    EM_NOT_NULL(gradOutput);
    EM_NOT_NULL(selfOrResult);
    TRY(pw_add_real(ex, alpha));
    TRY(pw_add_real(ex, scale));
    TRY(pw_add_real(ex, inputScale));
    EM_REQUIRE(!isResult || pw_value(alpha) >= 0, "a result cannot come from a negative alpha");
    EM_REQUIRE(gradOutput->dtype == selfOrResult->dtype, "gradOutput and selfOrResult differ in dtype");
    TRY(pw_equal_shapes(ex, gradOutput, selfOrResult));
    TRY(pw_check2(ex, gradOutput, selfOrResult, gradInput, D_FLOATS, D_FLOATS, TO_CASTABLE));
    em_integer(ex, isResult);
    return em_ready(ex, elu_kernel, 0);
}

EM_OP(aclnnSoftplusBackward, const aclTensor *gradOutput, const aclTensor *self, const aclScalar *beta, const aclScalar *threshold, aclTensor *gradInput) {
    EM_BEGIN(aclnnSoftplusBackward);
    TRY(pw_check2(ex, gradOutput, self, gradInput, D_FLOATS, D_FLOATS, TO_CASTABLE));
    TRY(pw_add_real(ex, beta));
    TRY(pw_add_real(ex, threshold));
    return em_ready(ex, softplus_kernel, 0);
}

EM_OP(aclnnHardtanhBackward, const aclTensor *gradOutput, const aclTensor *self, const aclScalar *min, const aclScalar *max, aclTensor *out) {
    EM_BEGIN(aclnnHardtanhBackward);
    TRY(pw_equal_shapes(ex, gradOutput, self));
    TRY(pw_check2(ex, gradOutput, self, out, D_FLOATS, D_FLOATS, TO_EQUAL));
    TRY(pw_add_real(ex, min));
    TRY(pw_add_real(ex, max));
    return em_ready(ex, hardtanh_kernel, 0);
}

EM_OP(aclnnThresholdBackward, const aclTensor *gradOutput, const aclTensor *self, const aclScalar *threshold, aclTensor *out) {
    EM_BEGIN(aclnnThresholdBackward);
    EM_NOT_NULL(threshold);
    EM_NOT_NULL(self);
    EM_REQUIRE(pw_is(threshold->dtype, D_COMMON), "the threshold's dtype is not supported");
    TRY(pw_equal_shapes(ex, gradOutput, self));
    const uint32_t set = D_FLOATS | D_I8 | D_U8 | D_I32 | D_I64;
    TRY(pw_check2(ex, gradOutput, self, out, set, set, TO_CASTABLE));
    em_scalar(ex, threshold);
    return em_ready(ex, threshold_kernel, 0);
}

EM_OP(aclnnLogSigmoidBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *buffer, aclTensor *gradInput) {
    EM_BEGIN(aclnnLogSigmoidBackward);
    EM_NOT_NULL(gradOutput);
    EM_NOT_NULL(self);
    EM_NOT_NULL(buffer);
    EM_REQUIRE(buffer->dtype == self->dtype && em_same_shape(buffer, self), "buffer and self differ in dtype or shape");
    TRY(pw_equal_shapes(ex, gradOutput, self));
    TRY(pw_check2(ex, gradOutput, self, gradInput, D_FLOATS, D_FLOATS, TO_EQUAL));
    return em_ready(ex, log_sigmoid_kernel, 0);
}

/* The gradients of PReLU's input and, summed over all that share it, of its weight. */
static void prelu_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[1], *weight = &call->tensor[2];
    double *g = pw_reals_as(&call->tensor[0], self), *x = em_read_reals(self), *w = em_read_reals(weight);
    double *grad = pw_allocate(self->numel, sizeof *grad), *grad_weight = pw_allocate(weight->numel, sizeof *grad_weight);
    int64_t inner = 1;
    for (int d = 2; d < self->ndim; d++) inner *= self->dims[d];
    for (int64_t k = 0; k < self->numel; k++) {
        int64_t channel = weight->numel == 1 ? 0 : k / inner % weight->numel;
        grad[k] = x[k] > 0 ? g[k] : g[k] * w[channel];
        if (!(x[k] > 0)) grad_weight[channel] += g[k] * x[k];
    }
    em_write_reals(&call->tensor[3], grad);
    em_write_reals(&call->tensor[4], grad_weight);
    free(g), free(x), free(w), free(grad), free(grad_weight);
}

EM_OP(aclnnPreluBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *weight, aclTensor *gradInput, aclTensor *gradWeight) {
    EM_BEGIN(aclnnPreluBackward);
    const aclTensor *all[] = {gradOutput, self, weight, gradInput, gradWeight};
    for (int t = 0; t < 5; t++) EM_NOT_NULL(all[t]);
    for (int t = 0; t < 5; t++) EM_REQUIRE(pw_is(all[t]->dtype, D_FLOATS) && all[t]->dtype == self->dtype, "the dtypes differ or are not supported");
    EM_REQUIRE(pw_expands(gradOutput, self), "gradOutput does not broadcast to self");
    EM_REQUIRE(em_same_shape(gradInput, self), "gradInput and self differ in shape");
    EM_REQUIRE(em_same_shape(gradWeight, weight), "gradWeight and weight differ in shape");
    EM_REQUIRE(em_numel(weight) == 1 || (self->ndim > 1 && em_numel(weight) == self->dims[1]), "weight has neither one element nor one for each channel");
    for (int t = 0; t < 5; t++) em_tensor(ex, all[t]);
    return em_ready(ex, prelu_kernel, 0);
}

static void glu_kernel(EmCall *call) {
    const EmTensor *grad = &call->tensor[0], *self = &call->tensor[1];
    int dim = (int)call->integer[0];
    int64_t inner = 1, half = self->dims[dim] / 2;
    for (int d = dim + 1; d < self->ndim; d++) inner *= self->dims[d];
    double *g = em_read_reals(grad), *x = em_read_reals(self), *results = pw_allocate(self->numel, sizeof *results);
    for (int64_t k = 0; k < grad->numel; k++) {
        int64_t outer = k / (half * inner), first = outer * 2 * half * inner + k % (half * inner), second = first + half * inner;
        double gate = pw_sigmoid(x[second]);
        results[first] = g[k] * gate;
        results[second] = g[k] * x[first] * gate * (1 - gate);
    }
    em_write_reals(&call->tensor[2], results);
    free(g), free(x), free(results);
}

EM_OP(aclnnGluBackward, const aclTensor *gradOut, const aclTensor *self, int64_t dim, const aclTensor *out) {
    EM_BEGIN(aclnnGluBackward);
    EM_NOT_NULL(gradOut);
    EM_NOT_NULL(self);
    EM_NOT_NULL(out);
    EM_REQUIRE(pw_is(self->dtype, D_REALS) && gradOut->dtype == self->dtype && out->dtype == self->dtype, "the dtypes differ or are not supported");
    EM_REQUIRE(self->ndim > 0 && dim >= -self->ndim && dim < self->ndim, "dim is out of range");
    if (dim < 0) dim += self->ndim;
    EM_REQUIRE(self->dims[dim] % 2 == 0, "the dimension's size is odd");
    EM_REQUIRE(em_same_shape(out, self), "out and self differ in shape");
    EM_REQUIRE(gradOut->ndim == self->ndim, "gradOut and self differ in their number of dimensions");
    for (int d = 0; d < self->ndim; d++) EM_REQUIRE(gradOut->dims[d] == (d == dim ? self->dims[d] / 2 : self->dims[d]), "gradOut's shape is not that of a half");
    em_tensor(ex, gradOut);
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, dim);
    return em_ready(ex, glu_kernel, 0);
}
