/* Resizing by weighted neighbours over one to three dimensions: nearest exactly, linear, cubic, both with antialiasing; and their gradients.
 *
 * Note [Taps]
 * Along each resized dimension an output position is a weighted sum of a few input positions (its taps), whatever the mode. A result is the sum over all combinations; a gradient
 * goes the same way back.
 */

#include "ops_shape.h"

typedef enum { NEAREST, EXACT, LINEAR, CUBIC, LINEAR_AA, CUBIC_AA } Mode;

typedef struct Taps {
    int count; /* of each output position; unused ones have weight 0 */
    int64_t *index;
    double *weight;
} Taps;

static double cubic(double x, double a) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double filter(double x, Mode mode) {
    if (mode == CUBIC_AA) return cubic(x, -0.5);
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static int64_t clamp(int64_t at, int64_t size) { return at < 0 ? 0 : at >= size ? size - 1 : at; }

/* scale: how many output positions an input position becomes, or 0: the sizes say it. */
static double step_of(int64_t in, int64_t out, double scale, bool align) {
    if (align) return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    return scale > 0 ? 1 / scale : (double)in / (double)out;
}

static void antialiased(Taps *taps, Mode mode, int64_t in, int64_t out, double step) {
    double half = mode == CUBIC_AA ? 2 : 1, support = step >= 1 ? half * step : half, inverse = step >= 1 ? 1 / step : 1;
    taps->count = (int)ceil(support) * 2 + 1;
    taps->index = es_int64s(out * taps->count);
    taps->weight = es_doubles(out * taps->count);
    for (int64_t o = 0; o < out; o++) {
        double center = step * ((double)o + 0.5), total = 0;
        int64_t first = (int64_t)(center - support + 0.5), last = (int64_t)(center + support + 0.5);
        first = first < 0 ? 0 : first;
        last = last > in ? in : last;
        for (int64_t j = 0; j < last - first && j < taps->count; j++) {
            double weight = filter(((double)(j + first) - center + 0.5) * inverse, mode);
            taps->index[o * taps->count + j] = j + first;
            taps->weight[o * taps->count + j] = weight;
            total += weight;
        }
        for (int j = 0; j < taps->count && total != 0; j++) taps->weight[o * taps->count + j] /= total;
    }
}

static Taps taps_of(Mode mode, int64_t in, int64_t out, double scale, bool align) {
    Taps taps = {0};
    double step = step_of(in, out, scale, align);
    if (mode == LINEAR_AA || mode == CUBIC_AA) {
        antialiased(&taps, mode, in, out, step);
        return taps;
    }
    taps.count = mode == CUBIC ? 4 : mode == LINEAR ? 2 : 1;
    taps.index = es_int64s(out * taps.count);
    taps.weight = es_doubles(out * taps.count);
    for (int64_t o = 0; o < out; o++) {
        int64_t *index = taps.index + o * taps.count;
        double *weight = taps.weight + o * taps.count;
        if (mode == NEAREST || mode == EXACT) { /* in single precision, as the documentation's scale is */
            float position = ((float)o + (mode == EXACT ? 0.5f : 0)) * (scale > 0 ? (float)(1 / scale) : (float)in / (float)out);
            index[0] = clamp((int64_t)floorf(position), in);
            weight[0] = 1;
            continue;
        }
        double at = align ? step * (double)o : step * ((double)o + 0.5) - 0.5;
        if (mode == LINEAR && at < 0) at = 0;
        int64_t from = (int64_t)floor(at);
        double part = at - (double)from;
        if (mode == LINEAR) {
            index[0] = clamp(from, in), index[1] = clamp(from + 1, in);
            weight[0] = 1 - part, weight[1] = part;
        } else {
            for (int j = 0; j < 4; j++) {
                index[j] = clamp(from - 1 + j, in);
                weight[j] = cubic(part + 1 - j, -0.75);
            }
        }
    }
    return taps;
}

/* tensors: source, target (gradOut and gradInput, backward); integers: mode, resized dimensions, alignCorners, whether backward; reals: a scale of each dimension. */
static void resize_kernel(EmCall *call) {
    Mode mode = (Mode)call->integer[0];
    int spatial = (int)call->integer[1];
    bool align = call->integer[2], backward = call->integer[3];
    const EmTensor *small = &call->tensor[backward ? 1 : 0], *large = &call->tensor[backward ? 0 : 1];
    Taps taps[3] = {{.count = 1}, {.count = 1}, {.count = 1}};
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
    for (int d = 0; d < spatial; d++) {
        int slot = 3 - spatial + d;
        in[slot] = small->dims[2 + d], out[slot] = large->dims[2 + d];
        taps[slot] = taps_of(mode, in[slot], out[slot], call->real[d], align);
    }
    int64_t planes = small->dims[0] * small->dims[1], inner = in[0] * in[1] * in[2];
    double *x = backward ? es_doubles(small->numel) : em_read_reals(small), *y = backward ? em_read_reals(large) : es_doubles(large->numel);
    int64_t at = 0;
    for (int64_t p = 0; p < planes; p++)
        for (int64_t a = 0; a < out[0]; a++)
            for (int64_t b = 0; b < out[1]; b++)
                for (int64_t c = 0; c < out[2]; c++, at++)
                    for (int i = 0; i < taps[0].count; i++)
                        for (int j = 0; j < taps[1].count; j++)
                            for (int k = 0; k < taps[2].count; k++) {
                                int64_t place = p * inner;
                                double weight = 1;
                                const int64_t position[3] = {a * taps[0].count + i, b * taps[1].count + j, c * taps[2].count + k};
                                const int64_t spread[3] = {in[1] * in[2], in[2], 1};
                                for (int d = 0; d < 3; d++) {
                                    if (!taps[d].weight) continue;
                                    weight *= taps[d].weight[position[d]];
                                    place += taps[d].index[position[d]] * spread[d];
                                }
                                if (weight == 0) continue;
                                if (backward) x[place] += weight * y[at];
                                else y[at] += weight * x[place];
                            }
    em_write_reals(&call->tensor[1], backward ? x : y);
    for (int d = 0; d < 3; d++) free(taps[d].index), free(taps[d].weight);
    free(x);
    free(y);
}

static aclnnStatus resized(aclOpExecutor *ex, const aclTensor *self, const aclIntArray *size, aclTensor *out, Mode mode, int spatial, bool align, const double *scales,
                           uint32_t dtypes) {
    EM_NOT_NULL(self);
    EM_NOT_NULL(size);
    EM_NOT_NULL(out);
    ES_DTYPE(self, dtypes);
    ES_SAME_DTYPE(self, out);
    ES_RANK(self, spatial + 2);
    ES_RANK(out, spatial + 2);
    EM_REQUIRE(size->size == (uint64_t)spatial, "outputSize must have %d numbers", spatial);
    for (int d = 0; d < 2; d++) EM_REQUIRE(self->dims[d] == out->dims[d], "self and out differ in dimension %d", d);
    for (int d = 0; d < spatial; d++) {
        EM_REQUIRE(out->dims[2 + d] == size->values[d], "out does not have outputSize");
        EM_REQUIRE(self->dims[2 + d] > 0 && size->values[d] > 0, "sizes must be positive");
    }
    em_tensor(ex, self);
    em_tensor(ex, out);
    em_integer(ex, mode);
    em_integer(ex, spatial);
    em_integer(ex, align);
    em_integer(ex, 0);
    for (int d = 0; d < spatial; d++) em_real(ex, scales[d]);
    return em_ready(ex, resize_kernel, 0);
}

static aclnnStatus gradient(aclOpExecutor *ex, const aclTensor *grad, const aclIntArray *size, const aclIntArray *input, aclTensor *out, Mode mode, int spatial,
                            bool align, const double *scales, uint32_t dtypes) {
    EM_NOT_NULL(grad);
    EM_NOT_NULL(size);
    EM_NOT_NULL(input);
    EM_NOT_NULL(out);
    ES_DTYPE(grad, dtypes);
    ES_SAME_DTYPE(grad, out);
    ES_RANK(grad, spatial + 2);
    EM_REQUIRE(size->size == (uint64_t)spatial && input->size == (uint64_t)spatial + 2, "outputSize must have %d numbers, inputSize %d", spatial, spatial + 2);
    EM_REQUIRE(es_has_shape(out, spatial + 2, input->values), "the result does not have inputSize");
    for (int d = 0; d < 2; d++) EM_REQUIRE(grad->dims[d] == input->values[d], "gradOut and inputSize differ in dimension %d", d);
    for (int d = 0; d < spatial; d++) EM_REQUIRE(grad->dims[2 + d] == size->values[d], "gradOut does not have outputSize");
    em_tensor(ex, grad);
    em_tensor(ex, out);
    em_integer(ex, mode);
    em_integer(ex, spatial);
    em_integer(ex, align);
    em_integer(ex, 1);
    for (int d = 0; d < spatial; d++) em_real(ex, scales[d]);
    return em_ready(ex, resize_kernel, 0);
}

#define FORWARD(name, mode, spatial, align, dtypes, ...)                                       \
    EM_BEGIN(name);                                                                            \
    const double scales[] = {__VA_ARGS__};                                                     \
    return resized(ex, self, outputSize, out, mode, spatial, align, scales, dtypes);
#define BACKWARD(name, mode, spatial, align, dtypes, ...)                                      \
    EM_BEGIN(name);                                                                            \
    const double scales[] = {__VA_ARGS__};                                                     \
    return gradient(ex, gradOut, outputSize, inputSize, out, mode, spatial, align, scales, dtypes);

EM_OP(aclnnUpsampleNearest1dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, double scales_, aclTensor *out) { BACKWARD(aclnnUpsampleNearest1dBackward, NEAREST, 1, false, ES_REALS, scales_) }
EM_OP(aclnnUpsampleNearest3d, const aclTensor *self, const aclIntArray *outputSize, double scalesD, double scalesH, double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleNearest3d, NEAREST, 3, false, ES_REALS | ES_DT(ACL_UINT8), scalesD, scalesH, scalesW)
}
EM_OP(aclnnUpsampleNearest3dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, double scalesD, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleNearest3dBackward, NEAREST, 3, false, ES_REALS, scalesD, scalesH, scalesW)
}
EM_OP(aclnnUpsampleNearestExact1d, const aclTensor *self, const aclIntArray *outputSize, double scales_, aclTensor *out) { FORWARD(aclnnUpsampleNearestExact1d, EXACT, 1, false, ES_FLOATS, scales_) }
EM_OP(aclnnUpsampleNearestExact1dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, double scales_, aclTensor *out) {
    BACKWARD(aclnnUpsampleNearestExact1dBackward, EXACT, 1, false, ES_FLOATS, scales_)
}
EM_OP(aclnnUpsampleNearestExact2d, const aclTensor *self, const aclIntArray *outputSize, double scalesH, double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleNearestExact2d, EXACT, 2, false, ES_FLOATS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleNearestExact2dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleNearestExact2dBackward, EXACT, 2, false, ES_FLOATS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleNearestExact3d, const aclTensor *self, const aclIntArray *outputSize, double scalesD, double scalesH, double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleNearestExact3d, EXACT, 3, false, ES_REALS | ES_DT(ACL_UINT8), scalesD, scalesH, scalesW)
}
EM_OP(aclnnUpsampleNearestExact3dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, double scalesD, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleNearestExact3dBackward, EXACT, 3, false, ES_REALS, scalesD, scalesH, scalesW)
}
EM_OP(aclnnUpsampleLinear1d, const aclTensor *self, const aclIntArray *outputSize, const bool alignCorners, const double scale, aclTensor *out) {
    FORWARD(aclnnUpsampleLinear1d, LINEAR, 1, alignCorners, ES_REALS, scale)
}
EM_OP(aclnnUpsampleLinear1dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, bool alignCorners, double scales_, aclTensor *out) {
    BACKWARD(aclnnUpsampleLinear1dBackward, LINEAR, 1, alignCorners, ES_REALS, scales_)
}
EM_OP(aclnnUpsampleBilinear2d, const aclTensor *self, const aclIntArray *outputSize, const bool alignCorners, const double scalesH, const double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleBilinear2d, LINEAR, 2, alignCorners, ES_REALS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleBilinear2dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, bool alignCorners, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleBilinear2dBackward, LINEAR, 2, alignCorners, ES_REALS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleBicubic2d, const aclTensor *self, const aclIntArray *outputSize, const bool alignCorners, const double scalesH, const double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleBicubic2d, CUBIC, 2, alignCorners, ES_FLOATS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleBicubic2dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, const bool alignCorners, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleBicubic2dBackward, CUBIC, 2, alignCorners, ES_FLOATS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleTrilinear3d, const aclTensor *self, const aclIntArray *outputSize, bool alignCorners, double scalesD, double scalesH, double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleTrilinear3d, LINEAR, 3, alignCorners, ES_REALS, scalesD, scalesH, scalesW)
}
EM_OP(aclnnUpsampleTrilinear3dBackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, bool alignCorners, double scalesD, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleTrilinear3dBackward, LINEAR, 3, alignCorners, ES_REALS, scalesD, scalesH, scalesW)
}
EM_OP(aclnnUpsampleBilinear2dAA, const aclTensor *self, const aclIntArray *outputSize, bool alignCorners, double scalesH, double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleBilinear2dAA, LINEAR_AA, 2, alignCorners, ES_FLOATS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleBilinear2dAABackward, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, bool alignCorners, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleBilinear2dAABackward, LINEAR_AA, 2, alignCorners, ES_FLOATS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleBicubic2dAA, const aclTensor *self, const aclIntArray *outputSize, const bool alignCorners, const double scalesH, const double scalesW, aclTensor *out) {
    FORWARD(aclnnUpsampleBicubic2dAA, CUBIC_AA, 2, alignCorners, ES_FLOATS, scalesH, scalesW)
}
EM_OP(aclnnUpsampleBicubic2dAAGrad, const aclTensor *gradOut, const aclIntArray *outputSize, const aclIntArray *inputSize, bool alignCorners, double scalesH, double scalesW, aclTensor *out) {
    BACKWARD(aclnnUpsampleBicubic2dAAGrad, CUBIC_AA, 2, alignCorners, ES_FLOATS, scalesH, scalesW)
}
