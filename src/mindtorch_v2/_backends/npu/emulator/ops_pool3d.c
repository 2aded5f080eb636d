/* Pooling over three dimensions, maxima in windows that adapt to the output over two and three, and what undoes pooling; with gradients. In double. */

#include "ops_shape.h"

/* Inputs have the pooled dimensions last; those of two are seen with a depth of 1. */
typedef struct Volumes { int64_t count, size[3]; } Volumes;

static Volumes volumes_of(const EmTensor *t, int spatial) {
    Volumes v = {es_product(t->dims, 0, t->ndim - spatial), {1, 1, 1}};
    for (int d = 0; d < spatial; d++) v.size[3 - spatial + d] = t->dims[t->ndim - spatial + d];
    return v;
}

typedef struct Window { int64_t kernel[3], stride[3], padding[3], dilation[3]; } Window;

static void triple(const EmInts *array, const int64_t *otherwise, int64_t *into) {
    for (int d = 0; d < 3; d++) into[d] = array->size == 0 ? otherwise[d] : array->values[array->size == 1 ? 0 : d];
}

/* arrays: kernel, stride, padding[, dilation]. */
static Window window_of(const EmCall *call) {
    Window w = {.dilation = {1, 1, 1}};
    int64_t none[3] = {0, 0, 0};
    triple(&call->array[0], none, w.kernel);
    triple(&call->array[1], w.kernel, w.stride);
    triple(&call->array[2], none, w.padding);
    if (call->arrays > 3) triple(&call->array[3], w.dilation, w.dilation);
    return w;
}

typedef struct Range { int64_t from[3], to[3]; double divisor; } Range;

static Range fixed_range(const Window *w, const int64_t *size, const int64_t *at, bool include, int64_t divisor) {
    Range r;
    int64_t all = 1, inside = 1;
    for (int d = 0; d < 3; d++) {
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

static Range adaptive_range(const int64_t *in, const int64_t *out, const int64_t *at) {
    Range r = {.divisor = 1};
    for (int d = 0; d < 3; d++) {
        r.from[d] = at[d] * in[d] / out[d];
        r.to[d] = ((at[d] + 1) * in[d] + out[d] - 1) / out[d];
        r.divisor *= (double)(r.to[d] - r.from[d]);
    }
    return r;
}

/* tensors: self, out (backward: gradOutput, gradInput); integers: countIncludePad, divisorOverride, whether backward, whether adaptive. */
static void average_kernel(EmCall *call) {
    bool backward = call->integer[2], adaptive = call->integer[3];
    const EmTensor *large = &call->tensor[backward ? 1 : 0], *small = &call->tensor[backward ? 0 : 1];
    Volumes in = volumes_of(large, 3), out = volumes_of(small, 3);
    Window w = adaptive ? (Window){0} : window_of(call);
    double *image = backward ? es_doubles(large->numel) : em_read_reals(large), *grid = backward ? em_read_reals(small) : es_doubles(small->numel);
    int64_t cell = 0, at[3];
    for (int64_t p = 0; p < out.count; p++)
        for (at[0] = 0; at[0] < out.size[0]; at[0]++)
            for (at[1] = 0; at[1] < out.size[1]; at[1]++)
                for (at[2] = 0; at[2] < out.size[2]; at[2]++, cell++) {
                    Range r = adaptive ? adaptive_range(in.size, out.size, at) : fixed_range(&w, in.size, at, call->integer[0], call->integer[1]);
                    double sum = 0;
                    for (int64_t i = r.from[0]; i < r.to[0]; i++)
                        for (int64_t j = r.from[1]; j < r.to[1]; j++)
                            for (int64_t k = r.from[2]; k < r.to[2]; k++) {
                                double *pixel = &image[((p * in.size[0] + i) * in.size[1] + j) * in.size[2] + k];
                                if (backward) *pixel += grid[cell] / r.divisor;
                                else sum += *pixel;
                            }
                    if (!backward) grid[cell] = sum / r.divisor;
                }
    em_write_reals(&call->tensor[1], backward ? image : grid);
    free(image);
    free(grid);
}

/* tensors: self, out, indices; integers: pooled dimensions, whether adaptive. The first maximum of a window wins; NaN is larger than all. */
static void maximum_kernel(EmCall *call) {
    int spatial = (int)call->integer[0];
    bool adaptive = call->integer[1];
    Volumes in = volumes_of(&call->tensor[0], spatial), out = volumes_of(&call->tensor[1], spatial);
    Window w = adaptive ? (Window){.dilation = {1, 1, 1}} : window_of(call);
    double *x = em_read_reals(&call->tensor[0]), *values = es_doubles(call->tensor[1].numel);
    int64_t *places = es_int64s(call->tensor[1].numel), cell = 0, at[3];
    for (int64_t p = 0; p < out.count; p++)
        for (at[0] = 0; at[0] < out.size[0]; at[0]++)
            for (at[1] = 0; at[1] < out.size[1]; at[1]++)
                for (at[2] = 0; at[2] < out.size[2]; at[2]++, cell++) {
                    int64_t from[3], count[3];
                    Range r = adaptive ? adaptive_range(in.size, out.size, at) : (Range){0};
                    for (int d = 0; d < 3; d++) {
                        from[d] = adaptive ? r.from[d] : at[d] * w.stride[d] - w.padding[d];
                        count[d] = adaptive ? r.to[d] - r.from[d] : w.kernel[d];
                    }
                    bool found = false;
                    for (int64_t a = 0; a < count[0]; a++)
                        for (int64_t b = 0; b < count[1]; b++)
                            for (int64_t c = 0; c < count[2]; c++) {
                                int64_t i = from[0] + a * w.dilation[0], j = from[1] + b * w.dilation[1], k = from[2] + c * w.dilation[2];
                                if (i < 0 || i >= in.size[0] || j < 0 || j >= in.size[1] || k < 0 || k >= in.size[2]) continue;
                                int64_t place = (i * in.size[1] + j) * in.size[2] + k;
                                double value = x[p * in.size[0] * in.size[1] * in.size[2] + place];
                                if (!found || value > values[cell] || isnan(value)) {
                                    values[cell] = value;
                                    places[cell] = place;
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

/* tensors: gradOutput, indices, gradInput; integers: pooled dimensions, whether elements are set and not added. Indices count within a volume. */
static void placed_kernel(EmCall *call) {
    int spatial = (int)call->integer[0];
    Volumes in = volumes_of(&call->tensor[2], spatial), out = volumes_of(&call->tensor[0], spatial);
    double *grad = em_read_reals(&call->tensor[0]), *sums = es_doubles(call->tensor[2].numel);
    int64_t *places = em_read_integers(&call->tensor[1]), pixels = in.size[0] * in.size[1] * in.size[2], cells = out.size[0] * out.size[1] * out.size[2];
    for (int64_t i = 0; i < call->tensor[0].numel; i++) {
        if (places[i] < 0 || places[i] >= pixels) {
            em_kernel_failed(call, ES_INDEX_ERROR, "an index is out of range: %lld of %lld", (long long)places[i], (long long)pixels);
            break;
        }
        double *sum = &sums[i / cells * pixels + places[i]];
        *sum = call->integer[1] ? grad[i] : *sum + grad[i];
    }
    em_write_reals(&call->tensor[2], sums);
    free(grad);
    free(sums);
    free(places);
}

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
    return em_ready(ex, average_kernel, 0);
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
    return em_ready(ex, maximum_kernel, 0);
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
    return em_ready(ex, placed_kernel, 0);
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
