/* The gradients of convolutions' weights in float32 without patches, for processors with vectors of 512 bits: for each place of the kernel a product of the
 * result's gradient, up to 14 outputs of it, by the elements that its windows have there, with the channels side by side.
 */
#include "../runtime/extents.h"
#include "conv.h"
#include "gemm.h"

#define TOGETHER 256 /* windows whose elements, of 32 channels, are half of the first cache */
#define LEAST_CHANNELS 12

#if HAS_WIDE
#include "tiles.h"

/* into (R outputs, vectors of channels) += the products of `count` windows. */
#define TILE(R, VECTORS)                                                                                                                   \
    WIDEST static void weights_##R##_##VECTORS(npy_intp count, const float *gradient, const float *x, const npy_intp *offsets,             \
                                               float *into, npy_intp row)                                                                  \
    {                                                                                                                                      \
        __m512 sum[R][VECTORS];                                                                                                            \
        _Pragma("GCC unroll 14") for (int i = 0; i < R; i++)                                                                               \
        {                                                                                                                                  \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                                      \
            {                                                                                                                              \
                sum[i][j] = _mm512_loadu_ps(into + i * row + j * 16);                                                                      \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (npy_intp q = 0; q < count; q++, gradient += R) {                                                                              \
            const float *at = x + offsets[q];                                                                                              \
            __m512 right[VECTORS];                                                                                                         \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                                      \
            {                                                                                                                              \
                right[j] = _mm512_loadu_ps(at + j * 16);                                                                                   \
            }                                                                                                                              \
            _Pragma("GCC unroll 14") for (int i = 0; i < R; i++)                                                                           \
            {                                                                                                                              \
                const __m512 left = _mm512_set1_ps(gradient[i]);                                                                           \
                _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                                  \
                {                                                                                                                          \
                    sum[i][j] = _mm512_fmadd_ps(left, right[j], sum[i][j]);                                                                \
                }                                                                                                                          \
            }                                                                                                                              \
        }                                                                                                                                  \
        _Pragma("GCC unroll 14") for (int i = 0; i < R; i++)                                                                               \
        {                                                                                                                                  \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                                      \
            {                                                                                                                              \
                _mm512_storeu_ps(into + i * row + j * 16, sum[i][j]);                                                                      \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
#define TILES(R) \
    TILE(R, 1)   \
    TILE(R, 2)

TILE_ROWS(TILES)

typedef void (*Tile)(npy_intp, const float *, const float *, const npy_intp *, float *, npy_intp);

#define ENTRY(R) [R] = {weights_##R##_1, weights_##R##_2},
static const Tile tiles[MOST_ROWS + 1][2] = {TILE_ROWS(ENTRY)};

/* One image, or what there is of it by now. Panels are those of 32 channels of a group. */
typedef struct {
    const Conv *v;
    npy_intp panels, wide, positions; /* panels of a group; channels of a group with those that fill the last vector; elements of a padded plane */
    const npy_intp *windows, *places; /* where windows begin and what their elements are from there, in elements of `x` */
    const float *source;              /* planes, padded */
    float *x;                         /* by positions, with a group's channels side by side */
    const float *gradient;
    float *packed; /* the gradient, tile by tile */
    float *sums;   /* by groups, places, outputs and channels */
} Image;

/* Vectors of channels, from planes to lines. */
static void turn_channels(void *work, npy_intp begin, npy_intp end)
{
    const Image *all = work;
    const npy_intp inputs = all->v->channels / all->v->groups, each = all->wide / 16;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp g = i / each, c = i % each * 16, some = inputs - c < 16 ? inputs - c : 16;
        turn(all->source + (g * inputs + c) * all->positions, all->positions, some, all->positions, all->x + g * all->positions * all->wide + c, all->wide, 16);
    }
}

/* The gradient of some tiles of outputs, of which each group has as many. */
static void pack_tiles(void *work, npy_intp begin, npy_intp end)
{
    const Image *all = work;
    const Conv *v = all->v;
    const npy_intp outputs = v->outputs / v->groups;
    npy_intp tile = 0;
    for (npy_intp g = 0; g < v->groups; g++) {
        for (npy_intp o = 0, some; o < outputs; o += some, tile++) {
            const npy_intp first = (g * outputs + o) * v->plane_out;
            some = tile_rows(outputs - o);
            if (tile >= begin && tile < end) {
                pack_rows(all->gradient + first, v->plane_out, some, v->plane_out, all->packed + first);
            }
        }
    }
}

/* All outputs of some panels and places: windows after windows, in one order. */
static void some_places(void *work, npy_intp begin, npy_intp end)
{
    const Image *all = work;
    const Conv *v = all->v;
    const npy_intp outputs = v->outputs / v->groups;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp place = i % v->places, panel = i / v->places % all->panels, g = i / v->places / all->panels;
        const npy_intp vectors = all->wide - panel * 32 < 32 ? 1 : 2;
        const float *x = all->x + g * all->positions * all->wide + all->places[place] + panel * 32;
        float *sums = all->sums + (g * v->places + place) * outputs * all->wide + panel * 32;
        for (npy_intp q = 0; q < v->plane_out; q += TOGETHER) {
            const npy_intp count = v->plane_out - q < TOGETHER ? v->plane_out - q : TOGETHER;
            for (npy_intp o = 0; o < outputs;) {
                const npy_intp rows = tile_rows(outputs - o);
                tiles[rows][vectors - 1](count, all->packed + (g * outputs + o) * v->plane_out + q * rows, x, all->windows + q, sums + o * all->wide,
                                         all->wide);
                o += rows;
            }
        }
    }
}

int windows_serve_weight_gradient(const Conv *v, int width)
{
    return S.vectors == 2 && width == 4 && v->channels / v->groups >= LEAST_CHANNELS && v->plane_out > 8 &&
           (v->places > 1 || v->w.stride[0] * v->w.stride[1] * v->w.stride[2] > 1);
}

int windows_weight_gradient(const Conv *v, const float *gradient, const float *x, float *weight)
{
    const npy_intp *in = v->w.in, *out = v->w.out, *padding = v->w.padding;
    const int is_padded = padding[0] || padding[1] || padding[2];
    const npy_intp rows = in[1] + 2 * padding[1], row = in[2] + 2 * padding[2], positions = row * rows * (in[0] + 2 * padding[0]);
    const npy_intp inputs = v->channels / v->groups, outputs = v->outputs / v->groups, wide = (inputs + 15) / 16 * 16;
    const npy_intp of_sums = v->outputs * v->places * wide, of_x = v->groups * positions * wide, of_gradient = v->outputs * v->plane_out;
    npy_intp *windows = PyMem_RawMalloc((size_t)(v->plane_out + v->places) * sizeof(npy_intp)), *places = windows + v->plane_out;
    float *space = scratch_take((size_t)(of_sums + of_x + of_gradient + (is_padded ? v->channels * positions : 0)) * sizeof(float));
    if (windows == NULL || space == NULL) {
        PyMem_RawFree(windows);
        scratch_give(space);
        return 0;
    }
    for (npy_intp q = 0; q < v->plane_out; q++) {
        const npy_intp i = q / (out[1] * out[2]), j = q / out[2] % out[1], k = q % out[2];
        windows[q] = ((i * v->w.stride[0] * rows + j * v->w.stride[1]) * row + k * v->w.stride[2]) * wide;
    }
    for (npy_intp p = 0; p < v->places; p++) {
        places[p] = place_offset(&v->w, p) * wide;
    }
    memset(space, 0, (size_t)of_sums * sizeof(float));
    float *turned = space + of_sums, *packed = turned + of_x, *padded = packed + of_gradient;
    const npy_intp panels = (wide + 31) / 32, units = v->groups * panels * v->places;
    npy_intp tiles_each = 0;
    for (npy_intp o = 0; o < outputs; o += tile_rows(outputs - o)) {
        tiles_each++;
    }
    for (npy_intp n = 0; n < v->batch; n++) {
        const float *image = x + n * v->channels * v->plane_in, *given = gradient + n * of_gradient;
        if (is_padded) {
            pad_planes(v, image, padded);
            image = padded;
        }
        Image all = {v, panels, wide, positions, windows, places, image, turned, given, packed, space};
        in_parts(turn_channels, &all, v->groups * wide / 16, grain_of(positions * 16));
        in_parts(pack_tiles, &all, v->groups * tiles_each, grain_of(MOST_ROWS * v->plane_out));
        in_parts(some_places, &all, units, grain_of(outputs * v->plane_out * 2));
    }
    for (npy_intp g = 0; g < v->groups; g++) {
        for (npy_intp o = 0; o < outputs; o++, weight += inputs * v->places) {
            for (npy_intp p = 0; p < v->places; p += 16) {
                const npy_intp some = v->places - p < 16 ? v->places - p : 16;
                turn(space + ((g * v->places + p) * outputs + o) * wide, outputs * wide, some, inputs, weight + p, v->places, some);
            }
        }
    }
    PyMem_RawFree(windows);
    scratch_give(space);
    return 1;
}
#else
int windows_serve_weight_gradient(const Conv *v, int width)
{
    (void)v;
    (void)width;
    return 0;
}

int windows_weight_gradient(const Conv *v, const float *gradient, const float *x, float *weight)
{
    (void)v, (void)gradient, (void)x, (void)weight;
    return 0;
}
#endif
