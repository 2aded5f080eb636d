/* Softmax, its logarithm, and their derivatives, over one dimension. */
#include "../runtime/extents.h"
#include "../runtime/engine.h"
#include "half_slabs.h"
#include "reduce.h"
#include "soft_rows.h"
#include <math.h>

#define LOOPS "softmax_loops.h"
#include "variants.h"

typedef struct {
    npy_intp outer, n, inner; /* n elements are one softmax */
} Sizes;

/* The sizes before, of and after dimension `dim` of an array of floats or half types; 0 to decline. */
static int sizes_around(PyObject *object, PyObject *dim, Sizes *sizes)
{
    Row widen;
    if (!is_float_kind(kind_widened(object, &widen))) {
        return 0;
    }
    PyArrayObject *x = (PyArrayObject *)object;
    int ndim = PyArray_NDIM(x), at = as_dim(dim, ndim ? ndim : 1);
    *sizes = (Sizes){1, 1, 1};
    for (int d = 0; d < ndim; d++) {
        npy_intp size = PyArray_DIM(x, d);
        *(d < at ? &sizes->outer : d == at ? &sizes->n : &sizes->inner) *= size;
    }
    return at >= 0;
}

typedef struct {
    enum { FORWARD, BACKWARD } direction;
    int logarithm, width;
    Sizes of;
    const void *x, *y; /* what forward takes; the gradient and what forward gave */
    void *result;
    int by_columns;
} Softmax;

/* `outer` groups of n times `inner` elements, of which those from `first` to `last` of the innermost. */
static void run_columns(const Softmax *all, const void *x, const void *y, void *result, npy_intp outer, npy_intp inner, npy_intp first, npy_intp last)
{
    const npy_intp n = all->of.n;
    if (all->direction == FORWARD && all->logarithm) {
        CHOOSE(log_softmax_columns, all->width, x, result, outer, n, inner, first, last);
    }
    else if (all->direction == FORWARD) {
        CHOOSE(softmax_columns, all->width, x, result, outer, n, inner, first, last);
    }
    else if (all->logarithm) {
        CHOOSE(log_softmax_backward_columns, all->width, x, y, result, outer, n, inner, first, last);
    }
    else {
        CHOOSE(softmax_backward_columns, all->width, x, y, result, outer, n, inner, first, last);
    }
}

#define TURNED 4096 /* bytes of each operand that are turned at a time */

/* See Note [Short rows]. */
static void run_short_rows(const Softmax *all, const char *x, const char *y, char *result, npy_intp rows)
{
    double columns[TURNED / 8], others[TURNED / 8], made[TURNED / 8];
    const npy_intp n = all->of.n, width = all->width, row = n * width, most = TURNED / row;
    if (rows == 1) { /* a column as it stands */
        run_columns(all, x, y, result, 1, 1, 0, 1);
        return;
    }
    for (npy_intp part; rows > 0; rows -= part, x += part * row, y += y == NULL ? 0 : part * row, result += part * row) {
        part = rows < most ? rows : most;
        turn_rows(columns, x, part, row, n, width);
        if (y != NULL) {
            turn_rows(others, y, part, row, n, width);
        }
        run_columns(all, columns, others, made, 1, part, 0, part);
        turn_rows(result, (const char *)made, n, part * width, part, width);
    }
}

/* Of the places before the dimension, or of those behind it. */
static void softmax_part(void *work, npy_intp from, npy_intp to)
{
    const Softmax *all = work;
    const npy_intp begin = all->by_columns ? 0 : from, end = all->by_columns ? all->of.outer : to;
    const npy_intp first = all->by_columns ? from : 0, last = all->by_columns ? to : all->of.inner, n = all->of.n, inner = all->of.inner, outer = end - begin, skipped = begin * n * inner * all->width;
    const int width = all->width;
    const void *x = (const char *)all->x + skipped, *y = all->y == NULL ? NULL : (const char *)all->y + skipped;
    void *result = (char *)all->result + skipped;
    if (inner > 1) {
        run_columns(all, x, y, result, outer, inner, first, last);
    }
    else if (soft_rows_serve(width, n, all->direction == FORWARD && all->logarithm)) {
        if (all->direction == FORWARD) {
            soft_rows(width, all->logarithm, x, result, outer, n);
        }
        else {
            soft_rows_backward(width, all->logarithm, x, y, result, outer, n);
        }
    }
    else if (n >= 2 && n <= SHORT) {
        run_short_rows(all, x, y, result, outer);
    }
    else if (all->direction == FORWARD && all->logarithm) {
        CHOOSE_NARROWER(log_softmax_rows, width, x, result, outer, n);
    }
    else if (all->direction == FORWARD) {
        CHOOSE_NARROWER(softmax_rows, width, x, result, outer, n);
    }
    else if (all->logarithm) {
        CHOOSE_NARROWER(log_softmax_backward_rows, width, x, y, result, outer, n);
    }
    else {
        CHOOSE_NARROWER(softmax_backward_rows, width, x, y, result, outer, n);
    }
}

