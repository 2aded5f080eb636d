/* Layer norm, forward and backward, and RMS norm of float arrays. */
#include "../runtime/plan.h"
#include "half_slabs.h"
#include "norm.h"
#include <float.h>
#include <math.h>

#define LOOPS "norm_loops.h"
#include "variants.h"

/* The number of trailing dimensions that `shape` names and the elements in them; 0 when they are not those of `x`. */
static int normalized(PyArrayObject *x, PyObject *shape, npy_intp *count)
{
    if (!PyTuple_Check(shape) && !PyList_CheckExact(shape)) {
        return 0;
    }
    PyObject *const *items = PyTuple_Check(shape) ? ((PyTupleObject *)shape)->ob_item : ((PyListObject *)shape)->ob_item;
    Py_ssize_t dims = Py_SIZE(shape);
    int ndim = PyArray_NDIM(x);
    if (dims < 1 || dims > ndim || ndim > MAX_DIMS) {
        return 0;
    }
    *count = 1;
    for (Py_ssize_t i = 0; i < dims; i++) {
        Py_ssize_t n;
        if (!as_index(items[i], &n) || n != PyArray_DIM(x, ndim - dims + i)) {
            return 0;
        }
        *count *= n;
    }
    return (int)dims;
}

/* Whether a statistic is a dense array of one element a row, of whatever dimensions. */
static int per_row(PyObject *object, int width, npy_intp rows, const void **data)
{
    if (dense_width(object) != width || PyArray_SIZE((PyArrayObject *)object) != rows) {
        return 0;
    }
    *data = PyArray_DATA((PyArrayObject *)object);
    return 1;
}

/* An array of the statistics of rows: the leading dimensions of `x`, and ones. */
static PyObject *new_statistics(PyArrayObject *x, int dims)
{
    npy_intp shape[MAX_DIMS];
    int ndim = PyArray_NDIM(x);
    for (int d = 0; d < ndim; d++) {
        shape[d] = d < ndim - dims ? PyArray_DIM(x, d) : 1;
    }
    return new_array(ndim, shape, PyArray_DESCR(x));
}

typedef struct {
    int width, centred;
    const char *x;
    const void *weight, *bias;
    char *y, *mean, *rstd; /* statistics may be NULL */
    npy_intp n;
    double eps;
} Rows;

static void norm_part(void *work, npy_intp begin, npy_intp end)
{
    const Rows *all = work;
    const int width = all->width;
    const npy_intp skipped = begin * all->n * width;
    void *mean = all->mean == NULL ? NULL : all->mean + begin * width, *rstd = all->rstd == NULL ? NULL : all->rstd + begin * width;
    if (all->centred) {
        CHOOSE(layer_norm_rows, width, all->x + skipped, all->weight, all->bias, all->y + skipped, mean, rstd, end - begin, all->n, all->eps);
    }
    else {
        CHOOSE(rms_norm_rows, width, all->x + skipped, all->weight, all->y + skipped, rstd, end - begin, all->n, all->eps);
    }
}

static void float_rows(void *work, const float *const *from, float *to, npy_intp rows)
{
    Rows part = *(const Rows *)work;
    part.x = (const char *)from[0];
    part.y = (char *)to;
    norm_part(&part, 0, rows);
}

/* The same of half types, without the statistics. */
static PyObject *half_forward(PyObject *const *args, int centred, double eps)
{
    PyArrayObject *x = (PyArrayObject *)args[0], *weight = NULL, *bias = NULL, *dense = NULL;
    Rows over = {.width = 4, .centred = centred, .eps = eps};
    HalfSlabs slabs = {.run = float_rows, .work = &over};
    PyObject *out = NULL;
    if (!PyArray_SIZE(x) || !normalized(x, args[1], &over.n) || !half_slabs_serve(args[0], over.n, &slabs)) {
        return NULL;
    }
    if (wide_vector(args[2], over.n, &weight, &over.weight) && (!centred || wide_vector(args[3], over.n, &bias, &over.bias)) &&
        (dense = contiguous_of(x)) != NULL && (out = new_like(dense)) != NULL) {
        slabs.from[0] = PyArray_BYTES(dense);
        slabs.to = PyArray_BYTES((PyArrayObject *)out);
        if (!run_half_slabs(&slabs, PyArray_SIZE(x) / over.n)) {
            Py_CLEAR(out);
        }
    }
    Py_XDECREF((PyObject *)weight);
    Py_XDECREF((PyObject *)bias);
    Py_XDECREF((PyObject *)dense);
    return out;
}

