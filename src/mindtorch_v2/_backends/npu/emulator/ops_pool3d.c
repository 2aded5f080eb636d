/* Pooling over three dimensions, maxima in windows that adapt to the output over two and three, and what undoes pooling; with gradients. */

#include "ops_pool.h"

#define POOLED(self, out, spatial)                                                                                                   \
    EM_NOT_NULL(self);                                                                                                               \
    EM_NOT_NULL(out);                                                                                                                \
    ES_DTYPE(self, ES_REALS);                                                                                                        \
    ES_SAME_DTYPE(self, out);                                                                                                        \
    EM_REQUIRE((self)->ndim == (spatial) + 1 || (self)->ndim == (spatial) + 2, "%s must have %d or %d dimensions", #self, (spatial) + 1, (spatial) + 2); \
    EM_REQUIRE((self)->ndim == (out)->ndim, "%s and %s differ in dimensions", #self, #out);                                         \
    for (int d = 0; d < (self)->ndim - (spatial); d++) EM_REQUIRE((self)->dims[d] == (out)->dims[d], "%s and %s differ in dimension %d", #self, #out, d);

static int64_t number(const aclIntArray *array, int d) { return array->values[array->size == 1 ? 0 : d]; }

static aclnnStatus check_windows(aclOpExecutor *ex, const aclIntArray *kernel, const aclIntArray *stride, const aclIntArray *padding, const aclTensor *in,
                                 const aclTensor *out, const aclIntArray *dilation, bool ceil_mode) {
    EM_NOT_NULL(kernel);
    EM_NOT_NULL(stride);
    EM_NOT_NULL(padding);
    EM_REQUIRE(kernel->size == 1 || kernel->size == 3, "kernelSize must have 1 or 3 numbers");
    EM_REQUIRE(stride->size <= 1 || stride->size == 3, "stride must have 0, 1 or 3 numbers");
    EM_REQUIRE(padding->size == 1 || padding->size == 3, "padding must have 1 or 3 numbers");
    for (int d = 0; d < 3; d++) {
        int64_t k = number(kernel, d), s = stride->size ? number(stride, d) : k, p = number(padding, d), e = dilation ? number(dilation, d) : 1;
        EM_REQUIRE(k > 0 && s > 0 && p >= 0 && 2 * p <= k && e > 0, "a window of %lld with stride %lld and padding %lld", (long long)k, (long long)s, (long long)p);
        int64_t size = in->dims[in->ndim - 3 + d], reach = size + 2 * p - e * (k - 1) - 1, wanted = (reach + (ceil_mode ? s - 1 : 0)) / s + 1;
        if (ceil_mode && (wanted - 1) * s >= size + p) wanted--;
        EM_REQUIRE(reach >= 0 && out->dims[out->ndim - 3 + d] == wanted, "dimension %d of the output must be %lld", d, (long long)wanted);
    }
    em_array(ex, kernel);
    em_array(ex, stride);
    em_array(ex, padding);
    if (dilation) em_array(ex, dilation);
    return 0;
}

#define TRIED(expression) do { aclnnStatus tried = (expression); if (tried) return tried; } while (0)

static aclnnStatus averaged(aclOpExecutor *ex, const aclTensor *first, aclTensor *second, bool include, int64_t divisor, bool backward, bool adaptive) {
    em_tensor(ex, first);
    em_tensor(ex, second);
    em_integer(ex, include);
    em_integer(ex, divisor);
    em_integer(ex, backward);
    em_integer(ex, adaptive);
    em_integer(ex, 3);
    return em_ready(ex, em_pool_average, 0);
}

EM_OP(aclnnAvgPool3d, const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding, bool ceilMode, bool countIncludePad,
      int64_t divisorOverride, aclTensor *out) {
    EM_BEGIN(aclnnAvgPool3d);
    POOLED(self, out, 3)
    TRIED(check_windows(ex, kernelSize, stride, padding, self, out, NULL, ceilMode));
    return averaged(ex, self, out, countIncludePad, divisorOverride, false, false);
}

EM_OP(aclnnAvgPool3dBackward, const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
      bool ceilMode, bool countIncludePad, int64_t divisorOverride, aclTensor *output) {
    EM_BEGIN(aclnnAvgPool3dBackward);
    POOLED(gradOutput, output, 3)
    EM_NOT_NULL(self);
    ES_SAME_SHAPE(self, output);
    TRIED(check_windows(ex, kernelSize, stride, padding, output, gradOutput, NULL, ceilMode));
    return averaged(ex, gradOutput, output, countIncludePad, divisorOverride, true, false);
}

EM_OP(aclnnAdaptiveAvgPool3d, const aclTensor *self, const aclIntArray *outputSize, aclTensor *out) {
    EM_BEGIN(aclnnAdaptiveAvgPool3d);
    POOLED(self, out, 3)
    EM_NOT_NULL(outputSize);
    EM_REQUIRE(outputSize->size == 3, "outputSize must have 3 numbers");
    for (int d = 0; d < 3; d++) EM_REQUIRE(out->dims[out->ndim - 3 + d] == outputSize->values[d], "out does not have outputSize");
    return averaged(ex, self, out, false, 0, false, true);
}

EM_OP(aclnnAdaptiveAvgPool3dBackward, const aclTensor *gradOutput, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnAdaptiveAvgPool3dBackward);
    POOLED(gradOutput, out, 3)
    EM_NOT_NULL(self);
    ES_SAME_SHAPE(self, out);
    return averaged(ex, gradOutput, out, false, 0, true, true);
}

static aclnnStatus maxima(aclOpExecutor *ex, const aclTensor *self, aclTensor *out, aclTensor *indices, int spatial, bool adaptive, uint32_t index_dtypes) {
    EM_NOT_NULL(indices);
    ES_SAME_SHAPE(out, indices);
    ES_DTYPE(indices, index_dtypes);
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_tensor(ex, indices);
    em_integer(ex, spatial);
    em_integer(ex, adaptive);
    return em_ready(ex, em_pool_maximum, 0);
}

EM_OP(aclnnMaxPool3dWithArgmax, const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
      const aclIntArray *dilation, bool ceilMode, aclTensor *out, aclTensor *indices) {
    EM_BEGIN(aclnnMaxPool3dWithArgmax);
    POOLED(self, out, 3)
    EM_NOT_NULL(dilation);
    TRIED(check_windows(ex, kernelSize, stride, padding, self, out, dilation, ceilMode));
    return maxima(ex, self, out, indices, 3, false, ES_DT(ACL_INT32));
}

#define ADAPTIVE_MAXIMA(name, spatial)                                                                                                      \
    EM_OP(name, const aclTensor *self, const aclIntArray *outputSize, aclTensor *outputOut, aclTensor *indicesOut) {                         \
        EM_BEGIN(name);                                                                                                                     \
        POOLED(self, outputOut, spatial)                                                                                                    \
        EM_NOT_NULL(outputSize);                                                                                                            \
        EM_REQUIRE(outputSize->size == spatial, "outputSize must have %d numbers", spatial);                                                \
        for (int d = 0; d < spatial; d++)                                                                                                   \
            EM_REQUIRE(outputOut->dims[outputOut->ndim - spatial + d] == outputSize->values[d], "outputOut does not have outputSize");     \
        return maxima(ex, self, outputOut, indicesOut, spatial, true, ES_INDICES);                                                          \
    }
ADAPTIVE_MAXIMA(aclnnAdaptiveMaxPool2d, 2)
ADAPTIVE_MAXIMA(aclnnAdaptiveMaxPool3d, 3)

static aclnnStatus placed(aclOpExecutor *ex, const aclTensor *values, const aclTensor *indices, aclTensor *out, int spatial, bool set) {
    EM_NOT_NULL(indices);
    ES_DTYPE(indices, ES_INDICES);
    ES_SAME_SHAPE(values, indices);
    em_tensor(ex, values);
    em_tensor(ex, indices);
    em_tensor(ex, out);
    em_integer(ex, spatial);
    em_integer(ex, set);
    return em_ready(ex, em_pool_placed, 0);
}

#define MAXIMA_BACKWARD(name, spatial)                                                                                                      \
    EM_OP(name, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices, aclTensor *gradInput) {            \
        EM_BEGIN(name);                                                                                                                     \
        POOLED(gradOutput, gradInput, spatial)                                                                                              \
        EM_NOT_NULL(self);                                                                                                                  \
        ES_SAME_SHAPE(self, gradInput);                                                                                                     \
        return placed(ex, gradOutput, indices, gradInput, spatial, false);                                                                  \
    }
MAXIMA_BACKWARD(aclnnAdaptiveMaxPool2dBackward, 2)
MAXIMA_BACKWARD(aclnnAdaptiveMaxPool3dBackward, 3)

EM_OP(aclnnMaxPool3dWithArgmaxBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices, const aclIntArray *kernelSize,
      const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput) {
    EM_BEGIN(aclnnMaxPool3dWithArgmaxBackward);
    POOLED(gradOutput, gradInput, 3)
    EM_NOT_NULL(self);
    EM_NOT_NULL(dilation);
    ES_SAME_SHAPE(self, gradInput);
    TRIED(check_windows(ex, kernelSize, stride, padding, gradInput, gradOutput, dilation, ceilMode));
    return placed(ex, gradOutput, indices, gradInput, 3, false);
}

EM_OP(aclnnMaxUnpool2d, const aclTensor *self, const aclTensor *indices, const aclIntArray *outputSize, aclTensor *out) {
    EM_BEGIN(aclnnMaxUnpool2d);
    POOLED(self, out, 2)
    EM_NOT_NULL(outputSize);
    EM_REQUIRE(outputSize->size == 2, "outputSize must have 2 numbers");
    return placed(ex, self, indices, out, 2, true);
}

EM_OP(aclnnMaxUnpool3d, const aclTensor *self, const aclTensor *indices, const aclIntArray *outputSize, const aclIntArray *stride, const aclIntArray *padding,
      aclTensor *outRef) {
    EM_BEGIN(aclnnMaxUnpool3d);
    POOLED(self, outRef, 3)
    EM_NOT_NULL(outputSize);
    EM_NOT_NULL(stride);
    EM_NOT_NULL(padding);
    EM_REQUIRE(outputSize->size == 3 && stride->size == 3 && padding->size == 3, "outputSize, stride and padding must have 3 numbers");
    return placed(ex, self, indices, outRef, 3, true);
}
