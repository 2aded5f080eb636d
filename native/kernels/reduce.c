/* Reductions: what the `*_fast` functions of `ops/reduction.py` take, in one pass. */
#include "native.h"

#define LOOPS "reduce_loops.h"
#include "variants.h"

static PyObject *reduced_all(PyObject *object, int mean)
{
    int width = dense_width(object);
    PyArrayObject *x = (PyArrayObject *)object;
    if (!width || !PyArray_SIZE(x)) {
        return NULL;
    }
    npy_intp n = PyArray_SIZE(x);
    PyObject *out = new_array(0, NULL, PyArray_DESCR(x));
    if (out == NULL) {
        return NULL;
    }
    void *data = PyArray_DATA(x), *result = PyArray_DATA((PyArrayObject *)out);
    double by = mean ? (double)n : 1;
    if (n >= RELEASE_GIL) {
        Py_BEGIN_ALLOW_THREADS
        CHOOSE(sum_rows, width, data, result, 1, n, by);
        Py_END_ALLOW_THREADS
    }
    else {
        CHOOSE(sum_rows, width, data, result, 1, n, by);
    }
    return out;
}

/* sum() and mean(): self, dtype. */
static PyObject *sum_kernel(PyObject *const *args)
{
    return args[1] == Py_None ? reduced_all(args[0], 0) : NULL;
}

static PyObject *mean_kernel(PyObject *const *args)
{
    return args[1] == Py_None ? reduced_all(args[0], 1) : NULL;
}

/* sum(dim) and mean(dim): self, dim, keepdim, dtype. */
static PyObject *reduced_dim(PyObject *const *args, int mean)
{
    int width = dense_width(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    PyObject *which = args[1];
    if (!width || !PyArray_SIZE(x) || args[3] != Py_None || !PyBool_Check(args[2])) {
        return NULL;
    }
    if (PyTuple_CheckExact(which) && PyTuple_GET_SIZE(which) == 1) {
        which = PyTuple_GET_ITEM(which, 0);
    }
    int ndim = PyArray_NDIM(x);
    int dim = ndim && ndim <= MAX_DIMS ? as_dim(which, ndim) : -1;
    if (dim < 0) {
        return NULL;
    }
    npy_intp n = PyArray_DIM(x, dim), outer = 1, inner = 1;
    npy_intp dims[MAX_DIMS];
    int left = 0;
    for (int d = 0; d < ndim; d++) {
        npy_intp size = PyArray_DIM(x, d);
        if (d < dim) {
            outer *= size;
        }
        else if (d > dim) {
            inner *= size;
        }
        if (d != dim) {
            dims[left++] = size;
        }
        else if (args[2] == Py_True) {
            dims[left++] = 1;
        }
    }
    PyObject *out = new_array(left, dims, PyArray_DESCR(x));
    if (out == NULL) {
        return NULL;
    }
    void *data = PyArray_DATA(x), *result = PyArray_DATA((PyArrayObject *)out);
    double by = mean ? (double)n : 1;
    int large = PyArray_SIZE(x) >= RELEASE_GIL;
    PyThreadState *thread = large ? PyEval_SaveThread() : NULL;
    if (inner == 1) {
        CHOOSE(sum_rows, width, data, result, outer, n, by);
    }
    else {
        CHOOSE(sum_columns, width, data, result, outer, n, inner, by);
    }
    if (large) {
        PyEval_RestoreThread(thread);
    }
    return out;
}

static PyObject *sum_dim_kernel(PyObject *const *args)
{
    return reduced_dim(args, 0);
}

static PyObject *mean_dim_kernel(PyObject *const *args)
{
    return reduced_dim(args, 1);
}

static PyObject *max_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    PyObject *out = width && PyArray_SIZE(x) ? new_array(0, NULL, PyArray_DESCR(x)) : NULL;
    if (out != NULL) {
        CHOOSE(max_all, width, PyArray_DATA(x), PyArray_DATA((PyArrayObject *)out), PyArray_SIZE(x));
    }
    return out;
}

static PyObject *min_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]);
    PyArrayObject *x = (PyArrayObject *)args[0];
    PyObject *out = width && PyArray_SIZE(x) ? new_array(0, NULL, PyArray_DESCR(x)) : NULL;
    if (out != NULL) {
        CHOOSE(min_all, width, PyArray_DATA(x), PyArray_DATA((PyArrayObject *)out), PyArray_SIZE(x));
    }
    return out;
}

const KernelEntry reduce_kernels[] = {
    {"reduction.sum_fast", sum_kernel},
    {"reduction.mean_fast", mean_kernel},
    {"reduction.sum_dim_fast", sum_dim_kernel},
    {"reduction.mean_dim_fast", mean_dim_kernel},
    {"reduction.max_fast", max_kernel},
    {"reduction.min_fast", min_kernel},
    {NULL, NULL},
};
