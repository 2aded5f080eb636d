/* Pooling: maxima with their places, means, and their gradients, over planes of one to three dimensions. */
#include "pool_rows.h"
#include <math.h>

/* Windows of adaptive pooling. */
#define CELL_FROM(d, o) ((o)*w->in[d] / w->out[d])
#define CELL_TO(d, o) ((((o) + 1) * w->in[d] + w->out[d] - 1) / w->out[d])

/* The elements of window `o` along a dimension, and how many count; `cells` are the windows of adaptive pooling. */
static inline npy_intp places_of(const Windows *w, int cells, int padded, int d, npy_intp o, npy_intp *from, npy_intp *to)
{
    if (!cells) {
        return counted_places(w, d, o, padded, from, to);
    }
    *from = CELL_FROM(d, o);
    *to = CELL_TO(d, o);
    return *to - *from;
}

#define IS_FLOATING 1
#define IS_NAN(value) ((value) != (value))
#define T float
#define LOWEST (-INFINITY)
#define NAME(name) name##_float
#include "pool_loops.h"
#include "mean_loops.h"
#undef T
#undef NAME
#define T double
#define NAME(name) name##_double
#include "pool_loops.h"
#include "mean_loops.h"
#undef T
#undef LOWEST
#undef NAME
#undef IS_FLOATING
#define IS_FLOATING 0
#undef IS_NAN
#define IS_NAN(value) 0
#define T npy_int64
#define LOWEST NPY_MIN_INT64
#define NAME(name) name##_int64
#include "pool_loops.h"
#undef T
#undef LOWEST
#undef NAME
#define T npy_int32
#define LOWEST NPY_MIN_INT32
#define NAME(name) name##_int32
#include "pool_loops.h"
#undef T
#undef LOWEST
#undef NAME
#define T npy_int16
#define LOWEST NPY_MIN_INT16
#define NAME(name) name##_int16
#include "pool_loops.h"
#undef T
#undef LOWEST
#undef NAME
#define T npy_int8
#define LOWEST NPY_MIN_INT8
#define NAME(name) name##_int8
#include "pool_loops.h"
#undef T
#undef LOWEST
#undef NAME
#define T npy_uint8
#define LOWEST 0
#define NAME(name) name##_uint8
#include "pool_loops.h"

typedef void (*Maxima)(const void *, const Windows *, void *, npy_int64 *, npy_intp);
typedef int (*Scatter)(const void *, const npy_int64 *, npy_intp, npy_intp, void *, npy_intp);

typedef struct {
    int type;
    Maxima windows, cells;
    Scatter scatter;
} Loops;

static const Loops all_loops[] = {
    {NPY_FLOAT32, max_planes_float, max_cells_float, scatter_float},  {NPY_FLOAT64, max_planes_double, max_cells_double, scatter_double},
    {NPY_INT64, max_planes_int64, max_cells_int64, scatter_int64},    {NPY_INT32, max_planes_int32, max_cells_int32, scatter_int32},
    {NPY_INT16, max_planes_int16, max_cells_int16, scatter_int16},    {NPY_INT8, max_planes_int8, max_cells_int8, scatter_int8},
    {NPY_UINT8, max_planes_uint8, max_cells_uint8, scatter_uint8},
};

static const Loops *loops_of(PyObject *object)
{
    if (!is_array(object) || !PyArray_ISNOTSWAPPED((PyArrayObject *)object)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(all_loops) / sizeof(all_loops[0]); i++) {
        if (all_loops[i].type == PyArray_TYPE((PyArrayObject *)object)) {
            return &all_loops[i];
        }
    }
    return NULL;
}

/* The planes of an array of at least `dims` dimensions: their sizes; returns how many there are, 0 to decline (also for an empty array). */
static npy_intp read_planes(PyObject *object, int dims, npy_intp *sizes)
{
    if (!is_array(object)) {
        return 0;
    }
    PyArrayObject *x = (PyArrayObject *)object;
    int ndim = PyArray_NDIM(x);
    if (ndim < dims || ndim > MAX_DIMS || !PyArray_SIZE(x)) {
        return 0;
    }
    for (int d = 0; d < 3; d++) {
        sizes[d] = d < 3 - dims ? 1 : PyArray_DIM(x, ndim - 3 + d);
    }
    return PyArray_SIZE(x) / volume(sizes);
}

