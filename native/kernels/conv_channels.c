/* Convolutions whose groups have one input channel. A plane is copied between margins of zeros, where all places of the kernel are steps of one row: a
 * sum over places needs no look at borders then, and runs over rows as long as the plane. Strides are steps over the result for a stride of one.
 */
#include "conv.h"

#define LOOPS "conv_channels_loops.h"
#include "variants.h"

/* A plane with its padding, in one row, and the row of windows of stride one that begins with it. */
typedef struct {
    npy_intp size[3];  /* of the padded plane */
    npy_intp whole;    /* its elements */
    npy_intp windows;  /* from the first to the last window of stride one that is wanted */
    npy_intp reach;    /* from the first to the last place of a kernel */
    npy_intp *at;      /* of each place */
    char *plane, *out; /* `out` has margins of `reach` zeros */
    double *sums;
} Row1;

static int start_row(const Conv *v, int width, Row1 *r)
{
    const Windows *w = &v->w;
    npy_intp last = 0;
    for (int d = 0; d < 3; d++) {
        r->size[d] = w->in[d] + 2 * w->padding[d];
    }
    r->whole = r->size[0] * r->size[1] * r->size[2];
    r->reach = 0;
    for (int d = 0; d < 3; d++) {
        last = last * r->size[d] + (w->out[d] - 1) * w->stride[d];
        r->reach = r->reach * r->size[d] + (w->kernel[d] - 1) * w->dilation[d];
    }
    r->windows = last + 1;
    const size_t numbers = (size_t)(2 * r->whole + 2 * r->reach + r->windows);
    char *space = PyMem_RawCalloc(1, numbers * (size_t)width + (size_t)v->places * (sizeof(npy_intp) + sizeof(double)));
    if (space == NULL) {
        return 0;
    }
    r->at = (npy_intp *)space;
    r->sums = (double *)(space + (size_t)v->places * sizeof(npy_intp));
    r->plane = space + (size_t)v->places * (sizeof(npy_intp) + sizeof(double));
    r->out = r->plane + r->whole * width;
    npy_intp *at = r->at;
    for (npy_intp a = 0; a < w->kernel[0]; a++) {
        for (npy_intp b = 0; b < w->kernel[1]; b++) {
            for (npy_intp c = 0; c < w->kernel[2]; c++) {
                *at++ = (a * w->dilation[0] * r->size[1] + b * w->dilation[1]) * r->size[2] + c * w->dilation[2];
            }
        }
    }
    return 1;
}

/* Copies between a dense plane of `sizes` and the places in a row of the padded sizes that lie `step` apart, from `start` on. */
static void lay(const Row1 *r, int width, const npy_intp *sizes, const npy_intp *step, npy_intp start, char *dense, char *row, int into_row)
{
    for (npy_intp i = 0; i < sizes[0]; i++) {
        for (npy_intp j = 0; j < sizes[1]; j++, dense += sizes[2] * width) {
            char *place = row + (start + (i * step[0] * r->size[1] + j * step[1]) * r->size[2]) * width;
            if (step[2] == 1) {
                memcpy(into_row ? place : dense, into_row ? dense : place, (size_t)(sizes[2] * width));
                continue;
            }
            for (npy_intp k = 0; k < sizes[2]; k++) {
                char *one = place + k * step[2] * width, *other = dense + k * width;
                memcpy(into_row ? one : other, into_row ? other : one, (size_t)width);
            }
        }
    }
}

static const npy_intp by_one[3] = {1, 1, 1};

static npy_intp padding_of(const Conv *v, const Row1 *r)
{
    return (v->w.padding[0] * r->size[1] + v->w.padding[1]) * r->size[2] + v->w.padding[2];
}

int by_channel_forward(const Conv *v, int width, const void *x, const void *weight, const void *shift, void *result)
{
    Row1 r;
    if (!start_row(v, width, &r)) {
        return 0;
    }
    const npy_intp each = v->outputs / v->groups;
    char *out = result;
    for (npy_intp p = 0; p < v->batch * v->channels; p++) {
        lay(&r, width, v->w.in, by_one, padding_of(v, &r), (char *)x + p * v->plane_in * width, r.plane, 1);
        for (npy_intp o = 0; o < each; o++, out += v->plane_out * width) {
            const npy_intp number = p % v->channels * each + o;
            CHOOSE(slide, width, r.plane, r.at, (const char *)weight + number * v->places * width, v->places, 0, r.out, r.windows);
            lay(&r, width, v->w.out, v->w.stride, 0, out, r.out, 0);
            if (shift != NULL) {
                CHOOSE(add_number, width, (const char *)shift + number * width, out, v->plane_out);
            }
        }
    }
    PyMem_RawFree(r.at);
    return 1;
}

int by_channel_input_gradient(const Conv *v, int width, const void *gradient, const void *weight, void *x)
{
    Row1 r;
    if (!start_row(v, width, &r)) {
        return 0;
    }
    for (npy_intp p = 0; p < v->places; p++) {
        r.at[p] = r.reach - r.at[p]; /* an element of the plane meets the windows that begin before it */
    }
    const npy_intp each = v->outputs / v->groups;
    const char *grad = gradient;
    for (npy_intp p = 0; p < v->batch * v->channels; p++) {
        for (npy_intp o = 0; o < each; o++, grad += v->plane_out * width) {
            const npy_intp number = p % v->channels * each + o;
            lay(&r, width, v->w.out, v->w.stride, r.reach, (char *)grad, r.out, 1);
            CHOOSE(slide, width, r.out, r.at, (const char *)weight + number * v->places * width, v->places, o > 0, r.plane, r.whole);
        }
        lay(&r, width, v->w.in, by_one, padding_of(v, &r), (char *)x + p * v->plane_in * width, r.plane, 0);
    }
    PyMem_RawFree(r.at);
    return 1;
}

typedef struct {
    const Conv *v;
    int width;
    const void *gradient, *x;
    void *weight;
    int failed; /* atomic */
} WeightRows;

static void weight_rows(void *work, npy_intp begin, npy_intp end)
{
    WeightRows *all = work;
    const Conv *v = all->v;
    const int width = all->width;
    Row1 r;
    if (!start_row(v, width, &r)) {
        __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    const npy_intp each = v->outputs / v->groups;
    for (npy_intp number = begin; number < end; number++) {
        memset(r.sums, 0, (size_t)v->places * sizeof(double));
        for (npy_intp n = 0; n < v->batch; n++) {
            const npy_intp plane = n * v->channels + number / each;
            lay(&r, width, v->w.in, by_one, padding_of(v, &r), (char *)all->x + plane * v->plane_in * width, r.plane, 1);
            lay(&r, width, v->w.out, v->w.stride, 0, (char *)all->gradient + (n * v->outputs + number) * v->plane_out * width, r.out, 1);
            CHOOSE(correlate, width, r.out, r.plane, r.at, v->places, r.sums, r.windows);
        }
        CHOOSE(finish, width, r.sums, (char *)all->weight + number * v->places * width, v->places);
    }
    PyMem_RawFree(r.at);
}

int by_channel_weight_gradient(const Conv *v, int width, const void *gradient, const void *x, void *weight)
{
    WeightRows all = {v, width, gradient, x, weight, 0};
    in_parts(weight_rows, &all, v->outputs, grain_of(v->batch * v->plane_out * v->places / 4));
    return !all.failed;
}
