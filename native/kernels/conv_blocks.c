/* Convolutions as products of matrices: blocks of windows are unrolled to patches that stay in the cache, and the BLAS takes them from there. */
#include "blas.h"
#include "conv.h"

#define BLOCK_BYTES 262144 /* of patches: half of a second cache */
#define LEAST_WINDOWS 48   /* of a block: narrower products are slow */

#define LOOPS "conv_blocks_loops.h"
#include "variants.h"

/* The blocks of one image, and memory for the patches of one. */
typedef struct {
    npy_intp deep; /* elements of a patch, of one group */
    npy_intp inputs, outputs; /* channels of a group */
    npy_intp rows, wide; /* rows of windows in a block, and windows of a row in it */
    void *space; /* NULL where the planes themselves are the patches */
} Blocks;

static int is_product(const Conv *v)
{
    int plain = v->places == 1;
    for (int d = 0; d < 3; d++) {
        plain &= v->w.stride[d] == 1 && v->w.padding[d] == 0;
    }
    return plain;
}

static int start_blocks(const Conv *v, int width, Blocks *s)
{
    s->inputs = v->channels / v->groups;
    s->outputs = v->outputs / v->groups;
    s->deep = s->inputs * v->places;
    npy_intp most = BLOCK_BYTES / (s->deep * width), row = v->w.out[2], rows = v->w.out[0] * v->w.out[1];
    most = most < LEAST_WINDOWS ? LEAST_WINDOWS : most;
    s->rows = row >= most ? 1 : most / row;
    s->rows = s->rows > rows ? rows : s->rows;
    s->wide = row > most ? most : row;
    s->space = NULL;
    if (is_product(v)) {
        s->rows = rows;
        s->wide = row;
        return 1;
    }
    s->space = PyMem_RawMalloc((size_t)(s->deep * s->rows * s->wide * width));
    return s->space != NULL;
}

/* EACH_BLOCK runs BODY for each image, group and block: `count` windows from number `start` on, of `planes` (the group's first plane of the input) and
 * `outs` (that of the result). */
#define EACH_BLOCK(BODY)                                                                                                                   \
    for (npy_intp n = 0; n < v->batch * v->groups; n++) {                                                                                  \
        const npy_intp g = n % v->groups, rows = v->w.out[0] * v->w.out[1];                                                                \
        const npy_intp planes = n * s.inputs * v->plane_in * width, outs = n * s.outputs * v->plane_out * width;                           \
        for (npy_intp first = 0; first < rows; first += s.rows) {                                                                          \
            const npy_intp last = first + s.rows < rows ? first + s.rows : rows;                                                           \
            for (npy_intp from = 0; from < v->w.out[2]; from += s.wide) {                                                                  \
                const npy_intp to = from + s.wide < v->w.out[2] ? from + s.wide : v->w.out[2];                                             \
                const npy_intp start = first * v->w.out[2] + from, count = (last - first) * (to - from);                                   \
                BODY                                                                                                                       \
            }                                                                                                                              \
        }                                                                                                                                  \
    }

int conv_forward(const Conv *v, int width, const void *x, const void *weight, const void *shift, void *result)
{
    if (windows_serve(v, width)) {
        return windows_forward(v, x, weight, shift, result);
    }
    Blocks s;
    if (!start_blocks(v, width, &s)) {
        return 0;
    }
    EACH_BLOCK(
        const char *source = (const char *)x + planes;
        const char *patches = s.space;
        char *out = (char *)result + outs + start * width;
        if (s.space != NULL) {
            CHOOSE(pack, width, &v->w, source, s.inputs, v->plane_in, first, last, from, to, s.space);
        } else {
            patches = source;
        }
        for (npy_intp o = 0; shift != NULL && o < s.outputs; o++) {
            CHOOSE(fill, width, (const char *)shift + (g * s.outputs + o) * width, out + o * v->plane_out * width, count);
        }
        multiply(width, 0, 0, s.outputs, count, s.deep, 1, (const char *)weight + g * s.outputs * s.deep * width, s.deep, patches,
                 s.space == NULL ? v->plane_in : count, shift != NULL, out, v->plane_out);)
    PyMem_RawFree(s.space);
    return 1;
}