static int read_windows(PyObject *kernel, PyObject *stride, PyObject *padding, PyObject *dilation, PyObject *ceil_mode, int dims, Windows *w)
{
    if (!read_sizes(kernel, dims, w->kernel, NULL, 1) || !read_sizes(stride, dims, w->stride, w->kernel, 1) ||
        !read_sizes(padding, dims, w->padding, NULL, 0) || !PyBool_Check(ceil_mode)) {
        return 0;
    }
    if (dilation == NULL) {
        w->dilation[0] = w->dilation[1] = w->dilation[2] = 1;
    }
    else if (!read_sizes(dilation, dims, w->dilation, NULL, 1)) {
        return 0;
    }
    for (int d = 0; d < 3; d++) {
        npy_intp n = w->in[d], s = w->stride[d], p = w->padding[d];
        npy_intp span = n + 2 * p - w->dilation[d] * (w->kernel[d] - 1) - 1;
        if (span < 0 || s < 1 || w->kernel[d] < 1 || w->dilation[d] < 1 || p < 0) {
            return 0;
        }
        npy_intp count = (span + (ceil_mode == Py_True ? s - 1 : 0)) / s + 1;
        /* The last window must begin inside the input or its left padding. */
        w->out[d] = ceil_mode == Py_True && (count - 1) * s >= n + p ? count - 1 : count;
    }
    return 1;
}

/* An array of results: the leading dimensions of `x`, and the windows. */
static PyObject *new_windows(PyArrayObject *x, int dims, const Windows *w, PyArray_Descr *descr)
{
    npy_intp shape[MAX_DIMS];
    int ndim = PyArray_NDIM(x);
    for (int d = 0; d < ndim; d++) {
        shape[d] = d < ndim - dims ? PyArray_DIM(x, d) : w->out[d - ndim + 3];
    }
    return new_array(ndim, shape, descr);
}

static PyObject *new_zeros(PyArrayObject *like)
{
    PyObject *made = new_like(like);
    if (made != NULL) {
        memset(PyArray_DATA((PyArrayObject *)made), 0, PyArray_NBYTES((PyArrayObject *)made));
    }
    return made;
}

/* ---------------------------------------------------------------------------------------------------------------------- maxima */

typedef struct {
    Maxima run;
    const Windows *w;
    const char *x;
    char *best;
    npy_int64 *index;
    npy_intp item;
} MaximaRun;

static void maxima_part(void *work, npy_intp begin, npy_intp end)
{
    const MaximaRun *all = work;
    const npy_intp in = volume(all->w->in), out = volume(all->w->out);
    all->run(all->x + begin * in * all->item, all->w, all->best + begin * out * all->item, all->index + begin * out, end - begin);
}

static PyObject *maxima(PyObject *object, int dims, const Windows *w, npy_intp planes, Maxima run)
{
    PyArrayObject *x = dense(object);
    if (x == NULL) {
        return NULL;
    }
    PyArray_Descr *numbers = PyArray_DescrFromType(NPY_INT64);
    PyObject *best = new_windows(x, dims, w, PyArray_DESCR(x)), *index = new_windows(x, dims, w, numbers), *both = NULL;
    Py_DECREF(numbers);
    if (best != NULL && index != NULL && (both = PyTuple_New(2)) != NULL) {
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        MaximaRun all = {run, w, PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)best), PyArray_DATA((PyArrayObject *)index), PyArray_ITEMSIZE(x)};
        in_parts(maxima_part, &all, planes, grain_of(volume(w->in)));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        PyTuple_SET_ITEM(both, 0, best);
        PyTuple_SET_ITEM(both, 1, index);
    }
    else {
        Py_XDECREF(best);
        Py_XDECREF(index);
    }
    Py_DECREF(x);
    return both;
}

/* self, kernel_size, stride, padding, dilation, ceil_mode. */
static PyObject *max_pool(PyObject *const *args, int dims)
{
    const Loops *loops = loops_of(args[0]);
    Windows w;
    npy_intp planes = loops == NULL ? 0 : read_planes(args[0], dims, w.in);
    if (!planes || !read_windows(args[1], args[2], args[3], args[4], args[5], dims, &w)) {
        return NULL;
    }
    return maxima(args[0], dims, &w, planes, loops->windows);
}

static PyObject *max_pool1d_kernel(PyObject *const *args)
{
    return max_pool(args, 1);
}

static PyObject *max_pool2d_kernel(PyObject *const *args)
{
    return max_pool(args, 2);
}

static PyObject *max_pool3d_kernel(PyObject *const *args)
{
    return max_pool(args, 3);
}

/* self, output_size. */
static PyObject *adaptive_max_pool(PyObject *const *args, int dims)
{
    const Loops *loops = loops_of(args[0]);
    Windows w;
    npy_intp planes = loops == NULL ? 0 : read_planes(args[0], dims, w.in);
    if (!planes || !read_sizes(args[1], dims, w.out, NULL, 1) || volume(w.out) <= 0) {
        return NULL;
    }
    return maxima(args[0], dims, &w, planes, loops->cells);
}

static PyObject *adaptive_max_pool2d_kernel(PyObject *const *args)
{
    return adaptive_max_pool(args, 2);
}

