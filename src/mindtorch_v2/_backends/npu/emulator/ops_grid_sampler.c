/* Sampling of images and volumes at the points of a grid, and its gradients. */

#include "ops_shape.h"

enum { BILINEAR, NEAREST, BICUBIC };
enum { ZEROS, BORDER, REFLECTION };

typedef struct Sampler {
    int dims, mode, padding;
    bool align;
    int64_t batch, channels, in[3], out; /* sizes of the input, last dimension first; points of one example */
} Sampler;

/* A coordinate as it lies in the input, and the derivative of that. */
typedef struct Place { double at, slope; } Place;

static Place clipped(Place p, int64_t size) {
    if (p.at <= 0) return (Place){0, 0};
    if (p.at >= (double)(size - 1)) return (Place){(double)(size - 1), 0};
    return p;
}

static Place reflected(Place p, int64_t size, bool align) {
    double low = align ? 0 : -0.5, span = align ? (double)(size - 1) : (double)size;
    if (span == 0) return (Place){0, 0};
    double at = p.at - low, sign = 1;
    if (at < 0) at = -at, sign = -1;
    double extra = fmod(at, span);
    bool flipped = fmod(floor(at / span), 2) != 0;
    return (Place){(flipped ? span - extra : extra) + low, p.slope * (flipped ? -sign : sign)};
}

static Place padded(Place p, int64_t size, const Sampler *s) {
    if (s->padding == BORDER) p = clipped(p, size);
    if (s->padding == REFLECTION) p = clipped(reflected(p, size, s->align), size);
    if (!isfinite(p.at) || fabs(p.at) > 2e9) p.at = -100;
    return p;
}

static Place placed(double coordinate, int64_t size, const Sampler *s, bool pad) {
    Place p = s->align ? (Place){(coordinate + 1) / 2 * (double)(size - 1), (double)(size - 1) / 2}
                       : (Place){((coordinate + 1) * (double)size - 1) / 2, (double)size / 2};
    return pad ? padded(p, size, s) : p;
}

static double cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static double cubic_slope(double x) {
    const double a = -0.75;
    double size = fabs(x), slope = size <= 1 ? (3 * (a + 2) * size - 2 * (a + 3)) * size : (3 * a * size - 10 * a) * size + 8 * a;
    return x < 0 ? -slope : slope;
}

/* Along one dimension: positions, weights and the weights' derivatives (by the grid's coordinate). A position of -1 counts for nothing. */
typedef struct Taps { int count; int64_t at[4]; double weight[4], slope[4]; } Taps;

static int64_t inside(double at, int64_t size) { return at >= 0 && at < (double)size ? (int64_t)at : -1; }

static Taps taps_of(double coordinate, int64_t size, const Sampler *s) {
    Taps t = {0};
    if (s->mode == BICUBIC) {
        Place p = placed(coordinate, size, s, false);
        if (!isfinite(p.at) || fabs(p.at) > 2e9) p.at = -100;
        double from = floor(p.at);
        t.count = 4;
        for (int k = 0; k < 4; k++) {
            double whole = from - 1 + k;
            t.at[k] = inside(padded((Place){whole, 1}, size, s).at, size);
            t.weight[k] = cubic(p.at - whole);
            t.slope[k] = cubic_slope(p.at - whole) * p.slope;
        }
        return t;
    }
    Place p = placed(coordinate, size, s, true);
    if (s->mode == NEAREST) {
        t.count = 1;
        t.at[0] = inside(nearbyint(p.at), size);
        t.weight[0] = 1;
        return t;
    }
    double from = floor(p.at);
    t.count = 2;
    t.at[0] = inside(from, size), t.at[1] = inside(from + 1, size);
    t.weight[1] = p.at - from, t.weight[0] = 1 - t.weight[1];
    t.slope[0] = -p.slope, t.slope[1] = p.slope;
    return t;
}

/* tensors: input, grid, out; or gradOutput, input, grid, inputGrad, gridGrad. integers: dimensions, mode, padding, alignCorners, whether backward. */
static void sample_kernel(EmCall *call) {
    bool backward = call->integer[4];
    const EmTensor *input = &call->tensor[backward ? 1 : 0], *grid = &call->tensor[backward ? 2 : 1];
    Sampler s = {(int)call->integer[0], (int)call->integer[1], (int)call->integer[2], call->integer[3], input->dims[0], input->dims[1], {1, 1, 1}, 1};
    for (int d = 0; d < s.dims; d++) {
        s.in[d] = input->dims[input->ndim - 1 - d];
        s.out *= grid->dims[1 + d];
    }
    int64_t volume = s.in[0] * s.in[1] * s.in[2];
    double *x = em_read_reals(input), *points = em_read_reals(grid), *grad = backward ? em_read_reals(&call->tensor[0]) : NULL;
    double *y = es_doubles(s.batch * s.channels * s.out), *to_input = es_doubles(input->numel), *to_grid = es_doubles(grid->numel);
    for (int64_t n = 0; n < s.batch; n++)
        for (int64_t o = 0; o < s.out; o++) {
            const double *point = points + (n * s.out + o) * s.dims;
            Taps t[3] = {{.count = 1, .weight = {1}}, {.count = 1, .weight = {1}}, {.count = 1, .weight = {1}}};
            for (int d = 0; d < s.dims; d++) t[d] = taps_of(point[d], s.in[d], &s);
            for (int i = 0; i < t[2].count; i++)
                for (int j = 0; j < t[1].count; j++)
                    for (int k = 0; k < t[0].count; k++) {
                        if (t[2].at[i] < 0 || t[1].at[j] < 0 || t[0].at[k] < 0) continue;
                        int64_t place = (t[2].at[i] * s.in[1] + t[1].at[j]) * s.in[0] + t[0].at[k];
                        double weight = t[2].weight[i] * t[1].weight[j] * t[0].weight[k];
                        for (int64_t c = 0; c < s.channels; c++) {
                            int64_t from = (n * s.channels + c) * volume + place, to = (n * s.channels + c) * s.out + o;
                            if (!backward) {
                                y[to] += weight * x[from];
                                continue;
                            }
                            to_input[from] += weight * grad[to];
                            double *slopes = to_grid + (n * s.out + o) * s.dims, value = x[from] * grad[to];
                            slopes[0] += value * t[2].weight[i] * t[1].weight[j] * t[0].slope[k];
                            slopes[1] += value * t[2].weight[i] * t[1].slope[j] * t[0].weight[k];
                            if (s.dims == 3) slopes[2] += value * t[2].slope[i] * t[1].weight[j] * t[0].weight[k];
                        }
                    }
        }
    if (!backward) {
        em_write_reals(&call->tensor[2], y);
    } else {
        if (call->tensor[3].present) em_write_reals(&call->tensor[3], to_input);
        if (call->tensor[4].present) em_write_reals(&call->tensor[4], to_grid);
    }
    free(x), free(points), free(grad), free(y), free(to_input), free(to_grid);
}

