/* Pooling over two dimensions: averages, maxima with their places, windows that adapt to the output; and their gradients. */

#include "ops_pool.h"

#define POOL_CHECKS(self, out)                                                                                        \
    EM_NOT_NULL(self);                                                                                                \
    EM_NOT_NULL(out);                                                                                                 \
    ES_DTYPE(self, ES_REALS | ES_INTS);                                                                               \
    ES_SAME_DTYPE(self, out);                                                                                         \
    EM_REQUIRE((self)->ndim == 3 || (self)->ndim == 4, "self must have 3 or 4 dimensions, not %d", (self)->ndim);     \
    EM_REQUIRE((self)->ndim == (out)->ndim, "self and out differ in the number of dimensions")

#define ONE_OR_TWO(array) EM_REQUIRE((array)->size == 1 || (array)->size == 2, "%s must have one or two numbers", #array)

EM_OP(aclnnAvgPool2d, const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *strides, const aclIntArray *paddings, const bool ceilMode,
      const bool countIncludePad, const int64_t divisorOverride, const int8_t cubeMathType, aclTensor *out) {
    EM_BEGIN(aclnnAvgPool2d);
    POOL_CHECKS(self, out);
    EM_NOT_NULL(kernelSize);
    EM_NOT_NULL(strides);
    EM_NOT_NULL(paddings);
    ES_CUBE(cubeMathType);
    ONE_OR_TWO(kernelSize);
    ONE_OR_TWO(paddings);
    (void)ceilMode; /* the shape of out has it already */
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_array(ex, kernelSize);
    em_array(ex, strides);
    em_array(ex, paddings);
    em_integer(ex, countIncludePad);
    em_integer(ex, divisorOverride);
    em_integer(ex, false), em_integer(ex, false), em_integer(ex, 2);
    return em_ready(ex, em_pool_average, 0);
}

EM_OP(aclnnAvgPool2dBackward, const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
      const aclIntArray *padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride, int8_t cubeMathType, aclTensor *gradInput) {
    EM_BEGIN(aclnnAvgPool2dBackward);
    POOL_CHECKS(gradOutput, gradInput);
    EM_NOT_NULL(self);
    EM_NOT_NULL(kernelSize);
    EM_NOT_NULL(stride);
    EM_NOT_NULL(padding);
    ES_CUBE(cubeMathType);
    ES_SAME_SHAPE(self, gradInput);
    ONE_OR_TWO(kernelSize);
    ONE_OR_TWO(padding);
    (void)ceilMode;
    em_tensor(ex, gradOutput);
    em_tensor(ex, gradInput);
    em_array(ex, kernelSize);
    em_array(ex, stride);
    em_array(ex, padding);
    em_integer(ex, countIncludePad);
    em_integer(ex, divisorOverride);
    em_integer(ex, true), em_integer(ex, false), em_integer(ex, 2);
    return em_ready(ex, em_pool_average, 0);
}

EM_OP(aclnnAdaptiveAvgPool2d, const aclTensor *self, const aclIntArray *outputSize, aclTensor *out) {
    EM_BEGIN(aclnnAdaptiveAvgPool2d);
    POOL_CHECKS(self, out);
    EM_NOT_NULL(outputSize);
    EM_REQUIRE(outputSize->size == 2, "outputSize must have two numbers");
    for (int d = 0; d < 2; d++) EM_REQUIRE(outputSize->values[d] == out->dims[out->ndim - 2 + d], "out does not have outputSize");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, false), em_integer(ex, 0), em_integer(ex, false), em_integer(ex, true), em_integer(ex, 2);
    return em_ready(ex, em_pool_average, 0);
}

EM_OP(aclnnAdaptiveAvgPool2dBackward, const aclTensor *gradOutput, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnAdaptiveAvgPool2dBackward);
    POOL_CHECKS(gradOutput, out);
    EM_NOT_NULL(self);
    ES_SAME_SHAPE(self, out);
    em_tensor(ex, gradOutput);
    em_tensor(ex, out);
    em_integer(ex, false), em_integer(ex, 0), em_integer(ex, true), em_integer(ex, true), em_integer(ex, 2);
    return em_ready(ex, em_pool_average, 0);
}

EM_OP(aclnnMaxPool2dWithIndices, const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride, const aclIntArray *padding,
      const aclIntArray *dilation, bool ceilMode, aclTensor *out, aclTensor *indices) {
    EM_BEGIN(aclnnMaxPool2dWithIndices);
    POOL_CHECKS(self, out);
    EM_NOT_NULL(kernelSize);
    EM_NOT_NULL(stride);
    EM_NOT_NULL(padding);
    EM_NOT_NULL(dilation);
    EM_NOT_NULL(indices);
    ES_SAME_SHAPE(out, indices);
    EM_REQUIRE(indices->dtype == ACL_INT32, "indices must be int32");
    ONE_OR_TWO(kernelSize);
    ONE_OR_TWO(padding);
    ONE_OR_TWO(dilation);
    for (uint64_t d = 0; d < dilation->size; d++) EM_REQUIRE(dilation->values[d] == 1, "dilation must be 1");
    (void)ceilMode;
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_tensor(ex, indices);
    em_array(ex, kernelSize);
    em_array(ex, stride);
    em_array(ex, padding);
    em_array(ex, dilation);
    em_integer(ex, 2), em_integer(ex, false);
    return em_ready(ex, em_pool_maximum, 0);
}

EM_OP(aclnnMaxPool2dWithIndicesBackward, const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices, const aclIntArray *kernelSize,
      const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput) {
    EM_BEGIN(aclnnMaxPool2dWithIndicesBackward);
    POOL_CHECKS(gradOutput, gradInput);
    EM_NOT_NULL(self);
    EM_NOT_NULL(indices);
    EM_NOT_NULL(kernelSize);
    EM_NOT_NULL(stride);
    EM_NOT_NULL(padding);
    EM_NOT_NULL(dilation);
    ES_SAME_SHAPE(gradOutput, indices);
    ES_SAME_SHAPE(self, gradInput);
    EM_REQUIRE(indices->dtype == ACL_INT32, "indices must be int32");
    (void)ceilMode;
    em_tensor(ex, gradOutput);
    em_tensor(ex, indices);
    em_tensor(ex, gradInput);
    em_integer(ex, 2), em_integer(ex, false);
    return em_ready(ex, em_pool_placed, 0);
}
