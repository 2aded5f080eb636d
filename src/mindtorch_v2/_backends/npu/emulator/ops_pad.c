/* Padding: with a number, by reflection, by the nearest element. */

#include "ops_shape.h"

typedef enum { CONSTANT, REFLECT, REPLICATE } Mode;

/* Where a padded position comes from; -1: the constant. */
static int64_t origin(int64_t at, int64_t size, Mode mode) {
    if (at >= 0 && at < size) return at;
    if (mode == REPLICATE) return at < 0 ? 0 : size - 1;
    if (mode == REFLECT) return at < 0 ? -at : 2 * (size - 1) - at;
    return -1;
}

/* The first pair of an array is for the last dimension. */
static int64_t before(const EmInts *pad, int ndim, int d) {
    int pair = ndim - 1 - d;
    return 2 * pair < pad->size ? pad->values[2 * pair] : 0;
}

/* For each element of the padded shape, in row-major order: the position in self, or -1. */
static int64_t *origins(const EmTensor *self, const EmTensor *out, const EmInts *pad, Mode mode) {
    int64_t *found = es_alloc(out->numel, sizeof(int64_t)), at[EM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < out->numel; i++, es_next(out->ndim, out->dims, at)) {
        int64_t position = 0;
        for (int d = 0; d < out->ndim && position >= 0; d++) {
            int64_t from = origin(at[d] - before(pad, out->ndim, d), self->dims[d], mode);
            position = from < 0 ? -1 : position * self->dims[d] + from;
        }
        found[i] = position;
    }
    return found;
}

/* tensors: self, out; integer: mode; scalar: the number (of a constant). */
static void pad_kernel(EmCall *call) {
    const EmTensor *self = &call->tensor[0], *out = &call->tensor[1];
    Mode mode = (Mode)call->integer[0];
    int64_t *from = origins(self, out, &call->array[0], mode);
    if (em_is_complex(self->dtype)) {
        double complex *x = em_read_complex(self), *y = es_alloc(out->numel, sizeof *y);
        for (int64_t i = 0; i < out->numel; i++) y[i] = from[i] < 0 ? call->scalar[0].real + call->scalar[0].imag * I : x[from[i]];
        em_write_complex(out, y);
        free(x);
        free(y);
    } else if (es_whole(self->dtype)) {
        int64_t *x = em_read_integers(self), *y = es_alloc(out->numel, sizeof *y);
        for (int64_t i = 0; i < out->numel; i++) {
            const aclScalar *value = call->scalars ? &call->scalar[0] : NULL;
            y[i] = from[i] >= 0 ? x[from[i]] : es_whole(value->dtype) ? value->integer : self->dtype == ACL_BOOL ? value->real != 0 : (int64_t)value->real;
        }
        em_write_integers(out, y);
        free(x);
        free(y);
    } else {
        double *x = em_read_reals(self), *y = es_doubles(out->numel);
        for (int64_t i = 0; i < out->numel; i++) y[i] = from[i] < 0 ? call->scalar[0].real : x[from[i]];
        em_write_reals(out, y);
        free(x);
        free(y);
    }
    free(from);
}

/* tensors: gradOutput, gradInput; integer: mode. What was read several times gets the sum. */
static void pad_backward_kernel(EmCall *call) {
    const EmTensor *grad = &call->tensor[0], *out = &call->tensor[1];
    int64_t *from = origins(out, grad, &call->array[0], (Mode)call->integer[0]);
    double *g = em_read_reals(grad), *sums = es_doubles(out->numel);
    for (int64_t i = 0; i < grad->numel; i++)
        if (from[i] >= 0) sums[from[i]] += g[i];
    em_write_reals(out, sums);
    free(from);
    free(g);
    free(sums);
}

static bool fits(const aclTensor *self, const aclIntArray *pad, const aclTensor *out) {
    if (self->ndim != out->ndim || pad->size % 2 || pad->size > 2 * (uint64_t)self->ndim) return false;
    for (int d = 0; d < self->ndim; d++) {
        uint64_t pair = (uint64_t)(self->ndim - 1 - d);
        int64_t more = 2 * pair < pad->size ? pad->values[2 * pair] + pad->values[2 * pair + 1] : 0;
        if (out->dims[d] != self->dims[d] + more) return false;
    }
    return true;
}