static aclnnStatus checked(aclOpExecutor *ex, const aclTensor *input, const aclTensor *grid, const aclTensor *out, int dims, int64_t mode, int64_t padding) {
    EM_NOT_NULL(input);
    EM_NOT_NULL(grid);
    EM_NOT_NULL(out);
    ES_DTYPE(input, ES_REALS);
    ES_SAME_DTYPE(input, grid);
    ES_SAME_DTYPE(input, out);
    ES_RANK(input, dims + 2);
    ES_RANK(grid, dims + 2);
    ES_RANK(out, dims + 2);
    EM_REQUIRE(mode >= 0 && mode <= (dims == 2 ? 2 : 1), "interpolationMode %lld is not supported", (long long)mode);
    EM_REQUIRE(padding >= 0 && padding <= 2, "paddingMode %lld is not supported", (long long)padding);
    EM_REQUIRE(grid->dims[dims + 1] == dims, "the grid's last dimension must be %d", dims);
    EM_REQUIRE(grid->dims[0] == input->dims[0] && out->dims[0] == input->dims[0] && out->dims[1] == input->dims[1], "batches or channels differ");
    for (int d = 0; d < dims; d++) {
        EM_REQUIRE(grid->dims[1 + d] == out->dims[2 + d], "the grid and the output differ in dimension %d", d);
        EM_REQUIRE(input->dims[2 + d] > 0, "the input has no elements");
    }
    return 0;
}

static aclnnStatus finished(aclOpExecutor *ex, int dims, int64_t mode, int64_t padding, bool align, bool backward) {
    em_integer(ex, dims);
    em_integer(ex, mode);
    em_integer(ex, padding);
    em_integer(ex, align);
    em_integer(ex, backward);
    return em_ready(ex, sample_kernel, 0);
}

#define SAMPLES(name, dims)                                                                                                                                \
    EM_OP(name, const aclTensor *input, const aclTensor *grid, int64_t interpolationMode, int64_t paddingMode, bool alignCorners, aclTensor *out) {          \
        EM_BEGIN(name);                                                                                                                                    \
        aclnnStatus wrong = checked(ex, input, grid, out, dims, interpolationMode, paddingMode);                                                           \
        if (wrong) return wrong;                                                                                                                           \
        em_tensor(ex, input);                                                                                                                              \
        em_tensor(ex, grid);                                                                                                                               \
        em_tensor(ex, out);                                                                                                                                \
        return finished(ex, dims, interpolationMode, paddingMode, alignCorners, false);                                                                    \
    }                                                                                                                                                      \
    EM_OP(name##Backward, const aclTensor *gradOutput, const aclTensor *input, const aclTensor *grid, int64_t interpolationMode, int64_t paddingMode,        \
          bool alignCorners, const aclBoolArray *outputMask, aclTensor *inputGrad, aclTensor *gridGrad) {                                                  \
        EM_BEGIN(name##Backward);                                                                                                                          \
        aclnnStatus wrong = checked(ex, input, grid, gradOutput, dims, interpolationMode, paddingMode);                                                    \
        if (wrong) return wrong;                                                                                                                           \
        EM_NOT_NULL(outputMask);                                                                                                                           \
        EM_NOT_NULL(gridGrad);                                                                                                                             \
        EM_REQUIRE(outputMask->size == 2, "outputMask must have 2 values");                                                                                \
        if (outputMask->values[0]) {                                                                                                                       \
            EM_NOT_NULL(inputGrad);                                                                                                                        \
            ES_SAME_SHAPE(input, inputGrad);                                                                                                               \
        }                                                                                                                                                  \
        ES_SAME_SHAPE(grid, gridGrad);                                                                                                                     \
        em_tensor(ex, gradOutput);                                                                                                                         \
        em_tensor(ex, input);                                                                                                                              \
        em_tensor(ex, grid);                                                                                                                               \
        em_tensor(ex, outputMask->values[0] ? inputGrad : NULL);                                                                                           \
        em_tensor(ex, gridGrad);                                                                                                                           \
        return finished(ex, dims, interpolationMode, paddingMode, alignCorners, true);                                                                     \
    }
SAMPLES(aclnnGridSampler2D, 2)
SAMPLES(aclnnGridSampler3D, 3)
