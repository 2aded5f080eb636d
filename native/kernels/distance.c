/* Distances of all pairs of rows, and their gradients. The Python kernels of `matmul.py` say the same. */
#include "kinds.h"
#include <math.h>

#define LOOPS "distance_loops.h"
#include "variants.h"

/* self, p */
static PyObject *pdist_kernel(PyObject *const *args)
{
    int width = dense_width(args[0]);
    double p;
    if (!width || PyArray_NDIM((PyArrayObject *)args[0]) != 2 || !as_double(args[1], &p) || p < 0) {
        return NULL;
    }
    PyArrayObject *self = (PyArrayObject *)args[0];
    npy_intp rows = PyArray_DIM(self, 0), n = PyArray_DIM(self, 1), pairs = rows ? rows * (rows - 1) / 2 : 0;
    PyObject *out = new_array(1, &pairs, PyArray_DESCR(self));
    if (out != NULL) {
        PyThreadState *thread = pairs * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        CHOOSE(distances, width, PyArray_DATA(self), rows, n, p, PyArray_DATA((PyArrayObject *)out));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

/* grad, self, p, the distances */
static PyObject *pdist_backward_kernel(PyObject *const *args)
{
    int width = dense_width(args[1]);
    double p;
    if (!width || dense_width(args[0]) != width || dense_width(args[3]) != width || PyArray_NDIM((PyArrayObject *)args[1]) != 2 ||
        !as_double(args[2], &p) || p < 0) {
        return NULL;
    }
    PyArrayObject *grad = (PyArrayObject *)args[0], *self = (PyArrayObject *)args[1], *lengths = (PyArrayObject *)args[3];
    npy_intp rows = PyArray_DIM(self, 0), n = PyArray_DIM(self, 1), pairs = rows ? rows * (rows - 1) / 2 : 0;
    if (PyArray_SIZE(grad) != pairs || PyArray_SIZE(lengths) != pairs) {
        return NULL;
    }
    PyObject *out = new_like(self);
    if (out != NULL) {
        memset(PyArray_DATA((PyArrayObject *)out), 0, (size_t)PyArray_NBYTES((PyArrayObject *)out));
        PyThreadState *thread = pairs * n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
        CHOOSE(distances_backward, width, PyArray_DATA(grad), PyArray_DATA(self), rows, n, p, PyArray_DATA(lengths),
               PyArray_DATA((PyArrayObject *)out));
        if (thread != NULL) {
            PyEval_RestoreThread(thread);
        }
    }
    return out;
}

const KernelEntry distance_kernels[] = {
    {"matmul.pdist_forward", pdist_kernel},
    {"matmul.pdist_backward", pdist_backward_kernel},
    {NULL, NULL},
};
