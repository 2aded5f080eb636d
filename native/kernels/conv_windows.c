/* Convolutions of float32 without patches, for processors with vectors of 512 bits: a tile of the result is up to 14 windows of a row by 32 outputs, and
 * stays in registers while the elements of a window go by. What an element is multiplied with lies side by side for all outputs; the windows' elements
 * are read from the planes, which are copied once where they are padded.
 */
#include "../runtime/extents.h"
#include "conv.h"
#include "gemm.h"

#define LEAST_WIDTH 6 /* windows of a row; fewer leave registers empty */
#define LEAST_OUTPUTS 12

#if HAS_WIDE
#include "tiles.h"
#include "turn.h"

/* sums (R windows, vectors of outputs) = shift + the products of the `deep` elements of R windows that are STEP apart. */
#define TILE(R, VECTORS, STEP)                                                                                                             \
    WIDEST static void windows_##R##_##VECTORS##_##STEP(npy_intp deep, const float *x, const npy_intp *offsets, const float *weight,       \
                                                        const float *shift, float *sums)                                                   \
    {                                                                                                                                      \
        __m512 sum[R][VECTORS];                                                                                                            \
        _Pragma("GCC unroll 14") for (int i = 0; i < R; i++)                                                                               \
        {                                                                                                                                  \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                                      \
            {                                                                                                                              \
                sum[i][j] = _mm512_loadu_ps(shift + j * 16);                                                                               \
            }                                                                                                                              \
        }                                                                                                                                  \
        for (npy_intp p = 0; p < deep; p++, weight += VECTORS * 16) {                                                                      \
            const float *at = x + offsets[p];                                                                                              \
            __m512 right[VECTORS];                                                                                                         \
            _Pragma("GCC unroll 2") for (int j = 0; j < VECTORS; j++)                                                                      \
            {                                                                                                                              \
                right[j] = _mm512_loadu_ps(weight + j * 16);                                                                               \
                _mm_prefetch((const char *)(weight + (AHEAD * VECTORS + j) * 16), _MM_HINT_T0);                                            \
            }                                                                                                                              \
            _Pragma("GCC unroll 14") for (int i = 0; i < R; i++)                                                                           \
            {                                                                                                                              \
                const __m512 left = _mm512_set1_ps(at[i * STEP]);                                                                          \
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
                _mm512_storeu_ps(sums + (i * VECTORS + j) * 16, sum[i][j]);                                                                \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
#define TILES(R)  \
    TILE(R, 1, 1) \
    TILE(R, 1, 2) \
    TILE(R, 2, 1) \
    TILE(R, 2, 2)

TILE_ROWS(TILES)

typedef void (*Tile)(npy_intp, const float *, const npy_intp *, const float *, const float *, float *);

#define ENTRY(R) [R] = {{windows_##R##_1_1, windows_##R##_2_1}, {windows_##R##_1_2, windows_##R##_2_2}},
static const Tile tiles[MOST_ROWS + 1][2][2] = {TILE_ROWS(ENTRY)};

/* One image: `x` as the windows find it, padded; the packed weights of all groups; shifts of as many outputs as are packed. */
typedef struct {
    const Conv *v;
    npy_intp deep, row, plane, packed; /* elements of a window; of a padded row and plane; packed outputs of a group */
    const npy_intp *offsets;           /* of a window's elements, from its first */
    const float *x, *weight, *shift;
    float *result;
} Image;

/* A tile's sums, by outputs: each has its windows side by side. */
WIDEST static void put_windows(const float *sums, int vectors, npy_intp windows, npy_intp outputs, float *result, npy_intp plane)
{
    const __mmask16 mask = (__mmask16)(((npy_uint32)1 << windows) - 1);
    for (int j = 0; j < vectors; j++) {
        __m512 line[16];
        _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++)
        {
            line[i] = i < windows ? _mm512_loadu_ps(sums + (i * vectors + j) * 16) : _mm512_setzero_ps();
        }
        transpose_float(line);
        _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++)
        {
            if (j * 16 + i < outputs) {
                _mm512_mask_storeu_ps(result + (j * 16 + i) * plane, mask, line[i]);
            }
        }
    }
}

/* Rows of windows, for all outputs. */
static void some_rows(void *work, npy_intp begin, npy_intp end)
{
    const Image *all = work;
    const Conv *v = all->v;
    const npy_intp outputs = v->outputs / v->groups, inputs = v->channels / v->groups, step = v->w.stride[2];
    float sums[MOST_ROWS * 32];
    for (npy_intp g = 0; g < v->groups; g++) {
        for (npy_intp o = 0; o < outputs; o += 32) {
            const npy_intp some = outputs - o < 32 ? outputs - o : 32;
            const int vectors = some > 16 ? 2 : 1;
            const float *weight = all->weight + (g * all->packed + o) * all->deep, *shift = all->shift + g * all->packed + o;
            for (npy_intp r = begin; r < end; r++) {
                const npy_intp deep = r / v->w.out[1] * v->w.stride[0], high = r % v->w.out[1] * v->w.stride[1];
                const npy_intp rows = v->w.in[1] + 2 * v->w.padding[1];
                const float *x = all->x + g * inputs * all->plane + (deep * rows + high) * all->row;
                float *result = all->result + (g * outputs + o) * v->plane_out + r * v->w.out[2];
                for (npy_intp q = 0; q < v->w.out[2];) {
                    const npy_intp left = v->w.out[2] - q, windows = tile_rows(left);
                    tiles[windows][step - 1][vectors - 1](all->deep, x + q * step, all->offsets, weight, shift, sums);
                    put_windows(sums, vectors, windows, some, result + q, v->plane_out);
                    q += windows;
                }
            }
        }
    }
}

typedef struct {
    const Conv *v;
    const float *x;
    float *to;
} Padding;

static void pad_channels(void *work, npy_intp begin, npy_intp end)
{
    const Padding *all = work;
    const npy_intp *in = all->v->w.in, *padding = all->v->w.padding, row = in[2] + 2 * padding[2];
    const float *x = all->x + begin * all->v->plane_in;
    float *to = all->to + begin * row * (in[1] + 2 * padding[1]) * (in[0] + 2 * padding[0]);
    for (npy_intp c = begin; c < end; c++) {
        for (npy_intp i = -padding[0]; i < in[0] + padding[0]; i++) {
            for (npy_intp j = -padding[1]; j < in[1] + padding[1]; j++, to += row) {
                if (i < 0 || i >= in[0] || j < 0 || j >= in[1]) {
                    memset(to, 0, (size_t)row * sizeof(float));
                    continue;
                }
                memset(to, 0, (size_t)padding[2] * sizeof(float));
                memcpy(to + padding[2], x, (size_t)in[2] * sizeof(float));
                memset(to + padding[2] + in[2], 0, (size_t)padding[2] * sizeof(float));
                x += in[2];
            }
        }
    }
}

void pad_planes(const Conv *v, const float *x, float *to)
{
    in_parts(pad_channels, &(Padding){v, x, to}, v->channels, grain_of(v->plane_in));
}

int windows_serve(const Conv *v, int width)
{
    return S.vectors == 2 && width == 4 && v->w.stride[2] < 3 && v->w.out[2] >= LEAST_WIDTH && v->outputs / v->groups >= LEAST_OUTPUTS &&
           (v->places > 1 || v->w.stride[2] > 1);
}

/* The weights of a group as the tiles read them. `turned` ones lie with the channels before the outputs. */
static void pack_weights(const Conv *v, const float *weight, int turned, float *to)
{
    const npy_intp outputs = v->outputs / v->groups, inputs = v->channels / v->groups, deep = inputs * v->places;
    if (!turned) {
        pack_turned(weight, deep, outputs, deep, to);
        return;
    }
    for (npy_intp o = 0; o < outputs; o += 16) {
        const npy_intp wide = outputs - o / 32 * 32 > 16 ? 32 : 16, some = outputs - o < 16 ? outputs - o : 16;
        for (npy_intp c = 0; c < inputs; c++) {
            turn(weight + (c * outputs + o) * v->places, v->places, some, v->places, to + o / 32 * 32 * deep + c * v->places * wide + o % 32, wide, 16);
        }
    }
}

/* A batch of which each image is like `image`, but for its place. */
typedef struct {
    Image image;
    int is_padded, failed; /* memory was missing; atomic */
} Batch;

static void some_images(void *work, npy_intp begin, npy_intp end)
{
    Batch *all = work;
    const Conv *v = all->image.v;
    float *padded = all->is_padded ? scratch_take((size_t)(v->channels * all->image.plane) * sizeof(float)) : NULL;
    if (all->is_padded && padded == NULL) {
        __atomic_store_n(&all->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (npy_intp n = begin; n < end; n++) {
        Image one = all->image;
        one.x += n * v->channels * v->plane_in;
        one.result += n * v->outputs * v->plane_out;
        if (all->is_padded) {
            pad_planes(v, one.x, padded);
            one.x = padded;
        }
        in_parts(some_rows, &one, v->w.out[0] * v->w.out[1], grain_of(v->outputs * one.deep * v->w.out[2] / 16));
    }
    if (padded != NULL) {
        scratch_give(padded);
    }
}

/* Threads take whole images where they get as many, else the rows of one after the other. */
static int run_batch(Batch *all)
{
    const Conv *v = all->image.v;
    const npy_intp threads = part_threads;
    if (v->batch % threads == 0 || v->batch >= 4 * threads) {
        in_parts(some_images, all, v->batch, grain_of(v->outputs * all->image.deep * v->plane_out / 16));
    }
    else {
        some_images(all, 0, v->batch);
    }
    return !all->failed;
}

/* With `turned` weights the places go backwards. */
static int convolve(const Conv *v, const float *x, const float *weight, int turned, const float *shift, float *result)
{
    const npy_intp *in = v->w.in, *padding = v->w.padding, outputs = v->outputs / v->groups, inputs = v->channels / v->groups;
    const int is_padded = padding[0] || padding[1] || padding[2];
    const npy_intp row = in[2] + 2 * padding[2], plane = row * (in[1] + 2 * padding[1]) * (in[0] + 2 * padding[0]);
    const npy_intp packed = (outputs + 15) / 16 * 16, deep = inputs * v->places;
    npy_intp *offsets = PyMem_RawMalloc((size_t)deep * sizeof(npy_intp));
    float *space = scratch_take((size_t)(v->groups * packed * (deep + 1)) * sizeof(float));
    if (offsets == NULL || space == NULL) {
        PyMem_RawFree(offsets);
        scratch_give(space);
        return 0;
    }
    for (npy_intp c = 0; c < inputs; c++) {
        for (npy_intp p = 0; p < v->places; p++) {
            offsets[c * v->places + (turned ? v->places - 1 - p : p)] = c * plane + place_offset(&v->w, p);
        }
    }
    float *shifts = space + v->groups * packed * deep;
    for (npy_intp g = 0; g < v->groups; g++) {
        pack_weights(v, weight + g * outputs * deep, turned, space + g * packed * deep);
        for (npy_intp o = 0; o < packed; o++) {
            shifts[g * packed + o] = shift != NULL && o < outputs ? shift[g * outputs + o] : 0;
        }
    }
    Batch all = {{v, deep, row, plane, packed, offsets, x, space, shifts, result}, is_padded, 0};
    const int done = run_batch(&all);
    PyMem_RawFree(offsets);
    scratch_give(space);
    return done;
}

/* Of stride 1 the gradient is a convolution itself, by the kernels turned round and with inputs for outputs. */
static int turned_round(const Conv *v, Conv *made)
{
    *made = *v;
    for (int d = 0; d < 3; d++) {
        made->w.in[d] = v->w.out[d];
        made->w.out[d] = v->w.in[d];
        made->w.padding[d] = v->w.dilation[d] * (v->w.kernel[d] - 1) - v->w.padding[d];
        if (v->w.stride[d] != 1 || made->w.padding[d] < 0) {
            return 0;
        }
    }
    made->channels = v->outputs;
    made->outputs = v->channels;
    made->plane_in = v->plane_out;
    made->plane_out = v->plane_in;
    return 1;
}

int windows_serve_input_gradient(const Conv *v, int width)
{
    Conv other;
    return turned_round(v, &other) && windows_serve(&other, width);
}

int windows_forward(const Conv *v, const float *x, const float *weight, const float *shift, float *result)
{
    return convolve(v, x, weight, 0, shift, result);
}

int windows_input_gradient(const Conv *v, const float *gradient, const float *weight, float *x)
{
    Conv other;
    return turned_round(v, &other) && convolve(&other, gradient, weight, 1, NULL, x);
}
#else
int windows_serve(const Conv *v, int width)
{
    (void)v;
    (void)width;
    return 0;
}

int windows_serve_input_gradient(const Conv *v, int width)
{
    return windows_serve(v, width);
}

int windows_forward(const Conv *v, const float *x, const float *weight, const float *shift, float *result)
{
    (void)v, (void)x, (void)weight, (void)shift, (void)result;
    return 0;
}

int windows_input_gradient(const Conv *v, const float *gradient, const float *weight, float *x)
{
    (void)v, (void)gradient, (void)weight, (void)x;
    return 0;
}
#endif
