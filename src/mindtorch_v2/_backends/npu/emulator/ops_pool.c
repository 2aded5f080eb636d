/* Pooling over two dimensions: averages, maxima with their places, windows that adapt to the output; and their gradients. In double. */

#include "ops_shape.h"

/* Sizes of a batch of planes: inputs of 3 or 4 dimensions have them last. */
typedef struct Planes { int64_t count, height, width; } Planes;

static Planes planes_of(const EmTensor *t) {
    Planes p = {es_product(t->dims, 0, t->ndim - 2), t->dims[t->ndim - 2], t->dims[t->ndim - 1]};
    return p;
}

typedef struct Window { int64_t kernel[2], stride[2], padding[2], dilation[2]; } Window;

/* One number of an array stands for both; an empty stride means the kernel's size. */
static void pair(const EmInts *array, const int64_t *otherwise, int64_t *into) {
    for (int d = 0; d < 2; d++) into[d] = array->size == 0 ? otherwise[d] : array->values[array->size == 1 ? 0 : d];
}

/* arrays: kernel, stride, padding[, dilation]. */
static Window window_of(const EmCall *call) {
    Window w = {.dilation = {1, 1}};
    int64_t none[2] = {0, 0};
    pair(&call->array[0], none, w.kernel);
    pair(&call->array[1], w.kernel, w.stride);
    pair(&call->array[2], none, w.padding);
    if (call->arrays > 3) pair(&call->array[3], w.dilation, w.dilation);
    return w;
}

/* Average of one window: its bounds inside the image, and what its sum is divided by. integers: countIncludePad, divisorOverride. */
typedef struct Range { int64_t from[2], to[2]; double divisor; } Range;

static Range range_at(const Window *w, const int64_t *size, int64_t y, int64_t x, bool include, int64_t divisor) {
    Range r;
    int64_t at[2] = {y, x}, all = 1, inside = 1;
    for (int d = 0; d < 2; d++) {
        int64_t from = at[d] * w->stride[d] - w->padding[d], to = from + w->kernel[d];
        if (to > size[d] + w->padding[d]) to = size[d] + w->padding[d];
        all *= to - from;
        r.from[d] = from < 0 ? 0 : from;
        r.to[d] = to > size[d] ? size[d] : to;
        inside *= r.to[d] - r.from[d];
    }
    r.divisor = divisor ? (double)divisor : include ? (double)all : (double)inside;
    return r;
}

/* tensors: self (or gradOutput), out (or gradInput); integers: countIncludePad, divisorOverride, whether backward. */
static void average_kernel(EmCall *call) {
    bool backward = call->integer[2];
    const EmTensor *large = &call->tensor[backward ? 1 : 0], *small = &call->tensor[backward ? 0 : 1];
    Planes in = planes_of(large), out = planes_of(small);
    Window w = window_of(call);
    int64_t size[2] = {in.height, in.width};
    double *image = backward ? es_doubles(large->numel) : em_read_reals(large), *grid = backward ? em_read_reals(small) : es_doubles(small->numel);
    for (int64_t p = 0; p < out.count; p++)
        for (int64_t y = 0; y < out.height; y++)
            for (int64_t x = 0; x < out.width; x++) {
                Range r = range_at(&w, size, y, x, call->integer[0], call->integer[1]);
                double *cell = &grid[(p * out.height + y) * out.width + x], sum = 0;
                for (int64_t i = r.from[0]; i < r.to[0]; i++)
                    for (int64_t j = r.from[1]; j < r.to[1]; j++) {
                        double *pixel = &image[(p * in.height + i) * in.width + j];
                        if (backward) *pixel += *cell / r.divisor;
                        else sum += *pixel;
                    }
                if (!backward) *cell = sum / r.divisor;
            }
    em_write_reals(&call->tensor[1], backward ? image : grid);
    free(image);
    free(grid);
}

