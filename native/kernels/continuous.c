/* Uniform and normal numbers, and the functions of `_random/` that other distributions are made of. */
#include "stream.h"
#include <math.h>

#define LOOPS "continuous_loops.h"
#include "variants.h"

#define PIECE 1024 /* elements that the first level cache holds from the draws to the result */
#define TWO_PI 6.28318530717958647692

FloatKind float_kind(PyArray_Descr *descr)
{
    if (descr == S.descr32) {
        return KIND_FLOAT;
    }
    if (descr == S.descr64) {
        return KIND_DOUBLE;
    }
    if (descr->type_num == NPY_HALF && descr->byteorder != '>') {
        return KIND_HALF;
    }
    return M.bfloat16 != NULL && descr->type_num == M.bfloat16->type_num ? KIND_BFLOAT16 : KIND_NONE;
}

/* ---------------------------------------------------------------------------------------------------------- half precision */

typedef union {
    float value;
    npy_uint32 bits;
} Single;

static inline npy_uint16 bfloat16_of(float x)
{
    Single of = {x};
    npy_uint32 rounded = (of.bits + 0x7FFF + ((of.bits >> 16) & 1)) >> 16;
    return (npy_uint16)(x != x ? (of.bits >> 31 << 15) | 0x7FC0 : rounded);
}

/* To the nearest, ties to even. Adding a half puts the bits of what becomes subnormal where they belong. */
static inline npy_uint16 half_of(float x)
{
    Single of = {x};
    npy_uint32 sign = of.bits & 0x80000000U;
    of.bits ^= sign;
    npy_uint32 normal = (of.bits + 0xC8000FFFU + ((of.bits >> 13) & 1)) >> 13;
    Single shifted = {of.value + 0.5f};
    npy_uint32 small = shifted.bits - 0x3F000000U;
    npy_uint32 beyond = of.bits > 0x7F800000U ? 0x7E00 : 0x7C00;
    npy_uint32 made = of.bits >= 0x47800000U ? beyond : of.bits < 0x38800000U ? small : normal;
    return (npy_uint16)(made | sign >> 16);
}

