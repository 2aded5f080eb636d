/* Random numbers into arrays: what `_random/streams.py` draws, for everyday dtypes and contiguous arrays.
 *
 * Arguments that PyTorch refuses, other dtypes and other memory are left to the Python functions, before anything is drawn.
 */
#include "stream.h"
#include <math.h>

/* ------------------------------------------------------------------------------------------------------------- continuous */

/* Whether the bounds are such that no check of `checks.uniform` fails and one rounding is enough. */
static int fair_bounds(double low, double high, FloatKind kind)
{
    double most = kind == KIND_DOUBLE ? 1e140 : kind == KIND_HALF ? 3e4 : 1e38;
    if ((kind == KIND_HALF || kind == KIND_BFLOAT16) && high == 0) {
        return 0; /* zeros of both signs are the upper end */
    }
    return low <= high && fabs(low) < most && fabs(high) < most && high - low < most && (high == low || high - low > 1e-37);
}

/* The dtype of an array to write to, and whether it is contiguous; KIND_NONE to decline. */
static FloatKind target_kind(PyObject *object)
{
    PyArrayObject *array = (PyArrayObject *)object;
    return is_array(object) && PyArray_ISBEHAVED(array) && PyArray_NDIM(array) <= MAX_DIMS ? float_kind(PyArray_DESCR(array)) : KIND_NONE;
}

/* The array with its axes in the order in which PyTorch draws: from the slowest to the quickest in memory (`draw_order` in `_random/layout.py`).
 * A view; `values` is a new array of its shape. */
static PyArrayObject *in_order_of_memory(PyArrayObject *array, PyArrayObject **values)
{
    int ndim = PyArray_NDIM(array);
    npy_intp axes[MAX_DIMS];
    for (int i = 0; i < ndim; i++) {
        axes[i] = i;
    }
    for (int i = ndim - 2; i >= 0; i--) {
        int here = i;
        for (int there = i + 1; there < ndim; there++) {
            const npy_uintp ours = magnitude_of(PyArray_STRIDE(array, axes[here])), theirs = magnitude_of(PyArray_STRIDE(array, axes[there]));
            if (ours == 0 || theirs == 0) {
                continue;
            }
            if (ours >= theirs) {
                break;
            }
            npy_intp axis = axes[here];
            axes[here] = axes[there];
            axes[there] = axis;
            here = there;
        }
    }
    PyArray_Dims order = {axes, ndim};
    PyArrayObject *view = (PyArrayObject *)PyArray_Transpose(array, &order);
    *values = view == NULL ? NULL : (PyArrayObject *)new_like(view);
    if (*values == NULL) {
        Py_CLEAR(view);
    }
    return view;
}

/* Fills an array in place: normal numbers of mean `a` and deviation `b`, or uniform ones from `a` to `b`. */
static PyObject *fill_with(int normal, PyObject *object, double a, double b, FloatKind kind, PyObject *generator)
{
    PyArrayObject *array = (PyArrayObject *)object, *values = array, *view = NULL;
    int dense = is_contiguous(array);
    Stream *stream = take_stream(generator);
    if (stream == NULL) {
        return NULL;
    }
    if (!dense) {
        view = in_order_of_memory(array, &values);
    }
    if (values != NULL && normal) {
        draw_normal(stream, values, a, b, kind, !dense);
    }
    else if (values != NULL) {
        draw_uniform(stream, values, a, b, kind);
    }
    give_stream(stream);
    if (!dense) {
        int failed = values == NULL || PyArray_CopyInto(view, values) < 0;
        Py_XDECREF(view);
        Py_XDECREF(values);
        if (failed) {
            return NULL;
        }
    }
    return Py_NewRef(object);
}

/* self, from, to, generator */
static PyObject *uniform_kernel(PyObject *const *args)
{
    double low, high;
    FloatKind kind = target_kind(args[0]);
    if (kind == KIND_NONE || !as_double(args[1], &low) || !as_double(args[2], &high) || !fair_bounds(low, high, kind)) {
        return NULL;
    }
    return fill_with(0, args[0], low, high, kind, args[3]);
}

/* self, mean, std, generator */
static PyObject *normal_kernel(PyObject *const *args)
{
    double mean, std;
    FloatKind kind = target_kind(args[0]);
    if (kind == KIND_NONE || !as_double(args[1], &mean) || !as_double(args[2], &std) || !fair_normal(mean, std)) {
        return NULL;
    }
    return fill_with(1, args[0], mean, std, kind, args[3]);
}