static PyObject *adaptive_max_pool3d_kernel(PyObject *const *args)
{
    return adaptive_max_pool(args, 3);
}

static PyObject *scatter(PyObject *grad_object, PyObject *x_object, PyObject *index_object, int dims)
{
    const Loops *loops = loops_of(grad_object);
    npy_intp sizes[3], windows[3];
    npy_intp planes = loops == NULL ? 0 : read_planes(x_object, dims, sizes);
    if (!planes || read_planes(grad_object, dims, windows) != planes || !is_array(index_object) ||
        PyArray_TYPE((PyArrayObject *)index_object) != NPY_INT64 ||
        !PyArray_SAMESHAPE((PyArrayObject *)index_object, (PyArrayObject *)grad_object) ||
        PyArray_TYPE((PyArrayObject *)x_object) != PyArray_TYPE((PyArrayObject *)grad_object)) {
        return NULL;
    }
    PyArrayObject *grad = dense(grad_object), *index = dense(index_object);
    PyObject *result = grad == NULL || index == NULL ? NULL : new_zeros((PyArrayObject *)x_object);
    if (result != NULL) {
        PyThreadState *thread = PyArray_SIZE(grad) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        int done = loops->scatter(PyArray_DATA(grad), PyArray_DATA(index), volume(windows), volume(sizes),
                                  PyArray_DATA((PyArrayObject *)result), planes);
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        if (!done) {
            Py_CLEAR(result);
        }
    }
    Py_XDECREF(grad);
    Py_XDECREF(index);
    return result;
}

static PyObject *max_pool2d_backward_kernel(PyObject *const *args)
{
    return scatter(args[0], args[1], args[7], 2);
}

static PyObject *max_pool3d_backward_kernel(PyObject *const *args)
{
    return scatter(args[0], args[1], args[7], 3);
}

static PyObject *adaptive_max_pool2d_backward_kernel(PyObject *const *args)
{
    return scatter(args[0], args[1], args[2], 2);
}

static PyObject *adaptive_max_pool3d_backward_kernel(PyObject *const *args)
{
    return scatter(args[0], args[1], args[2], 3);
}

/* ----------------------------------------------------------------------------------------------------------------------- means */

typedef struct {
    const Windows *w;
    char *x, *y; /* the planes, and the means: one of them is written */
    int width, cells, padded, back;
    double by;
} MeansRun;

static void means_part(void *work, npy_intp begin, npy_intp end)
{
    const MeansRun *all = work;
    char *x = all->x + begin * volume(all->w->in) * all->width, *y = all->y + begin * volume(all->w->out) * all->width;
    if (!all->cells && mean_rows(all->width, x, all->w, all->padded, all->by, y, end - begin, all->back)) {
        return;
    }
    (all->width == 8 ? means_double : means_float)(x, all->w, all->cells, all->padded, all->by, y, end - begin, all->back);
}