static void run_softmax(Softmax *all)
{
    const npy_intp each = all->of.n * all->of.inner;
    PyThreadState *thread = all->of.outer * each >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    all->by_columns = all->of.outer < part_threads && all->of.inner > 1;
    if (all->by_columns) {
        in_shares(softmax_part, all, all->of.inner, 64, grain_of(2 * all->of.outer * all->of.n));
    }
    else {
        in_parts(softmax_part, all, all->of.outer, grain_of(2 * each));
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
}

static void float_rows(void *work, const float *const *from, float *to, npy_intp rows)
{
    Softmax part = *(const Softmax *)work;
    part.of.outer = rows;
    part.x = from[0];
    part.y = from[1];
    part.result = to;
    softmax_part(&part, 0, rows);
}

/* Of half types, which are dense and of one dtype; 0 where they are cast as a whole. */
static int run_halves(Softmax *all, PyArrayObject *x, PyArrayObject *y, PyArrayObject *out)
{
    HalfSlabs slabs = {.from = {PyArray_BYTES(x), y == NULL ? NULL : PyArray_BYTES(y)}, .to = PyArray_BYTES(out), .run = float_rows, .work = all};
    all->width = 4;
    if (!half_slabs_serve((PyObject *)x, all->of.n * all->of.inner, &slabs)) {
        return 0;
    }
    return run_half_slabs(&slabs, all->of.outer);
}

static PyObject *forward(PyObject *const *args, int logarithm)
{
    Sizes of;
    if (args[2] != Py_None || !sizes_around(args[0], args[1], &of)) {
        return NULL;
    }
    PyObject *out = new_like((PyArrayObject *)args[0]);
    PyArrayObject *source = out == NULL ? NULL : contiguous_of((PyArrayObject *)args[0]);
    npy_intp count = of.outer * of.n * of.inner;
    if (source == NULL) {
        Py_XDECREF(out);
        return NULL;
    }
    if (!count) {
        Py_DECREF(source);
        return out;
    }
    int width = float_width(source);
    const void *x = PyArray_DATA(source);
    void *result = PyArray_DATA((PyArrayObject *)out);
    Softmax all = {FORWARD, logarithm, width, of, x, NULL, result, 0};
    if (width) {
        run_softmax(&all);
    }
    else if (!run_halves(&all, source, NULL, (PyArrayObject *)out)) {
        Py_CLEAR(out);
    }
    Py_DECREF(source);
    return out;
}

static PyObject *softmax_kernel(PyObject *const *args)
{
    return forward(args, 0);
}

static PyObject *log_softmax_kernel(PyObject *const *args)
{
    return forward(args, 1);
}

/* grad_output, output, dim, input_dtype. */
static PyObject *backward(PyObject *const *args, int logarithm)
{
    Sizes of;
    PyArrayObject *first = (PyArrayObject *)args[0], *second = (PyArrayObject *)args[1];
    if (!sizes_around(args[0], args[2], &of) || !is_array(args[1]) || PyArray_TYPE(second) != PyArray_TYPE(first) || !PyArray_ISALIGNED(second) ||
        !PyArray_ISNOTSWAPPED(second) || !PyArray_SAMESHAPE(first, second)) {
        return NULL;
    }
    PyObject *out = new_like(first);
    npy_intp count = of.outer * of.n * of.inner;
    if (out == NULL || !count) {
        return out;
    }
    first = contiguous_of(first);
    second = first == NULL ? NULL : contiguous_of(second);
    if (second == NULL) {
        Py_XDECREF(first);
        Py_DECREF(out);
        return NULL;
    }
    int width = float_width(first);
    const void *grad = PyArray_DATA(first), *y = PyArray_DATA(second);
    void *result = PyArray_DATA((PyArrayObject *)out);
    Softmax all = {BACKWARD, logarithm, width, of, grad, y, result, 0};
    if (width) {
        run_softmax(&all);
    }
    else if (!run_halves(&all, first, second, (PyArrayObject *)out)) {
        Py_CLEAR(out);
    }
    Py_DECREF(first);
    Py_DECREF(second);
    return out;
}

static PyObject *softmax_backward_kernel(PyObject *const *args)
{
    return backward(args, 0);
}

static PyObject *log_softmax_backward_kernel(PyObject *const *args)
{
    return backward(args, 1);
}

typedef struct {
    Softmax all;
    const npy_int64 *target;
    npy_int64 ignored;
    const char *shares;
    int failed;
} Shares;

/* Some rows: as many gradients at a time as stay in the cache. */
static void shares_part(void *work, npy_intp from, npy_intp to)
{
    Shares *of = work;
    const npy_intp n = of->all.of.n, width = of->all.width, row = n * width, most = row < 32768 ? 32768 / row : 1;
    char *grad = scratch_take((size_t)(most * row));
    if (grad == NULL) {
        __atomic_store_n(&of->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    memset(grad, 0, (size_t)(most * row));
    for (npy_intp part; from < to; from += part) {
        part = to - from < most ? to - from : most;
        for (int put = 1; put >= 0; put--) {
            for (npy_intp i = 0; i < part; i++) {
                if (of->target[from + i] != of->ignored) {
                    char *place = grad + i * row + of->target[from + i] * width;
                    put ? memcpy(place, of->shares + (from + i) * width, (size_t)width) : memset(place, 0, (size_t)width);
                }
            }
            if (put) {
                Softmax some = of->all;
                some.x = grad;
                some.y = (const char *)of->all.y + from * row;
                some.result = (char *)of->all.result + from * row;
                softmax_part(&some, 0, part);
            }
        }
    }
    scratch_give(grad);
}

int log_softmax_of_shares(PyArrayObject *y, const npy_int64 *target, npy_int64 ignored, const void *shares, PyArrayObject *out)
{
    const Sizes of = {PyArray_DIM(y, 0), PyArray_DIM(y, 1), 1};
    Shares all = {{BACKWARD, 1, (int)PyArray_ITEMSIZE(y), of, NULL, PyArray_DATA(y), PyArray_DATA(out), 0}, target, ignored, shares, 0};
    PyThreadState *thread = of.outer * of.n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    in_parts(shares_part, &all, of.outer, grain_of(2 * of.n));
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (all.failed) {
        PyErr_NoMemory();
    }
    return !all.failed;
}

/* Fast paths come before all checks, and give results laid out as the operand is. */
static int is_dense(PyObject *object)
{
    return dense_width(object) && PyArray_NDIM((PyArrayObject *)object) && PyArray_SIZE((PyArrayObject *)object);
}

static PyObject *fast_softmax(PyObject *const *args)
{
    return is_dense(args[0]) ? forward(args, 0) : NULL;
}

static PyObject *fast_log_softmax(PyObject *const *args)
{
    return is_dense(args[0]) ? forward(args, 1) : NULL;
}

static PyObject *fast_softmax_backward(PyObject *const *args)
{
    return is_dense(args[0]) && is_dense(args[1]) ? backward(args, 0) : NULL;
}

static PyObject *fast_log_softmax_backward(PyObject *const *args)
{
    return is_dense(args[0]) && is_dense(args[1]) ? backward(args, 1) : NULL;
}

const KernelEntry softmax_kernels[] = {
    {"softmax.fast_softmax", fast_softmax},
    {"softmax.fast_log_softmax", fast_log_softmax},
    {"softmax.softmax", softmax_kernel, HALVES},
    {"softmax.log_softmax", log_softmax_kernel, HALVES},
    {"softmax.softmax_backward_data", softmax_backward_kernel, HALVES},
    {"softmax.fast_softmax_backward_data", fast_softmax_backward},
    {"softmax.log_softmax_backward_data", log_softmax_backward_kernel, HALVES},
    {"softmax.fast_log_softmax_backward_data", fast_log_softmax_backward},
    {NULL, NULL},
};