static void round_to(FloatKind kind, const float *x, npy_uint16 *out, npy_intp n)
{
    if (kind == KIND_HALF) {
        for (npy_intp i = 0; i < n; i++) {
            out[i] = half_of(x[i]);
        }
    }
    else {
        for (npy_intp i = 0; i < n; i++) {
            out[i] = bfloat16_of(x[i]);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------------- numbers */

void draw_units(Stream *stream, char *out, npy_intp n, int width)
{
    npy_uint32 draws[STREAM_BLOCK];
    npy_intp step = width == 8 ? STREAM_BLOCK / 2 : STREAM_BLOCK;
    for (npy_intp start = 0; start < n; start += step) {
        npy_intp count = n - start < step ? n - start : step;
        stream_draws(stream, draws, width == 8 ? 2 * count : count);
        CHOOSE(unit, width, draws, (void *)(out + start * width), count);
    }
}

/* Half types: float32 numbers, rounded; one that becomes `high` by that is `low`. */
static void uniform_halves(Stream *stream, npy_uint16 *out, npy_intp n, double low, double high, FloatKind kind)
{
    float block[PIECE], ends[2] = {(float)low, (float)high};
    npy_uint16 rounded[2];
    round_to(kind, ends, rounded, 2);
    for (npy_intp start = 0; start < n; start += PIECE) {
        npy_intp count = n - start < PIECE ? n - start : PIECE;
        draw_units(stream, (char *)block, count, 4);
        if (low != 0 || high != 1) {
            CHOOSE(affine, 4, (void *)block, count, (double)(ends[1] - ends[0]), low);
        }
        round_to(kind, block, out + start, count);
        for (npy_intp i = start; i < start + count; i++) {
            out[i] = out[i] == rounded[1] ? rounded[0] : out[i];
        }
    }
}

void draw_uniform(Stream *stream, PyArrayObject *array, double low, double high, FloatKind kind)
{
    npy_intp n = PyArray_SIZE(array);
    char *data = PyArray_DATA(array);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (kind == KIND_HALF || kind == KIND_BFLOAT16) {
        uniform_halves(stream, (npy_uint16 *)data, n, low, high, kind);
    }
    else {
        int width = kind == KIND_DOUBLE ? 8 : 4;
        draw_units(stream, data, n, width);
        if (low != 0 || high != 1) {
            double factor = width == 8 ? high - low : (double)((float)high - (float)low);
            CHOOSE(stretch, width, (void *)data, n, factor, low, high);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* The next normal number in double precision. They come in pairs, of which the second may wait for the next call. */
double stream_normal(Stream *stream)
{
    if (stream->has_double) {
        stream->has_double = 0;
        return stream->next_double;
    }
    double u1 = stream_double(stream), u2 = stream_double(stream);
    double radius = sqrt(-2 * log1p(-u2)), theta = TWO_PI * u1;
    stream->next_double = radius * sin(theta);
    stream->has_double = 1;
    return radius * cos(theta);
}

void store_number(FloatKind kind, char *out, npy_intp i, double value)
{
    float single = (float)value;
    if (kind == KIND_DOUBLE) {
        ((double *)out)[i] = value;
    }
    else if (kind == KIND_FLOAT) {
        ((float *)out)[i] = single;
    }
    else {
        round_to(kind, &single, (npy_uint16 *)out + i, 1);
    }
}

static void normal_sequence(Stream *stream, char *out, npy_intp n, double mean, double std, FloatKind kind)
{
    for (npy_intp i = 0; i < n; i++) {
        store_number(kind, out, i, fma(stream_normal(stream), std, mean));
    }
}

/* Blocks of 16 numbers; `out` is of the width. */
static void normal_blocks(Stream *stream, char *out, npy_intp n, double mean, double std, int width)
{
    draw_units(stream, out, n, width);
    CHOOSE(normal_blocks, width, (void *)out, n / 16);
    CHOOSE(affine, width, (void *)out, n, std, mean);
}

/* A tail that is no whole block is covered by one more, which overwrites a part of its predecessor. Float and double draw for the tail
 * as well before that, half types do not. */
static void normal_dense(Stream *stream, char *out, npy_intp n, double mean, double std, FloatKind kind)
{
    int halves = kind == KIND_HALF || kind == KIND_BFLOAT16, width = kind == KIND_DOUBLE ? 8 : 4;
    npy_intp whole = n - n % 16;
    float block[PIECE];
    for (npy_intp start = 0; start < whole; start += PIECE) {
        npy_intp count = whole - start < PIECE ? whole - start : PIECE;
        normal_blocks(stream, halves ? (char *)block : out + start * width, count, mean, std, width);
        if (halves) {
            round_to(kind, block, (npy_uint16 *)out + start, count);
        }
    }
    if (n == whole) {
        return;
    }
    if (halves) {
        normal_blocks(stream, (char *)block, 16, mean, std, 4);
        round_to(kind, block, (npy_uint16 *)out + n - 16, 16);
        return;
    }
    double lost[16];
    draw_units(stream, (char *)lost, n - whole, width);
    normal_blocks(stream, out + (n - 16) * width, 16, mean, std, width);
}

/* `in_order`: one after the other, as PyTorch draws for memory that is not contiguous. */
void draw_normal(Stream *stream, PyArrayObject *array, double mean, double std, FloatKind kind, int in_order)
{
    npy_intp n = PyArray_SIZE(array);
    char *out = PyArray_DATA(array);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (n < 16 || in_order) {
        normal_sequence(stream, out, n, mean, std, kind);
    }
    else {
        normal_dense(stream, out, n, mean, std, kind);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* ------------------------------------------------------------------------------------------- what distributions are made of */

static PyObject *doubles(npy_intp n)
{
    return new_array(1, &n, S.descr64);
}

/* A count of at most what memory holds; -1 to decline. */
static Py_ssize_t count_of(PyObject *object)
{
    Py_ssize_t n;
    return as_index(object, &n) && n >= 0 && n < (Py_ssize_t)1 << 40 ? n : -1;
}

/* engine, n: the engine is the stream itself, whose lock the caller holds. */
static PyObject *units_kernel(PyObject *const *args, int width)
{
    npy_intp n = count_of(args[1]);
    PyObject *out = n < 0 || !Py_IS_TYPE(args[0], &StreamType) ? NULL : new_array(1, &n, width == 8 ? S.descr64 : S.descr32);
    if (out != NULL) {
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        draw_units((Stream *)args[0], PyArray_DATA((PyArrayObject *)out), n, width);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

static PyObject *unit32_kernel(PyObject *const *args)
{
    return units_kernel(args, 4);
}

static PyObject *unit64_kernel(PyObject *const *args)
{
    return units_kernel(args, 8);
}

/* gen, n, exact */
static PyObject *sequence_kernel(PyObject *const *args)
{
    Py_ssize_t n = count_of(args[1]);
    Stream *stream = n < 0 ? NULL : take_stream(args[0]);
    PyObject *out = stream == NULL ? NULL : doubles(n);
    if (out != NULL) {
        draw_normal(stream, (PyArrayObject *)out, 0, 1, KIND_DOUBLE, 1);
    }
    if (stream != NULL) {
        give_stream(stream);
    }
    return out;
}

/* engine, n, d, mean, std */
static PyObject *blocks_kernel(PyObject *const *args)
{
    npy_intp n = count_of(args[1]);
    PyArray_Descr *descr = descr_of(args[2]);
    FloatKind kind = descr == NULL ? KIND_NONE : float_kind(descr);
    double mean, std;
    if (n < 16 || kind == KIND_NONE || !Py_IS_TYPE(args[0], &StreamType) || !as_double(args[3], &mean) || !as_double(args[4], &std) ||
        !fair_normal(mean, std)) {
        return NULL;
    }
    PyObject *out = new_array(1, &n, descr);
    if (out != NULL) {
        draw_normal((Stream *)args[0], (PyArrayObject *)out, mean, std, kind, 0);
    }
    return out;
}

/* name, x, exact: a function of the C library over a vector. */
static PyObject *elementary_kernel(PyObject *const *args)
{
    static const struct {
        const char *name;
        double (*function)(double);
    } known[] = {{"log", log}, {"log1p", log1p}, {"tan", tan}, {"exp", exp}};
    if (!PyUnicode_Check(args[0]) || dense_width(args[1]) != 8 || PyArray_NDIM((PyArrayObject *)args[1]) != 1) {
        return NULL;
    }
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        if (PyUnicode_CompareWithASCIIString(args[0], known[k].name) == 0) {
            npy_intp n = PyArray_SIZE((PyArrayObject *)args[1]);
            PyObject *made = doubles(n);
            if (made != NULL) {
                const double *x = PyArray_DATA((PyArrayObject *)args[1]);
                double *out = PyArray_DATA((PyArrayObject *)made);
                PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
                for (npy_intp i = 0; i < n; i++) {
                    out[i] = known[k].function(x[i]);
                }
                if (thread != NULL) {
                    PyEval_RestoreThread(thread);
                }
            }
            return made;
        }
    }
    return NULL;
}

/* x, a, b: x * a + b with one rounding. */
static PyObject *fma64_kernel(PyObject *const *args)
{
    double a, b;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (dense_width(args[0]) != 8 || !as_double(args[1], &a) || !as_double(args[2], &b) || !(fabs(a) < 1e140 && fabs(b) < 1e140)) {
        return NULL;
    }
    PyObject *out = new_like(x);
    if (out != NULL) {
        memcpy(PyArray_DATA((PyArrayObject *)out), PyArray_DATA(x), (size_t)PyArray_NBYTES(x));
        CHOOSE64(affine)(PyArray_DATA((PyArrayObject *)out), PyArray_SIZE(x), a, b);
    }
    return out;
}

/* ---------------------------------------------------------------------------------------------------------------- Poisson */

/* Arrivals before time 1, their gaps multiplied. */
static double poisson_of_gaps(Stream *stream, double rate)
{
    double threshold = exp(-rate), product = 1;
    for (double count = 0;; count++) {
        product *= stream_double(stream);
        if (product <= threshold) {
            return count;
        }
    }
}

/* Hoermann's transformed rejection, as in `_random/rejection.py`. */
static double poisson_transformed(Stream *stream, double rate)
{
    double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = stream_double(stream) - 0.5, v = stream_double(stream), us = 0.5 - fabs(u);
        if (us == 0) {
            continue;
        }
        double k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= squeeze) {
            return k;
        }
        if (k < 0 || (us < 0.013 && v > us)) {
            continue;
        }
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1)) {
            return k;
        }
    }
}

/* gen, rates */
static PyObject *poisson_kernel(PyObject *const *args)
{
    int width = dense_width(args[1]);
    PyArrayObject *rates = (PyArrayObject *)args[1];
    npy_intp n = width ? PyArray_SIZE(rates) : 0;
    const char *data = width ? PyArray_DATA(rates) : NULL;
    for (npy_intp i = 0; i < n; i++) {
        double rate = width == 8 ? ((const double *)data)[i] : (double)((const float *)data)[i];
        if (!(rate >= 0 && rate < 1e9)) {
            return NULL;
        }
    }
    Stream *stream = n ? take_stream(args[0]) : NULL;
    PyObject *out = stream == NULL ? NULL : new_like(rates);
    if (out != NULL) {
        char *result = PyArray_DATA((PyArrayObject *)out);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        for (npy_intp i = 0; i < n; i++) {
            double rate = width == 8 ? ((const double *)data)[i] : (double)((const float *)data)[i];
            double count = rate >= 10 ? poisson_transformed(stream, rate) : rate == 0 ? 0 : poisson_of_gaps(stream, rate);
            if (width == 8) {
                ((double *)result)[i] = count;
            }
            else {
                ((float *)result)[i] = (float)count;
            }
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    if (stream != NULL) {
        give_stream(stream);
    }
    return out;
}

const KernelEntry continuous_kernels[] = {
    {"continuous.unit32", unit32_kernel},       {"continuous.unit64", unit64_kernel},
    {"continuous._normal_blocks", blocks_kernel}, {"continuous._normal_sequence", sequence_kernel},
    {"rejection.poisson", poisson_kernel},
    {"arithmetic.elementary", elementary_kernel}, {"arithmetic.fma64", fma64_kernel},
    {NULL, NULL},
};
