/* Layer norm of contiguous arrays, forward and backward. */
#include "native.h"
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

/* Whether an optional weight or bias is a dense array of `count` elements; NULL for None. */
static int vector(PyObject *object, int width, npy_intp count, const void **data)
{
    *data = NULL;
    if (object == Py_None) {
        return 1;
    }
    if (dense_width(object) != width || PyArray_NDIM((PyArrayObject *)object) != 1 || PyArray_SIZE((PyArrayObject *)object) != count) {
        return 0;
    }
    *data = PyArray_DATA((PyArrayObject *)object);
    return 1;
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

static int read_eps(PyObject *object, double *eps)
{
    if (!PyFloat_CheckExact(object)) {
        return 0;
    }
    *eps = PyFloat_AS_DOUBLE(object);
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

/* input, normalized_shape, weight, bias, eps, and whether the statistics are wanted too. */
static PyObject *forward(PyObject *const *args, int statistics)
{
    int width = dense_width(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    npy_intp n;
    const void *weight, *bias;
    double eps;
    if (!width || !PyArray_SIZE(x) || !read_eps(args[4], &eps)) {
        return NULL;
    }
    int dims = normalized(x, args[1], &n);
    if (!dims || !vector(args[2], width, n, &weight) || !vector(args[3], width, n, &bias)) {
        return NULL;
    }
    npy_intp rows = PyArray_SIZE(x) / n;
    PyObject *out = new_like(x), *mean = NULL, *rstd = NULL, *all = NULL;
    if (statistics) {
        mean = new_statistics(x, dims);
        rstd = new_statistics(x, dims);
        all = PyTuple_New(3);
    }
    if (out == NULL || (statistics && (mean == NULL || rstd == NULL || all == NULL))) {
        Py_XDECREF(out);
        Py_XDECREF(mean);
        Py_XDECREF(rstd);
        Py_XDECREF(all);
        return NULL;
    }
    const void *data = PyArray_DATA(x);
    void *result = PyArray_DATA((PyArrayObject *)out);
    void *means = mean == NULL ? NULL : PyArray_DATA((PyArrayObject *)mean);
    void *rstds = rstd == NULL ? NULL : PyArray_DATA((PyArrayObject *)rstd);
    PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    CHOOSE(layer_norm_rows, width, data, weight, bias, result, means, rstds, rows, n, eps);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (!statistics) {
        return out;
    }
    PyTuple_SET_ITEM(all, 0, out);
    PyTuple_SET_ITEM(all, 1, mean);
    PyTuple_SET_ITEM(all, 2, rstd);
    return all;
}

static PyObject *layer_norm_kernel(PyObject *const *args)
{
    return forward(args, 0);
}

static PyObject *native_layer_norm_kernel(PyObject *const *args)
{
    return forward(args, 1);
}

static int read_mask(PyObject *mask, int *wanted)
{
    if ((!PyTuple_CheckExact(mask) && !PyList_CheckExact(mask)) || Py_SIZE(mask) != 3) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(mask, i);
        if (!PyBool_Check(item)) {
            return 0;
        }
        wanted[i] = item == Py_True;
    }
    return 1;
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
    void *scratch = PyMem_RawMalloc((size_t)n * 2 * (sizeof(double) + (size_t)width));
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
    CHOOSE(layer_norm_backward_rows, width, PyArray_DATA(grad), PyArray_DATA(x), mean, rstd, weight, data[0], data[1], data[2], rows, n,
           scratch);
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
    {"norm.native_layer_norm", native_layer_norm_kernel},
    {"norm.native_layer_norm_backward", layer_norm_backward_kernel},
    {NULL, NULL},
};
