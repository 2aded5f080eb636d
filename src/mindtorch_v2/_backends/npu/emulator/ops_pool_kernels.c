/* What pooling over two and over three dimensions computes: averages, maxima with their places, and what undoes pooling; with gradients. In double. */

#include "ops_pool.h"

/* Inputs have the pooled dimensions last; those of two are seen with a depth of 1. */
typedef struct Volumes { int64_t count, size[3]; } Volumes;

static Volumes volumes_of(const EmTensor *t, int spatial) {
    Volumes v = {es_product(t->dims, 0, t->ndim - spatial), {1, 1, 1}};
    for (int d = 0; d < spatial; d++) v.size[3 - spatial + d] = t->dims[t->ndim - spatial + d];
    return v;
}

typedef struct Window { int64_t kernel[3], stride[3], padding[3], dilation[3]; } Window;

/* The numbers of the pooled dimensions; one stands for all of them, and none for what is there otherwise. */
static void numbers(const EmInts *array, int spatial, const int64_t *otherwise, int64_t *into) {
    for (int d = 3 - spatial; d < 3; d++) into[d] = array->size == 0 ? otherwise[d] : array->values[array->size == 1 ? 0 : d - 3 + spatial];
}

/* arrays: kernel, stride (an empty one means the kernel's size), padding[, dilation]. */
static Window window_of(const EmCall *call, int spatial) {
    Window w = {.kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
    int64_t none[3] = {0, 0, 0};
    numbers(&call->array[0], spatial, none, w.kernel);
    numbers(&call->array[1], spatial, w.kernel, w.stride);
    numbers(&call->array[2], spatial, none, w.padding);
    if (call->arrays > 3) numbers(&call->array[3], spatial, w.dilation, w.dilation);
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

/* tensors: self, out (backward: gradOutput, gradInput); integers: countIncludePad, divisorOverride, whether backward, whether adaptive, pooled dimensions. */
void em_pool_average(EmCall *call) {
    bool backward = call->integer[2], adaptive = call->integer[3];
    const EmTensor *large = &call->tensor[backward ? 1 : 0], *small = &call->tensor[backward ? 0 : 1];
    int spatial = (int)call->integer[4];
    Volumes in = volumes_of(large, spatial), out = volumes_of(small, spatial);
    Window w = adaptive ? (Window){0} : window_of(call, spatial);
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
void em_pool_maximum(EmCall *call) {
    int spatial = (int)call->integer[0];
    bool adaptive = call->integer[1];
    Volumes in = volumes_of(&call->tensor[0], spatial), out = volumes_of(&call->tensor[1], spatial);
    Window w = adaptive ? (Window){.dilation = {1, 1, 1}} : window_of(call, spatial);
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
void em_pool_placed(EmCall *call) {
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