int conv_input_gradient(const Conv *v, int width, const void *gradient, const void *weight, void *x)
{
    if (windows_serve_input_gradient(v, width)) {
        return windows_input_gradient(v, gradient, weight, x);
    }
    Blocks s;
    if (!start_blocks(v, width, &s)) {
        return 0;
    }
    if (s.space != NULL) {
        memset(x, 0, (size_t)(v->batch * v->channels * v->plane_in * width));
    }
    EACH_BLOCK(
        char *target = (char *)x + planes;
        multiply(width, 1, 0, s.deep, count, s.outputs, 1, (const char *)weight + g * s.outputs * s.deep * width, s.deep,
                 (const char *)gradient + outs + start * width, v->plane_out, 0, s.space == NULL ? target : s.space,
                 s.space == NULL ? v->plane_in : count);
        if (s.space != NULL) {
            CHOOSE(unpack, width, &v->w, s.space, s.inputs, v->plane_in, first, last, from, to, target);
        })
    PyMem_RawFree(s.space);
    return 1;
}

/* Adds the weights' gradient of some images; 0 when memory is lacking. */
static int add_weight_gradient(const Conv *v, int width, const void *gradient, const void *x, void *weight)
{
    Blocks s;
    if (!start_blocks(v, width, &s)) {
        return 0;
    }
    EACH_BLOCK(
        const char *source = (const char *)x + planes;
        const char *patches = s.space;
        if (s.space != NULL) {
            CHOOSE(pack, width, &v->w, source, s.inputs, v->plane_in, first, last, from, to, s.space);
        } else {
            patches = source;
        }
        multiply(width, 0, 1, s.outputs, s.deep, count, 1, (const char *)gradient + outs + start * width, v->plane_out, patches,
                 s.space == NULL ? v->plane_in : count, 1, (char *)weight + g * s.outputs * s.deep * width, s.deep);)
    PyMem_RawFree(s.space);
    return 1;
}

#define MOST_PIECES 8

/* Images that several threads take: each piece has a gradient of its own, but for the first. */
typedef struct {
    const Conv *v;
    int width;
    const char *gradient, *x;
    char *weights[MOST_PIECES];
    npy_intp pieces;
    int failed; /* atomic */
} WeightPieces;

static void weight_pieces(void *work, npy_intp begin, npy_intp end)
{
    WeightPieces *all = work;
    for (npy_intp i = begin; i < end; i++) {
        Conv v = *all->v;
        const npy_intp first = i * v.batch / all->pieces, last = (i + 1) * v.batch / all->pieces;
        v.batch = last - first;
        if (!add_weight_gradient(&v, all->width, all->gradient + first * v.outputs * v.plane_out * all->width,
                                 all->x + first * v.channels * v.plane_in * all->width, all->weights[i])) {
            __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
        }
    }
}

int conv_weight_gradient(const Conv *v, int width, const void *gradient, const void *x, void *weight)
{
    if (windows_serve_weight_gradient(v, width)) {
        return windows_weight_gradient(v, gradient, x, weight);
    }
    const npy_intp count = v->outputs * (v->channels / v->groups) * v->places, products = v->batch * count * v->plane_out;
    WeightPieces all = {.v = v, .width = width, .gradient = gradient, .x = x, .pieces = 1};
    if (part_threads > 1 && products > 8 * PART_ELEMENTS * (npy_intp)part_threads && v->plane_out > 32) {
        all.pieces = v->batch < part_threads ? v->batch : part_threads < MOST_PIECES ? part_threads : MOST_PIECES;
    }
    char *space = PyMem_RawCalloc((size_t)(all.pieces - 1) * (size_t)count + 1, (size_t)width);
    if (space == NULL) {
        return 0;
    }
    memset(weight, 0, (size_t)(count * width));
    for (npy_intp i = 0; i < all.pieces; i++) {
        all.weights[i] = i == 0 ? weight : space + (i - 1) * count * width;
    }
    if (all.pieces > 1) {
        in_parts_of_products(weight_pieces, &all, all.pieces, 1);
    }
    else {
        weight_pieces(&all, 0, 1);
    }
    for (npy_intp i = 1; i < all.pieces; i++) {
        CHOOSE(add_each, width, weight, all.weights[i], count);
    }
    PyMem_RawFree(space);
    return !all.failed;
}