EM_OP(aclnnConstantPadNd, const aclTensor *self, const aclIntArray *pad, const aclScalar *value, aclTensor *out) {
    EM_BEGIN(aclnnConstantPadNd);
    EM_NOT_NULL(self);
    EM_NOT_NULL(pad);
    EM_NOT_NULL(value);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_ANY);
    ES_SAME_DTYPE(self, out);
    EM_REQUIRE(fits(self, pad, out), "out does not have the padded shape");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_array(ex, pad);
    em_scalar(ex, value);
    em_integer(ex, CONSTANT);
    return em_ready(ex, pad_kernel, 0);
}

/* self has the padded dimensions last, and one or two before them. */
static aclnnStatus mirrored(aclOpExecutor *ex, const aclTensor *self, const aclIntArray *padding, aclTensor *out, int spatial, Mode mode) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(padding);
    EM_NOT_NULL(out);
    ES_DTYPE(self, ES_COMMON | ES_COMPLEX);
    ES_SAME_DTYPE(self, out);
    EM_REQUIRE(self->ndim == spatial + 1 || self->ndim == spatial + 2, "self must have %d or %d dimensions", spatial + 1, spatial + 2);
    EM_REQUIRE(padding->size == 2 * (uint64_t)spatial, "padding must have %d numbers", 2 * spatial);
    EM_REQUIRE(fits(self, padding, out), "out does not have the padded shape");
    for (uint64_t i = 0; i < padding->size && mode == REFLECT; i++)
        EM_REQUIRE(padding->values[i] < self->dims[self->ndim - 1 - (int)i / 2], "padding must be smaller than the dimension that it reflects");
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_array(ex, padding);
    em_integer(ex, mode);
    return em_ready(ex, pad_kernel, 0);
}

static aclnnStatus mirrored_backward(aclOpExecutor *ex, const aclTensor *grad, const aclTensor *self, const aclIntArray *padding, aclTensor *out, Mode mode) {
    EM_NOT_NULL(grad);
    EM_NOT_NULL(self);
    EM_NOT_NULL(padding);
    EM_NOT_NULL(out);
    ES_DTYPE(grad, ES_REALS);
    ES_SAME_DTYPE(grad, out);
    ES_SAME_SHAPE(self, out);
    EM_REQUIRE(fits(self, padding, grad), "gradOutput does not have the padded shape");
    em_tensor(ex, grad);
    em_tensor(ex, out);
    em_array(ex, padding);
    em_integer(ex, mode);
    return em_ready(ex, pad_backward_kernel, 0);
}

#define PADS(name, spatial, mode)                                                                               \
    EM_OP(name, const aclTensor *self, const aclIntArray *padding, aclTensor *out) {                            \
        EM_BEGIN(name);                                                                                         \
        return mirrored(ex, self, padding, out, spatial, mode);                                                 \
    }
#define PADS_BACKWARD(name, mode)                                                                                                                \
    EM_OP(name, const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *padding, aclTensor *gradInput) {                          \
        EM_BEGIN(name);                                                                                                                          \
        return mirrored_backward(ex, gradOutput, self, padding, gradInput, mode);                                                                \
    }
PADS(aclnnReflectionPad1d, 1, REFLECT)
PADS(aclnnReflectionPad2d, 2, REFLECT)
PADS(aclnnReplicationPad1d, 1, REPLICATE)
PADS(aclnnReplicationPad2d, 2, REPLICATE)
PADS(aclnnReflectionPad3d, 3, REFLECT)
PADS(aclnnReplicationPad3d, 3, REPLICATE)
PADS_BACKWARD(aclnnReflectionPad1dBackward, REFLECT)
PADS_BACKWARD(aclnnReflectionPad2dBackward, REFLECT)
PADS_BACKWARD(aclnnReflectionPad3dBackward, REFLECT)
PADS_BACKWARD(aclnnReplicationPad1dBackward, REPLICATE)
PADS_BACKWARD(aclnnReplicationPad2dBackward, REPLICATE)
PADS_BACKWARD(aclnnReplicationPad3dBackward, REPLICATE)