static PyObject *means(PyObject *object, int dims, const Windows *w, npy_intp planes, int cells, int padded, double by)
{
    int width = float_width((PyArrayObject *)object);
    PyArrayObject *x = dense(object);
    PyObject *out = x == NULL ? NULL : new_windows(x, dims, w, PyArray_DESCR(x));
    if (out != NULL) {
        PyThreadState *thread = PyArray_SIZE(x) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        MeansRun all = {w, PyArray_BYTES(x), PyArray_BYTES((PyArrayObject *)out), width, cells, padded, 0, by};
        in_parts(means_part, &all, planes, grain_of(volume(w->in)));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(x);
    return out;
}

static PyObject *spread_means(PyObject *grad_object, PyObject *x_object, int dims, const Windows *w, npy_intp planes, int cells, int padded,
                              double by)
{
    int width = float_width((PyArrayObject *)grad_object);
    npy_intp windows[3];
    if (width != float_width((PyArrayObject *)x_object) || read_planes(grad_object, dims, windows) != planes ||
        memcmp(windows, w->out, sizeof(windows)) != 0) {
        return NULL;
    }
    PyArrayObject *grad = dense(grad_object);
    PyObject *result = grad == NULL ? NULL : new_zeros((PyArrayObject *)x_object);
    if (result != NULL) {
        PyThreadState *thread = PyArray_SIZE(grad) >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        MeansRun all = {w, PyArray_BYTES((PyArrayObject *)result), PyArray_BYTES(grad), width, cells, padded, 1, by};
        in_parts(means_part, &all, planes, grain_of(volume(w->in)));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    Py_XDECREF(grad);
    return result;
}

/* Whether padding counts, and what sums are divided by: count_include_pad, divisor_override. */
static int read_counting(PyObject *padded, PyObject *override, double *by)
{
    Py_ssize_t number = 0;
    if (!PyBool_Check(padded) || (override != Py_None && (!as_index(override, &number) || !number))) {
        return 0;
    }
    *by = (double)number;
    return 1;
}

/* self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override. */
static PyObject *avg_pool(PyObject *const *args, int dims)
{
    Windows w;
    double by;
    npy_intp planes = read_planes(args[0], dims, w.in);
    if (!planes || !float_width((PyArrayObject *)args[0]) || !read_windows(args[1], args[2], args[3], NULL, args[4], dims, &w) ||
        !read_counting(args[5], args[6], &by)) {
        return NULL;
    }
    return means(args[0], dims, &w, planes, 0, args[5] == Py_True, by);
}

static PyObject *avg_pool2d_kernel(PyObject *const *args)
{
    return avg_pool(args, 2);
}

static PyObject *avg_pool3d_kernel(PyObject *const *args)
{
    return avg_pool(args, 3);
}

/* grad_output, and what avg_pool has. */
static PyObject *avg_pool_backward(PyObject *const *args, int dims)
{
    Windows w;
    double by;
    npy_intp planes = read_planes(args[1], dims, w.in);
    if (!planes || !is_array(args[0]) || !float_width((PyArrayObject *)args[0]) ||
        !read_windows(args[2], args[3], args[4], NULL, args[5], dims, &w) || !read_counting(args[6], args[7], &by)) {
        return NULL;
    }
    return spread_means(args[0], args[1], dims, &w, planes, 0, args[6] == Py_True, by);
}

static PyObject *avg_pool2d_backward_kernel(PyObject *const *args)
{
    return avg_pool_backward(args, 2);
}

static PyObject *avg_pool3d_backward_kernel(PyObject *const *args)
{
    return avg_pool_backward(args, 3);
}

/* self, output_size. */
static PyObject *adaptive_avg_pool(PyObject *const *args, int dims)
{
    Windows w;
    npy_intp planes = read_planes(args[0], dims, w.in);
    if (!planes || !float_width((PyArrayObject *)args[0]) || !read_sizes(args[1], dims, w.out, NULL, 1) || volume(w.out) <= 0) {
        return NULL;
    }
    return means(args[0], dims, &w, planes, 1, 0, 0);
}

static PyObject *adaptive_avg_pool2d_kernel(PyObject *const *args)
{
    return adaptive_avg_pool(args, 2);
}

static PyObject *adaptive_avg_pool3d_kernel(PyObject *const *args)
{
    return adaptive_avg_pool(args, 3);
}

/* grad_output, self. */
static PyObject *adaptive_avg_pool_backward(PyObject *const *args, int dims)
{
    Windows w;
    npy_intp planes = read_planes(args[1], dims, w.in);
    if (!planes || read_planes(args[0], dims, w.out) != planes || !float_width((PyArrayObject *)args[0])) {
        return NULL;
    }
    return spread_means(args[0], args[1], dims, &w, planes, 1, 0, 0);
}

static PyObject *adaptive_avg_pool2d_backward_kernel(PyObject *const *args)
{
    return adaptive_avg_pool_backward(args, 2);
}

static PyObject *adaptive_avg_pool3d_backward_kernel(PyObject *const *args)
{
    return adaptive_avg_pool_backward(args, 3);
}

const KernelEntry pool_kernels[] = {
    {"pool.max_pool1d_with_indices", max_pool1d_kernel},
    {"pool.max_pool2d_with_indices", max_pool2d_kernel},
    {"pool.max_pool3d_with_indices", max_pool3d_kernel},
    {"pool.max_pool2d_with_indices_backward", max_pool2d_backward_kernel},
    {"pool.max_pool3d_with_indices_backward", max_pool3d_backward_kernel},
    {"pool.adaptive_max_pool2d", adaptive_max_pool2d_kernel},
    {"pool.adaptive_max_pool3d", adaptive_max_pool3d_kernel},
    {"pool.adaptive_max_pool2d_backward", adaptive_max_pool2d_backward_kernel},
    {"pool.adaptive_max_pool3d_backward", adaptive_max_pool3d_backward_kernel},
    {"pool.avg_pool2d", avg_pool2d_kernel},
    {"pool.avg_pool3d", avg_pool3d_kernel},
    {"pool.avg_pool2d_backward", avg_pool2d_backward_kernel},
    {"pool.avg_pool3d_backward", avg_pool3d_backward_kernel},
    {"pool.adaptive_avg_pool2d", adaptive_avg_pool2d_kernel},
    {"pool.adaptive_avg_pool3d", adaptive_avg_pool3d_kernel},
    {"pool.adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward_kernel},
    {"pool.adaptive_avg_pool3d_backward", adaptive_avg_pool3d_backward_kernel},
    {NULL, NULL},
};
