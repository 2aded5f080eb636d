/* Softmax, its logarithm, and their derivatives, over the last dimension of contiguous arrays. */
#include "native.h"
#include <math.h>

#define LOOPS "softmax_loops.h"
#include "variants.h"

/* The number of rows when the array is a contiguous float one and `dim` its last dimension; 0 to decline. */
static npy_intp rows_of(PyObject *object, PyObject *dim)
{
    PyArrayObject *x = (PyArrayObject *)object;
    if (!dense_width(object) || PyArray_SIZE(x) == 0) {
        return 0;
    }
    int ndim = PyArray_NDIM(x);
    if (!ndim || as_dim(dim, ndim) != ndim - 1) {
        return 0;
    }
    return PyArray_SIZE(x) / PyArray_DIM(x, ndim - 1);
}

static inline npy_intp last_dim(PyObject *object)
{
    PyArrayObject *x = (PyArrayObject *)object;
    return PyArray_DIM(x, PyArray_NDIM(x) - 1);
}

static PyObject *forward(PyObject *const *args, int logarithm)
{
    npy_intp rows = args[2] == Py_None ? rows_of(args[0], args[1]) : 0;
    PyObject *out = rows ? new_like((PyArrayObject *)args[0]) : NULL;
    if (out == NULL) {
        return NULL;
    }
    int width = dense_width(args[0]);
    npy_intp n = last_dim(args[0]);
    const void *x = PyArray_DATA((PyArrayObject *)args[0]);
    void *result = PyArray_DATA((PyArrayObject *)out);
    PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (logarithm) {
        CHOOSE(log_softmax_rows, width, x, result, rows, n);
    }
    else {
        CHOOSE(softmax_rows, width, x, result, rows, n);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
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
    npy_intp rows = rows_of(args[0], args[2]);
    if (!rows || dense_width(args[1]) != dense_width(args[0]) ||
        !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1])) {
        return NULL;
    }
    PyObject *out = new_like((PyArrayObject *)args[0]);
    if (out == NULL) {
        return NULL;
    }
    int width = dense_width(args[0]);
    npy_intp n = last_dim(args[0]);
    const void *grad = PyArray_DATA((PyArrayObject *)args[0]), *y = PyArray_DATA((PyArrayObject *)args[1]);
    void *result = PyArray_DATA((PyArrayObject *)out);
    PyThreadState *thread = rows * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    if (logarithm) {
        CHOOSE(log_softmax_backward_rows, width, grad, y, result, rows, n);
    }
    else {
        CHOOSE(softmax_backward_rows, width, grad, y, result, rows, n);
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
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

const KernelEntry softmax_kernels[] = {
    {"softmax.fast_softmax", softmax_kernel},
    {"softmax.fast_log_softmax", log_softmax_kernel},
    {"softmax.softmax", softmax_kernel},
    {"softmax.log_softmax", log_softmax_kernel},
    {"softmax.softmax_backward_data", softmax_backward_kernel},
    {"softmax.fast_softmax_backward_data", softmax_backward_kernel},
    {"softmax.log_softmax_backward_data", log_softmax_backward_kernel},
    {"softmax.fast_log_softmax_backward_data", log_softmax_backward_kernel},
    {NULL, NULL},
};