/* input, normalized_shape, weight, bias, eps, and whether the statistics are wanted too. Without `centred` the mean is not subtracted (RMS norm). */
static PyObject *forward(PyObject *const *args, int statistics, int centred, double eps)
{
    int width = is_array(args[0]) ? float_width((PyArrayObject *)args[0]) : 0;
    PyArrayObject *x = (PyArrayObject *)args[0];
    npy_intp n;
    const void *weight, *bias = NULL;
    if (!width && !statistics && is_array(args[0]) && PyArray_ITEMSIZE(x) == 2) {
        return half_forward(args, centred, eps);
    }
    if (!width || !PyArray_SIZE(x)) {
        return NULL;
    }
    int dims = normalized(x, args[1], &n);
    if (!dims || !vector(args[2], width, n, &weight) || (centred && !vector(args[3], width, n, &bias))) {
        return NULL;
    }
    npy_intp rows = PyArray_SIZE(x) / n;
    PyArrayObject *dense = contiguous_of(x);
    PyObject *out = dense == NULL ? NULL : new_like(dense), *mean = NULL, *rstd = NULL, *all = NULL;
    if (statistics) {
        mean = centred ? new_statistics(x, dims) : Py_NewRef(Py_None);
        rstd = new_statistics(x, dims);
    }
    if (out != NULL && (!statistics || (mean != NULL && rstd != NULL))) {
        const void *data = PyArray_DATA(dense);
        void *result = PyArray_DATA((PyArrayObject *)out);
        void *means = statistics && centred ? PyArray_DATA((PyArrayObject *)mean) : NULL;
        void *rstds = statistics ? PyArray_DATA((PyArrayObject *)rstd) : NULL;
        PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        Rows over = {width, centred, data, weight, bias, result, means, rstds, n, eps};
        in_parts(norm_part, &over, rows, grain_of(2 * n));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
        all = !statistics ? Py_NewRef(out) : centred ? PyTuple_Pack(3, out, mean, rstd) : PyTuple_Pack(2, out, rstd);
    }
    Py_XDECREF((PyObject *)dense);
    Py_XDECREF(out);
    Py_XDECREF(mean);
    Py_XDECREF(rstd);
    return all;
}

static PyObject *layer_norm_kernel(PyObject *const *args)
{
    double eps;
    return as_double(args[4], &eps) ? forward(args, 0, 1, eps) : NULL;
}

static PyObject *native_layer_norm_kernel(PyObject *const *args)
{
    double eps;
    return as_double(args[4], &eps) ? forward(args, 1, 1, eps) : NULL;
}

/* input, normalized_shape, weight, eps. */
static PyObject *rms_norm_kernel(PyObject *const *args, int statistics)
{
    double eps = is_array(args[0]) && float_width((PyArrayObject *)args[0]) == 8 ? DBL_EPSILON : (double)FLT_EPSILON;
    if (args[3] != Py_None && !as_double(args[3], &eps)) {
        return NULL;
    }
    return forward(args, statistics, 0, eps);
}

static PyObject *plain_rms_norm_kernel(PyObject *const *args)
{
    return rms_norm_kernel(args, 0);
}

static PyObject *fused_rms_norm_kernel(PyObject *const *args)
{
    return rms_norm_kernel(args, 1);
}

#define MOST_PIECES 16 /* of rows, whose sums are their own: see Note [Long sums in pieces] in reduce_walk.c */

typedef struct {
    int width, to_scale, to_shift;
    const char *grad, *x, *mean, *rstd;
    const void *weight;
    char *to_input; /* or NULL */
    npy_intp rows, n, piece;
    char *scratch; /* of all pieces */
    npy_intp step;
} BackRows;

