/* Random numbers into arrays: what `_random/streams.py` draws, for everyday dtypes and contiguous arrays.
 *
 * Arguments that PyTorch refuses, other dtypes and other memory are left to the Python functions, before anything is drawn.
 */
#include "stream.h"
#include <math.h>

#define LOOPS "random_loops.h"
#include "variants.h"

#define TWO_53 9007199254740992.0

/* 4 for float32, 8 for float64, when the array is contiguous and may be written to; 0 to decline. */
static int target_width(PyObject *object)
{
    return is_array(object) && PyArray_ISWRITEABLE((PyArrayObject *)object) ? dense_width(object) : 0;
}

/* The value of a float or int argument; 0 to decline. */
static int as_double(PyObject *object, double *value)
{
    if (PyFloat_CheckExact(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    if (PyLong_CheckExact(object)) {
        *value = PyLong_AsDouble(object);
        if (*value == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------- continuous */

static void units(Stream *stream, char *out, npy_intp n, int width)
{
    npy_uint32 draws[STREAM_BLOCK];
    npy_intp step = width == 8 ? STREAM_BLOCK / 2 : STREAM_BLOCK;
    for (npy_intp start = 0; start < n; start += step) {
        npy_intp count = n - start < step ? n - start : step;
        stream_draws(stream, draws, width == 8 ? 2 * count : count);
        CHOOSE(unit, width, draws, (void *)(out + start * width), count);
    }
}

/* Whether the bounds are such that no check of `checks.uniform` fails and one rounding is enough. */
static int fair_bounds(double low, double high, int width)
{
    double most = width == 8 ? 1e140 : 1e38;
    return low <= high && fabs(low) < most && fabs(high) < most && high - low < most && (high == low || high - low > 1e-37);
}

static void uniform_into(Stream *stream, PyArrayObject *out, double low, double high, int width)
{
    npy_intp n = PyArray_SIZE(out);
    char *data = PyArray_DATA(out);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    units(stream, data, n, width);
    if (low != 0 || high != 1) {
        double factor = width == 8 ? high - low : (double)((float)high - (float)low);
        CHOOSE(stretch, width, (void *)data, n, factor, low, high);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* `n` numbers one after the other, in double precision; they come in pairs, of which the second may wait for the next call. */
static void normal_sequence(Stream *stream, char *out, npy_intp n, double mean, double std, int width)
{
    for (npy_intp i = 0; i < n; i++) {
        double z;
        if (stream->has_double) {
            z = stream->next_double;
            stream->has_double = 0;
        }
        else {
            double u1 = stream_double(stream), u2 = stream_double(stream);
            double radius = sqrt(-2 * log1p(-u2)), theta = 2 * 3.14159265358979323846 * u1;
            z = radius * cos(theta);
            stream->next_double = radius * sin(theta);
            stream->has_double = 1;
        }
        z = fma(z, std, mean);
        if (width == 8) {
            ((double *)out)[i] = z;
        }
        else {
            ((float *)out)[i] = (float)z;
        }
    }
}

/* A tail that is no whole block of 16 is covered by one more, which overwrites a part of its predecessor. */
static void normal_into(Stream *stream, PyArrayObject *array, double mean, double std, int width)
{
    npy_intp n = PyArray_SIZE(array);
    char *out = PyArray_DATA(array);
    if (n < 16) {
        normal_sequence(stream, out, n, mean, std, width);
        return;
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    const npy_intp piece = 1024; /* the first level cache holds it from the draws to the sum */
    npy_intp whole = n - n % 16;
    for (npy_intp start = 0; start < whole; start += piece) {
        npy_intp count = whole - start < piece ? whole - start : piece;
        units(stream, out + start * width, count, width);
        CHOOSE(normal_blocks, width, (void *)(out + start * width), count / 16);
        CHOOSE(affine, width, (void *)(out + start * width), count, std, mean);
    }
    if (n != whole) {
        double lost[16]; /* the tail's own draws are made, but not used */
        units(stream, (char *)lost, n - whole, width);
        char *last = out + (n - 16) * width;
        units(stream, last, 16, width);
        CHOOSE(normal_blocks, width, (void *)last, 1);
        CHOOSE(affine, width, (void *)last, 16, std, mean);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

static int fair_normal(double mean, double std)
{
    return (std == 0 || (std > 1e-30 && std < 1e30)) && fabs(mean) < 1e30;
}

/* self, from, to, generator */
static PyObject *uniform_kernel(PyObject *const *args)
{
    double low, high;
    int width = target_width(args[0]);
    if (!width || !as_double(args[1], &low) || !as_double(args[2], &high) || !fair_bounds(low, high, width)) {
        return NULL;
    }
    Stream *stream = take_stream(args[3]);
    if (stream == NULL) {
        return NULL;
    }
    uniform_into(stream, (PyArrayObject *)args[0], low, high, width);
    give_stream(stream);
    return Py_NewRef(args[0]);
}

/* self, mean, std, generator */
static PyObject *normal_kernel(PyObject *const *args)
{
    double mean, std;
    int width = target_width(args[0]);
    if (!width || !as_double(args[1], &mean) || !as_double(args[2], &std) || !fair_normal(mean, std)) {
        return NULL;
    }
    Stream *stream = take_stream(args[3]);
    if (stream == NULL) {
        return NULL;
    }
    normal_into(stream, (PyArrayObject *)args[0], mean, std, width);
    give_stream(stream);
    return Py_NewRef(args[0]);
}

/* A new array of float32 or float64, filled. */
static PyObject *continuous(int normal, int ndim, const npy_intp *dims, PyArray_Descr *descr, PyObject *generator)
{
    int width = descr == NULL ? 0 : descr == S.descr32 ? 4 : descr == S.descr64 ? 8 : 0;
    Stream *stream = width ? take_stream(generator) : NULL;
    if (stream == NULL) {
        return NULL;
    }
    PyObject *out = new_array(ndim, dims, descr);
    if (out != NULL && normal) {
        normal_into(stream, (PyArrayObject *)out, 0, 1, width);
    }
    else if (out != NULL) {
        uniform_into(stream, (PyArrayObject *)out, 0, 1, width);
    }
    give_stream(stream);
    return out;
}

static PyObject *sized(int normal, PyObject *size, PyObject *dtype, PyObject *generator)
{
    npy_intp dims[MAX_DIMS];
    int ndim = sizes_of(size, dims);
    return ndim < 0 ? NULL : continuous(normal, ndim, dims, descr_of(dtype), generator);
}

/* size, dtype, layout, device, pin_memory */
static PyObject *rand_kernel(PyObject *const *args)
{
    return sized(0, args[0], args[1], Py_None);
}

static PyObject *randn_kernel(PyObject *const *args)
{
    return sized(1, args[0], args[1], Py_None);
}

/* size, generator, dtype, layout, device, pin_memory */
static PyObject *rand_generator_kernel(PyObject *const *args)
{
    return sized(0, args[0], args[2], args[1]);
}

static PyObject *randn_generator_kernel(PyObject *const *args)
{
    return sized(1, args[0], args[2], args[1]);
}

/* Of the shape of a contiguous array. */
static PyObject *shaped(int normal, PyObject *like, PyObject *dtype, PyObject *memory_format, PyObject *generator)
{
    PyArrayObject *x = (PyArrayObject *)like;
    if (!is_array(like) || !is_contiguous(x) || memory_format != Py_None) {
        return NULL;
    }
    return continuous(normal, PyArray_NDIM(x), PyArray_DIMS(x), dtype == Py_None ? PyArray_DESCR(x) : descr_of(dtype), generator);
}

/* self, dtype, layout, device, pin_memory, memory_format */
static PyObject *rand_like_kernel(PyObject *const *args)
{
    return shaped(0, args[0], args[1], args[5], Py_None);
}

static PyObject *randn_like_kernel(PyObject *const *args)
{
    return shaped(1, args[0], args[1], args[5], Py_None);
}

/* self, generator, dtype, layout, device, pin_memory, memory_format */
static PyObject *rand_like_generator_kernel(PyObject *const *args)
{
    return shaped(0, args[0], args[2], args[6], args[1]);
}

static PyObject *randn_like_generator_kernel(PyObject *const *args)
{
    return shaped(1, args[0], args[2], args[6], args[1]);
}

/* --------------------------------------------------------------------------------------------------------------- discrete */

/* draw % count without a division (D. Lemire and others, "Faster remainder by direct computation", 2019). */
static inline npy_uint32 remainder_of(npy_uint32 draw, npy_uint64 reciprocal, npy_uint32 count)
{
    return (npy_uint32)(((__uint128_t)(reciprocal * draw) * count) >> 64);
}

#define INTEGERS(type, out, low)                                                                                                           \
    for (npy_intp i = 0; i < n; i++) {                                                                                                     \
        ((type *)(out))[i] = (type)((npy_int64)remainder_of(draws[i], reciprocal, count) + (low));                                          \
    }                                                                                                                                      \
    break

/* `n` integers low + draw % count into memory of a dtype. */
static void integers_from(const npy_uint32 *draws, char *out, npy_intp n, int type, npy_uint32 count, npy_int64 low)
{
    npy_uint64 reciprocal = ~(npy_uint64)0 / count + 1;
    switch (type) {
    case NPY_LONG:
        INTEGERS(npy_long, out, low);
    case NPY_INT:
        INTEGERS(npy_int, out, low);
    case NPY_SHORT:
        INTEGERS(npy_short, out, low);
    case NPY_BYTE:
        INTEGERS(npy_byte, out, low);
    case NPY_UBYTE:
        INTEGERS(npy_ubyte, out, low);
    case NPY_FLOAT:
        INTEGERS(float, out, low);
    default:
        INTEGERS(double, out, low);
    }
}

/* Whether low <= x < low + count are numbers of the dtype, and so no check of `checks.random_from_to` fails or warns. */
static int holds(int type, npy_int64 low, npy_int64 high)
{
    npy_int64 most = high - 1;
    switch (type) {
    case NPY_LONG:
        return sizeof(npy_long) == 8;
    case NPY_INT:
        return low >= NPY_MIN_INT32 && most <= NPY_MAX_INT32;
    case NPY_SHORT:
        return low >= NPY_MIN_INT16 && most <= NPY_MAX_INT16;
    case NPY_BYTE:
        return low >= NPY_MIN_INT8 && most <= NPY_MAX_INT8;
    case NPY_UBYTE:
        return low >= 0 && most <= NPY_MAX_UINT8;
    case NPY_FLOAT:
        return low >= -(1 << 24) && most <= 1 << 24;
    case NPY_DOUBLE:
        return 1;
    default:
        return 0;
    }
}

/* low <= x < high as ints, in a range of less than 2^28, which takes one draw to a number; 0 to decline. */
static int narrow_range(PyObject *from, PyObject *to, PyArray_Descr *descr, npy_int64 *low, npy_uint32 *count)
{
    Py_ssize_t a = 0, b;
    if (descr == NULL || !PyArray_ISNBO(descr->byteorder) || (from != NULL && !as_index(from, &a)) || !as_index(to, &b) || a >= b ||
        a < -((Py_ssize_t)1 << 53) || b > (Py_ssize_t)1 << 53 || b - a >= 1 << 28 || !holds(descr->type_num, a, b)) {
        return 0;
    }
    *low = a;
    *count = (npy_uint32)(b - a);
    return 1;
}

static void integers_into(Stream *stream, PyArrayObject *array, npy_uint32 count, npy_int64 low)
{
    npy_intp n = PyArray_SIZE(array), size = PyArray_ITEMSIZE(array);
    char *out = PyArray_DATA(array);
    int type = PyArray_TYPE(array);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    npy_uint32 draws[STREAM_BLOCK];
    for (npy_intp start = 0; start < n; start += STREAM_BLOCK) {
        npy_intp part = n - start < STREAM_BLOCK ? n - start : STREAM_BLOCK;
        stream_draws(stream, draws, part);
        integers_from(draws, out + start * size, part, type, count, low);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

static PyArray_Descr *int64_or(PyObject *dtype)
{
    return descr_of(dtype == Py_None ? S.int64 : dtype);
}

static PyObject *new_integers(PyObject *low, PyObject *high, PyObject *size, PyObject *dtype, PyObject *generator)
{
    npy_intp dims[MAX_DIMS];
    npy_int64 first;
    npy_uint32 count;
    PyArray_Descr *descr = int64_or(dtype);
    int ndim = sizes_of(size, dims);
    Stream *stream = ndim >= 0 && narrow_range(low, high, descr, &first, &count) ? take_stream(generator) : NULL;
    if (stream == NULL) {
        return NULL;
    }
    PyObject *out = new_array(ndim, dims, descr);
    if (out != NULL) {
        integers_into(stream, (PyArrayObject *)out, count, first);
    }
    give_stream(stream);
    return out;
}

/* high, size, dtype, ... */
static PyObject *randint_kernel(PyObject *const *args)
{
    return new_integers(NULL, args[0], args[1], args[2], Py_None);
}

/* high, size, generator, dtype, ... */
static PyObject *randint_generator_kernel(PyObject *const *args)
{
    return new_integers(NULL, args[0], args[1], args[3], args[2]);
}

/* low, high, size, dtype, ... */
static PyObject *randint_low_kernel(PyObject *const *args)
{
    return new_integers(args[0], args[1], args[2], args[3], Py_None);
}

/* low, high, size, generator, dtype, ... */
static PyObject *randint_low_generator_kernel(PyObject *const *args)
{
    return new_integers(args[0], args[1], args[2], args[4], args[3]);
}

static PyObject *random_between(PyObject *self, PyObject *low, PyObject *high, PyObject *generator)
{
    npy_int64 first;
    npy_uint32 count;
    PyArrayObject *array = (PyArrayObject *)self;
    if (!is_array(self) || !is_contiguous(array) || !PyArray_ISWRITEABLE(array) ||
        !narrow_range(low, high, PyArray_DESCR(array), &first, &count)) {
        return NULL;
    }
    Stream *stream = take_stream(generator);
    if (stream == NULL) {
        return NULL;
    }
    integers_into(stream, array, count, first);
    give_stream(stream);
    return Py_NewRef(self);
}

/* self, from, to, generator */
static PyObject *random_from_kernel(PyObject *const *args)
{
    return random_between(args[0], args[1], args[2], args[3]);
}

/* self, to, generator */
static PyObject *random_to_kernel(PyObject *const *args)
{
    return random_between(args[0], NULL, args[1], args[2]);
}

#define SHUFFLE(type)                                                                                                                      \
    do {                                                                                                                                   \
        type *items = PyArray_DATA(array);                                                                                                 \
        for (npy_intp i = 0; i < n; i++) {                                                                                                 \
            items[i] = (type)i;                                                                                                            \
        }                                                                                                                                  \
        for (npy_intp start = 0; start < n - 1; start += STREAM_BLOCK) {                                                                   \
            npy_intp part = n - 1 - start < STREAM_BLOCK ? n - 1 - start : STREAM_BLOCK;                                                   \
            stream_draws(stream, draws, part);                                                                                             \
            for (npy_intp i = 0; i < part; i++) { /* the divisions do not wait for the exchanges */                                        \
                draws[i] = (npy_uint32)(start + i) + draws[i] % (npy_uint32)(n - start - i);                                               \
            }                                                                                                                              \
            for (npy_intp i = 0; i < part; i++) {                                                                                          \
                type moved = items[start + i];                                                                                             \
                items[start + i] = items[draws[i]];                                                                                        \
                items[draws[i]] = moved;                                                                                                   \
            }                                                                                                                              \
        }                                                                                                                                  \
    } while (0)

/* A permutation of 0 .. n-1, by Fisher and Yates. */
static PyObject *permutation(PyObject *size, PyObject *dtype, PyObject *generator)
{
    Py_ssize_t n;
    PyArray_Descr *descr = int64_or(dtype);
    if (descr == NULL || !as_index(size, &n) || n < 0 || n >= 0xFFFFFFFF / 20) {
        return NULL;
    }
    int type = descr->type_num;
    if (!(type == NPY_LONG && sizeof(npy_long) == 8) && !(type == NPY_INT && n <= NPY_MAX_INT32)) {
        return NULL;
    }
    Stream *stream = take_stream(generator);
    if (stream == NULL) {
        return NULL;
    }
    PyArrayObject *array = (PyArrayObject *)new_array(1, &n, descr);
    if (array != NULL) {
        npy_uint32 draws[STREAM_BLOCK];
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        if (type == NPY_INT) {
            SHUFFLE(npy_int);
        }
        else {
            SHUFFLE(npy_long);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    give_stream(stream);
    return (PyObject *)array;
}

/* n, dtype, ... */
static PyObject *randperm_kernel(PyObject *const *args)
{
    return permutation(args[0], args[1], Py_None);
}

/* n, generator, dtype, ... */
static PyObject *randperm_generator_kernel(PyObject *const *args)
{
    return permutation(args[0], args[2], args[1]);
}

#define TRIALS(type)                                                                                                                       \
    for (npy_intp i = 0; i < part; i++) {                                                                                                  \
        ((type *)out)[start + i] = (type)(((npy_int64)(draws[2 * i] & 0x1FFFFF) << 32 | draws[2 * i + 1]) < limit);                         \
    }                                                                                                                                      \
    break

static int takes_trials(int type)
{
    return type == NPY_BOOL || type == NPY_BYTE || type == NPY_UBYTE || type == NPY_SHORT || type == NPY_INT || type == NPY_LONG ||
           type == NPY_FLOAT || type == NPY_DOUBLE;
}

static npy_int64 limit_of(double p)
{
    return (npy_int64)ceil(p * TWO_53);
}

static void trials_into(Stream *stream, PyArrayObject *array, double p)
{
    npy_intp n = PyArray_SIZE(array);
    char *out = PyArray_DATA(array);
    int type = PyArray_TYPE(array);
    npy_int64 limit = limit_of(p);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    npy_uint32 draws[STREAM_BLOCK];
    for (npy_intp start = 0; start < n; start += STREAM_BLOCK / 2) {
        npy_intp part = n - start < STREAM_BLOCK / 2 ? n - start : STREAM_BLOCK / 2;
        stream_draws(stream, draws, 2 * part);
        switch (type) {
        case NPY_FLOAT:
        case NPY_DOUBLE:
            CHOOSE(trials, type == NPY_FLOAT ? 4 : 8, draws, (void *)(out + start * (type == NPY_FLOAT ? 4 : 8)), part, limit);
            break;
        case NPY_LONG:
            TRIALS(npy_long);
        case NPY_INT:
            TRIALS(npy_int);
        case NPY_SHORT:
            TRIALS(npy_short);
        default:
            TRIALS(npy_byte);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

/* self, p, generator */
static PyObject *bernoulli_float_kernel(PyObject *const *args)
{
    double p;
    PyArrayObject *array = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !is_contiguous(array) || !PyArray_ISWRITEABLE(array) || !PyArray_ISNOTSWAPPED(array) ||
        !takes_trials(PyArray_TYPE(array)) || !as_double(args[1], &p) || !(p >= 0 && p <= 1)) {
        return NULL;
    }
    Stream *stream = take_stream(args[2]);
    if (stream == NULL) {
        return NULL;
    }
    trials_into(stream, array, p);
    give_stream(stream);
    return Py_NewRef(args[0]);
}

/* Probabilities of an array of floats: a draw of their own precision for each. 0 when one is none, before anything is drawn. */
static PyObject *bernoulli_of(PyArrayObject *p, PyArrayObject *target, PyObject *generator)
{
    int width = is_contiguous(p) ? float_width(p) : 0;
    npy_intp n = PyArray_SIZE(p);
    const char *data = PyArray_DATA(p);
    if (!width || !n) {
        return NULL;
    }
    for (npy_intp i = 0; i < n; i++) {
        double value = width == 8 ? ((const double *)data)[i] : ((const float *)data)[i];
        if (!(value >= 0 && value <= 1)) {
            return NULL;
        }
    }
    Stream *stream = take_stream(generator);
    if (stream == NULL) {
        return NULL;
    }
    PyObject *made = target == NULL ? new_like(p) : Py_NewRef(target);
    if (made != NULL) {
        char *out = PyArray_DATA((PyArrayObject *)made);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        double block[1024];
        for (npy_intp start = 0; start < n; start += 1024) {
            npy_intp part = n - start < 1024 ? n - start : 1024;
            units(stream, (char *)block, part, width);
            for (npy_intp i = 0; i < part; i++) {
                if (width == 8) {
                    ((double *)out)[start + i] = block[i] < ((const double *)data)[start + i];
                }
                else {
                    ((float *)out)[start + i] = ((float *)block)[i] < ((const float *)data)[start + i];
                }
            }
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    give_stream(stream);
    return made;
}

/* self, generator */
static PyObject *bernoulli_kernel(PyObject *const *args)
{
    return is_array(args[0]) ? bernoulli_of((PyArrayObject *)args[0], NULL, args[1]) : NULL;
}

/* self, p, generator */
static PyObject *bernoulli_tensor_kernel(PyObject *const *args)
{
    if (!target_width(args[0]) || !is_array(args[1]) || target_width(args[0]) != dense_width(args[1]) ||
        !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1])) {
        return NULL;
    }
    return bernoulli_of((PyArrayObject *)args[1], (PyArrayObject *)args[0], args[2]);
}

/* self, p, generator */
static PyObject *bernoulli_p_kernel(PyObject *const *args)
{
    double p;
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !PyArray_ISNOTSWAPPED(x) || !takes_trials(PyArray_TYPE(x)) || !as_double(args[1], &p) || !(p >= 0 && p <= 1)) {
        return NULL;
    }
    Stream *stream = take_stream(args[2]);
    if (stream == NULL) {
        return NULL;
    }
    PyObject *made = new_like(x);
    if (made != NULL) {
        trials_into(stream, (PyArrayObject *)made, p);
    }
    give_stream(stream);
    return made;
}

/* input, p, train */
static PyObject *native_dropout_kernel(PyObject *const *args)
{
    double p;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int width = dense_width(args[0]);
    if (!width || args[2] == Py_False || !as_double(args[1], &p) || !(p > 0 && p <= 1) || !PyArray_SIZE(x)) {
        return NULL;
    }
    PyObject *out = new_like(x), *mask = out == NULL ? NULL : new_array(PyArray_NDIM(x), PyArray_DIMS(x), S.descr_bool);
    Stream *stream = mask == NULL ? NULL : take_stream(Py_None);
    PyObject *made = stream == NULL ? NULL : PyTuple_Pack(2, out, mask);
    if (made != NULL) {
        npy_intp n = PyArray_SIZE(x);
        const char *data = PyArray_DATA(x);
        char *result = PyArray_DATA((PyArrayObject *)out);
        npy_bool *kept = PyArray_DATA((PyArrayObject *)mask);
        double keep = 1.0 - p, factor = keep != 0 ? 1.0 / keep : 0.0;
        npy_int64 limit = limit_of(keep);
        PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        npy_uint32 draws[STREAM_BLOCK];
        for (npy_intp start = 0; start < n; start += STREAM_BLOCK / 2) {
            npy_intp part = n - start < STREAM_BLOCK / 2 ? n - start : STREAM_BLOCK / 2;
            stream_draws(stream, draws, 2 * part);
            CHOOSE(drop, width, draws, (const void *)(data + start * width), (void *)(result + start * width), kept + start, part, limit, factor);
        }
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    if (stream != NULL) {
        give_stream(stream);
    }
    Py_XDECREF(out);
    Py_XDECREF(mask);
    return made;
}

const KernelEntry random_kernels[] = {
    {"random.uniform_", uniform_kernel},
    {"random.normal_", normal_kernel},
    {"random.random_from", random_from_kernel},
    {"random.random_to", random_to_kernel},
    {"random.bernoulli_float", bernoulli_float_kernel},
    {"random.bernoulli_tensor", bernoulli_tensor_kernel},
    {"random.rand", rand_kernel},
    {"random.rand_generator", rand_generator_kernel},
    {"random.randn", randn_kernel},
    {"random.randn_generator", randn_generator_kernel},
    {"random.randint", randint_kernel},
    {"random.randint_generator", randint_generator_kernel},
    {"random.randint_low", randint_low_kernel},
    {"random.randint_low_generator", randint_low_generator_kernel},
    {"random.randperm", randperm_kernel},
    {"random.randperm_generator", randperm_generator_kernel},
    {"random.rand_like", rand_like_kernel},
    {"random.rand_like_generator", rand_like_generator_kernel},
    {"random.randn_like", randn_like_kernel},
    {"random.randn_like_generator", randn_like_generator_kernel},
    {"random.bernoulli", bernoulli_kernel},
    {"random.bernoulli_p", bernoulli_p_kernel},
    {"random.native_dropout", native_dropout_kernel},
    {NULL, NULL},
};
