/* Resizing to the nearest element, over one and two dimensions, and its gradient. */

#include "ops_shape.h"

/* Where an output position of the last `spatial` dimensions comes from: floor(at * in / out), in single precision as the documentation's scale is. */
static int64_t nearest(int64_t at, int64_t in, int64_t out, double scale) {
    float step = scale > 0 ? (float)(1 / scale) : (float)in / (float)out;
    int64_t from = (int64_t)floorf((float)at * step);
    return from < in ? from : in - 1;
}

/* For each element of `large`'s shape (resized), its position in `small`. */
static int64_t *sources(const EmTensor *small, const EmTensor *large, int spatial, const double *scales) {
    int64_t *found = es_int64s(large->numel), at[EM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < large->numel; i++, es_next(large->ndim, large->dims, at)) {
        int64_t position = 0;
        for (int d = 0; d < large->ndim; d++) {
            int own = d - (large->ndim - spatial);
            position = position * small->dims[d] + (own < 0 ? at[d] : nearest(at[d], small->dims[d], large->dims[d], scales[own]));
        }
        found[i] = position;
    }
    return found;
}

/* tensors: self, out; integer: how many dimensions are resized. */
static void nearest_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[1];
    double none[2] = {0, 0};
    int64_t *from = sources(self, out, (int)call->integer[0], none);
    size_t bytes = em_item_size(self->dtype);
    char *x = es_pack(self, self->dtype), *y = es_alloc(out->numel, bytes);
    for (int64_t i = 0; i < out->numel; i++) memcpy(y + (size_t)i * bytes, x + (size_t)from[i] * bytes, bytes);
    es_unpack(out, y);
    free(from);
    free(x);
    free(y);
}

/* tensors: gradOut, gradInput; reals: the scales. */
static void nearest_backward_kernel(EmCall *call) {
    const EmTensor *grad = &call->tensor[0], *out = &call->tensor[1];
    int64_t *from = sources(out, grad, 2, call->real);
    double *g = em_read_reals(grad), *sums = es_doubles(out->numel);
    for (int64_t i = 0; i < grad->numel; i++) sums[from[i]] += g[i];
    em_write_reals(out, sums);
    free(from);
    free(g);
    free(sums);
}

static aclnnStatus resized(aclOpExecutor *ex, const aclTensor *self, const aclIntArray *outputSize, aclTensor *out, int spatial) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(outputSize);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_REALS | ES_DT(ACL_UINT8));
    ES_SAME_DTYPE(self, out);
    ES_RANK(self, spatial + 2);
    ES_RANK(out, spatial + 2);
    EM_REQUIRE(outputSize->size == (uint64_t)spatial, "outputSize must have %d numbers", spatial);
    for (int d = 0; d < 2; d++) EM_REQUIRE(self->dims[d] == out->dims[d], "self and out differ in dimension %d", d);
    for (int d = 0; d < spatial; d++) EM_REQUIRE(out->dims[2 + d] == outputSize->values[d], "out does not have outputSize");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, spatial);
    return em_ready(ex, nearest_kernel, 0);
}

EM_OP(aclnnUpsampleNearest1d, const aclTensor *self, const aclIntArray *outputSize, aclTensor *out) {
    EM_BEGIN(aclnnUpsampleNearest1d);
    return resized(ex, self, outputSize, out, 1);
}

EM_OP(aclnnUpsampleNearest2d, const aclTensor *self, const aclIntArray *outputSize, aclTensor *out) {
    EM_BEGIN(aclnnUpsampleNearest2d);
    return resized(ex, self, outputSize, out, 2);
}

EM_OP(aclnnUpsampleNearest2dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, double scalesH, double scalesW,
      aclTensor *gradInput) {
    EM_BEGIN(aclnnUpsampleNearest2dBackward);
    EM_NOT_NULL(gradOut);
    EM_NOT_NULL(outputSize);
    EM_NOT_NULL(inputSize);
    EM_NOT_NULL(gradInput);
    ES_DTYPE(gradOut, ES_REALS);
    ES_SAME_DTYPE(gradOut, gradInput);
    EM_REQUIRE(outputSize->size == 2 && inputSize->size == 4, "outputSize must have 2 numbers, inputSize 4");
    EM_REQUIRE(es_has_shape(gradInput, 4, inputSize->values), "gradInput does not have inputSize");
    EM_REQUIRE(gradOut->ndim == 4 && gradOut->dims[2] == outputSize->values[0] && gradOut->dims[3] == outputSize->values[1], "gradOut does not have outputSize");
    em_tensor(ex, gradOut);
    em_tensor(ex, gradInput);
    em_real(ex, scalesH);
    em_real(ex, scalesW);
    return em_ready(ex, nearest_backward_kernel, 0);
}