/* A new array of floats, filled. */
static PyObject *continuous(int normal, int ndim, const npy_intp *dims, PyArray_Descr *descr, PyObject *generator)
{
    FloatKind kind = descr == NULL ? KIND_NONE : float_kind(descr);
    Stream *stream = kind == KIND_NONE ? NULL : take_stream(generator);
    if (stream == NULL) {
        return NULL;
    }
    PyObject *out = new_array(ndim, dims, descr);
    if (out != NULL && normal) {
        draw_normal(stream, (PyArrayObject *)out, 0, 1, kind, 0);
    }
    else if (out != NULL) {
        draw_uniform(stream, (PyArrayObject *)out, 0, 1, kind);
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

/* mean, std, size, generator, dtype, layout, device, pin_memory */
static PyObject *normal_size_kernel(PyObject *const *args)
{
    double mean, std;
    npy_intp dims[MAX_DIMS];
    int ndim = sizes_of(args[2], dims);
    PyArray_Descr *descr = descr_of(args[4]);
    FloatKind kind = descr == NULL ? KIND_NONE : float_kind(descr);
    if (ndim < 0 || kind == KIND_NONE || !as_double(args[0], &mean) || !as_double(args[1], &std) || !fair_normal(mean, std)) {
        return NULL;
    }
    PyObject *made = new_array(ndim, dims, descr), *filled = made == NULL ? NULL : fill_with(1, made, mean, std, kind, args[3]);
    Py_XDECREF(made);
    return filled;
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

/* Of the shape of a contiguous array. */
static PyObject *integers_like(PyObject *like, PyObject *low, PyObject *high, PyObject *dtype, PyObject *memory_format)
{
    PyArrayObject *x = (PyArrayObject *)like;
    if (!is_array(like) || !is_contiguous(x) || memory_format != Py_None) {
        return NULL;
    }
    PyArray_Descr *descr = dtype == Py_None ? PyArray_DESCR(x) : descr_of(dtype);
    PyObject *made = descr == NULL ? NULL : new_array(PyArray_NDIM(x), PyArray_DIMS(x), descr);
    PyObject *filled = made == NULL ? NULL : random_between(made, low, high, Py_None);
    Py_XDECREF(made);
    return filled;
}

/* self, high, dtype, layout, device, pin_memory, memory_format */
static PyObject *randint_like_kernel(PyObject *const *args)
{
    return integers_like(args[0], NULL, args[1], args[2], args[6]);
}

/* self, low, high, dtype, layout, device, pin_memory, memory_format */
static PyObject *randint_like_low_kernel(PyObject *const *args)
{
    return integers_like(args[0], args[1], args[2], args[3], args[7]);
}

/* Of all numbers of a dtype, from 0: PyTorch draws 64 bits for the widest dtypes, else 32. */
#define WHOLE_RANGE(type, draws, most)                                                                                                         do {                                                                                                                                           for (npy_intp i = 0; i < n; i++) {                                                                                                             npy_uint32 pair[2];                                                                                                                        stream_draws(stream, pair, draws);                                                                                                         npy_uint64 drawn = draws == 2 ? (npy_uint64)pair[0] << 32 | pair[1] : pair[0];                                                             ((type *)out)[i] = (type)(drawn % (npy_uint64)(most));                                                                                 }                                                                                                                                      } while (0)

/* self, generator */
static PyObject *random_kernel(PyObject *const *args)
{
    PyArrayObject *array = (PyArrayObject *)args[0];
    if (!is_array(args[0]) || !is_contiguous(array) || !PyArray_ISBEHAVED(array) || PyArray_SIZE(array) > RELEASE_GIL) {
        return NULL;
    }
    int type = PyArray_TYPE(array);
    if (type != NPY_FLOAT && type != NPY_DOUBLE && type != NPY_INT64 && type != NPY_INT32 && type != NPY_UBYTE) {
        return NULL;
    }
    Stream *stream = take_stream(args[1]);
    if (stream == NULL) {
        return NULL;
    }
    npy_intp n = PyArray_SIZE(array);
    char *out = PyArray_DATA(array);
    switch (type) {
    case NPY_FLOAT:
        WHOLE_RANGE(float, 1, (1 << 24) + 1);
        break;
    case NPY_DOUBLE:
        WHOLE_RANGE(double, 2, (1LL << 53) + 1);
        break;
    case NPY_INT64:
        WHOLE_RANGE(npy_int64, 2, 1ULL << 63);
        break;
    case NPY_INT32:
        WHOLE_RANGE(npy_int32, 1, 1ULL << 31);
        break;
    default:
        WHOLE_RANGE(npy_uint8, 1, 256);
    }
    give_stream(stream);
    return Py_NewRef(args[0]);
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

const KernelEntry random_kernels[] = {
    {"random.uniform_", uniform_kernel},
    {"random.normal_", normal_kernel},
    {"random.random_from", random_from_kernel},
    {"random.random_to", random_to_kernel},
    {"random.random_", random_kernel},
    {"random.normal_size", normal_size_kernel},
    {"random.randint_like", randint_like_kernel},
    {"random.randint_like_low", randint_like_low_kernel},
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
    {NULL, NULL},
};