static void norm_back_pieces(void *work, npy_intp begin, npy_intp end)
{
    const BackRows *all = work;
    const int width = all->width;
    for (npy_intp i = begin; i < end; i++) {
        const npy_intp first = i * all->piece, rows = all->rows - first < all->piece ? all->rows - first : all->piece, skipped = first * all->n * width;
        CHOOSE(layer_norm_backward_rows, width, all->grad + skipped, all->x + skipped, all->mean + first * width, all->rstd + first * width, all->weight,
               all->to_input == NULL ? NULL : all->to_input + skipped, all->to_scale, all->to_shift, rows, all->n, all->scratch + i * all->step);
    }
}

/* grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask. */
static PyObject *layer_norm_backward_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]), wanted[3];
    PyArrayObject *grad = (PyArrayObject *)args[0], *x = (PyArrayObject *)args[1];
    npy_intp n;
    const void *mean, *rstd, *weight;
    if (!width || dense_width(args[1]) != width || !PyArray_SAMESHAPE(grad, x) || !PyArray_SIZE(x) || !read_mask(args[7], wanted)) {
        return NULL;
    }
    if (!normalized(x, args[2], &n) || args[3] == Py_None || args[4] == Py_None) {
        return NULL;
    }
    npy_intp rows = PyArray_SIZE(x) / n;
    if (!per_row(args[3], width, rows, &mean) || !per_row(args[4], width, rows, &rstd) || !vector(args[5], width, n, &weight)) {
        return NULL;
    }
    wanted[1] = wanted[1] && args[5] != Py_None;
    wanted[2] = wanted[2] && args[6] != Py_None;
    if (wanted[2] && dense_width(args[6]) != width) {
        return NULL;
    }
    PyObject *all = PyTuple_New(3);
    npy_intp piece = (rows + MOST_PIECES - 1) / MOST_PIECES;
    piece = piece * n < 4 * PART_ELEMENTS ? 4 * PART_ELEMENTS / n + 1 : piece;
    const npy_intp pieces = (rows + piece - 1) / piece, step = 2 * n * ((npy_intp)sizeof(double) + width);
    char *scratch = PyMem_RawMalloc((size_t)(pieces * step));
    void *data[3] = {NULL, NULL, NULL};
    if (all == NULL || scratch == NULL) {
        goto failed;
    }
    for (int i = 0; i < 3; i++) {
        PyObject *one = Py_NewRef(Py_None);
        if (wanted[i]) {
            Py_DECREF(one);
            one = new_like((PyArrayObject *)args[i == 0 ? 1 : i == 1 ? 5 : 6]);
            if (one == NULL) {
                goto failed;
            }
            data[i] = PyArray_DATA((PyArrayObject *)one);
        }
        PyTuple_SET_ITEM(all, i, one);
    }
    PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    BackRows back = {width, wanted[1], wanted[2], PyArray_DATA(grad), PyArray_DATA(x), mean, rstd, weight, data[0], rows, n, piece, scratch, step};
    in_parts(norm_back_pieces, &back, pieces, 1);
    for (int i = 1; i < 3; i++) {
        if (wanted[i]) {
            CHOOSE(finish_totals, width, (const double *)scratch + (i - 1) * n, pieces, step / (npy_intp)sizeof(double), data[i], n);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    PyMem_RawFree(scratch);
    return all;
failed:
    PyMem_RawFree(scratch);
    Py_XDECREF(all);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

const KernelEntry norm_kernels[] = {
    {"norm.fast_layer_norm", layer_norm_kernel},
    {"norm.layer_norm", layer_norm_kernel, HALVES},
    {"norm.native_layer_norm", native_layer_norm_kernel},
    {"norm.native_layer_norm_backward", layer_norm_backward_kernel},
    {"norm.rms_norm", plain_rms_norm_kernel, HALVES},
    {"norm.fused_rms_norm", fused_rms_norm_kernel},
    {NULL, NULL},
};