/* tensors: self, out; integer: whether backward (then gradOutput, gradInput). */
static void adaptive_kernel(EmCall *call) {
    bool backward = call->integer[0];
    const EmTensor *large = &call->tensor[backward ? 1 : 0], *small = &call->tensor[backward ? 0 : 1];
    Planes in = planes_of(large), out = planes_of(small);
    double *image = backward ? es_doubles(large->numel) : em_read_reals(large), *grid = backward ? em_read_reals(small) : es_doubles(small->numel);
    for (int64_t p = 0; p < out.count; p++)
        for (int64_t y = 0; y < out.height; y++)
            for (int64_t x = 0; x < out.width; x++) {
                int64_t top = y * in.height / out.height, bottom = ((y + 1) * in.height + out.height - 1) / out.height;
                int64_t left = x * in.width / out.width, right = ((x + 1) * in.width + out.width - 1) / out.width;
                double *cell = &grid[(p * out.height + y) * out.width + x], sum = 0, count = (double)((bottom - top) * (right - left));
                for (int64_t i = top; i < bottom; i++)
                    for (int64_t j = left; j < right; j++) {
                        double *pixel = &image[(p * in.height + i) * in.width + j];
                        if (backward) *pixel += *cell / count;
                        else sum += *pixel;
                    }
                if (!backward) *cell = sum / count;
            }
    em_write_reals(&call->tensor[1], backward ? image : grid);
    free(image);
    free(grid);
}

/* tensors: self, out, indices. The first maximum of a window wins; NaN is larger than all. */
static void maximum_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0];
    Planes in = planes_of(self), out = planes_of(&call->tensor[1]);
    Window w = window_of(call);
    double *x = em_read_reals(self), *values = es_doubles(call->tensor[1].numel);
    int64_t *places = es_alloc(call->tensor[1].numel, sizeof *places), at = 0;
    for (int64_t p = 0; p < out.count; p++)
        for (int64_t i = 0; i < out.height; i++)
            for (int64_t j = 0; j < out.width; j++, at++) {
                bool found = false;
                for (int64_t a = 0; a < w.kernel[0]; a++)
                    for (int64_t b = 0; b < w.kernel[1]; b++) {
                        int64_t y = i * w.stride[0] - w.padding[0] + a * w.dilation[0], z = j * w.stride[1] - w.padding[1] + b * w.dilation[1];
                        if (y < 0 || y >= in.height || z < 0 || z >= in.width) continue;
                        double value = x[(p * in.height + y) * in.width + z];
                        if (!found || value > values[at] || isnan(value)) {
                            values[at] = value;
                            places[at] = y * in.width + z;
                            found = true;
                        }
                    }
            }
    em_write_reals(&call->tensor[1], values);
    em_write_integers(&call->tensor[2], places);
    free(x);
    free(values);
    free(places);
}

/* tensors: gradOutput, indices, gradInput. */
static void maximum_backward_kernel(EmCall *call) {
    Planes in = planes_of(&call->tensor[2]), out = planes_of(&call->tensor[0]);
    double *grad = em_read_reals(&call->tensor[0]), *sums = es_doubles(call->tensor[2].numel);
    int64_t *places = em_read_integers(&call->tensor[1]), pixels = in.height * in.width, cells = out.height * out.width;
    for (int64_t i = 0; i < call->tensor[0].numel; i++) {
        if (places[i] < 0 || places[i] >= pixels) {
            em_kernel_failed(call, ES_INDEX_ERROR, "an index is out of range: %lld of %lld", (long long)places[i], (long long)pixels);
            break;
        }
        sums[i / cells * pixels + places[i]] += grad[i];
    }
    em_write_reals(&call->tensor[2], sums);
    free(grad);
    free(sums);
    free(places);
}

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
    em_integer(ex, false);
    return em_ready(ex, average_kernel, 0);
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
    em_integer(ex, true);
    return em_ready(ex, average_kernel, 0);
}

EM_OP(aclnnAdaptiveAvgPool2d, const aclTensor *self, const aclIntArray *outputSize, aclTensor *out) {
    EM_BEGIN(aclnnAdaptiveAvgPool2d);
    POOL_CHECKS(self, out);
    EM_NOT_NULL(outputSize);
    EM_REQUIRE(outputSize->size == 2, "outputSize must have two numbers");
    for (int d = 0; d < 2; d++) EM_REQUIRE(outputSize->values[d] == out->dims[out->ndim - 2 + d], "out does not have outputSize");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, false);
    return em_ready(ex, adaptive_kernel, 0);
}

EM_OP(aclnnAdaptiveAvgPool2dBackward, const aclTensor *gradOutput, const aclTensor *self, aclTensor *out) {
    EM_BEGIN(aclnnAdaptiveAvgPool2dBackward);
    POOL_CHECKS(gradOutput, out);
    EM_NOT_NULL(self);
    ES_SAME_SHAPE(self, out);
    em_tensor(ex, gradOutput);
    em_tensor(ex, out);
    em_integer(ex, true);
    return em_ready(ex, adaptive_kernel, 0);
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
    return em_ready(ex, maximum_kernel, 0);
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
    return em_ready(ex, maximum_backward_kernel, 0);
}
