/* Steps of Adam and SGD on the arrays of one parameter, in place. */
#include "native.h"
#include <math.h>

#define root_float_plain sqrtf
#define root_float_wide sqrtf
#define root_float_widest sqrtf
#define root_double_plain sqrt
#define root_double_wide sqrt
#define root_double_widest sqrt

#define LOOPS "optim_loops.h"
#include "variants.h"

/* The common item size of dense writable arrays of one shape, of which `constant` need not be writable; 0 to decline. */
static int common_width(PyObject *const *arrays, int count, int constant)
{
    int width = dense_width(arrays[0]);
    for (int i = 0; width && i < count; i++) {
        PyArrayObject *array = (PyArrayObject *)arrays[i];
        if (dense_width(arrays[i]) != width || !PyArray_SAMESHAPE((PyArrayObject *)arrays[0], array)) {
            return 0;
        }
        if (i != constant && !(PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE)) {
            return 0;
        }
        for (int k = 0; k < i; k++) {
            if (PyArray_SIZE(array) && PyArray_DATA(array) == PyArray_DATA((PyArrayObject *)arrays[k])) {
                return 0;
            }
        }
    }
    return width;
}

static int read_numbers(PyObject *const *args, int count, double *values)
{
    for (int i = 0; i < count; i++) {
        if (PyFloat_CheckExact(args[i])) {
            values[i] = PyFloat_AS_DOUBLE(args[i]);
        }
        else if (PyLong_CheckExact(args[i])) {
            values[i] = PyLong_AsDouble(args[i]);
            if (values[i] == -1 && PyErr_Occurred()) {
                PyErr_Clear();
                return 0;
            }
        }
        else {
            return 0;
        }
    }
    return 1;
}

/* param, grad, mean, square, beta1, beta2, eps, step_size, root, shrink, decay. */
static PyObject *adam_kernel(PyObject *const *args)
{
    double v[7];
    int width = common_width(args, 4, 1);
    if (!width || !read_numbers(args + 4, 7, v)) {
        return NULL;
    }
    npy_intp n = PyArray_SIZE((PyArrayObject *)args[0]);
    void *p = PyArray_DATA((PyArrayObject *)args[0]), *m = PyArray_DATA((PyArrayObject *)args[2]);
    void *s = PyArray_DATA((PyArrayObject *)args[3]);
    const void *g = PyArray_DATA((PyArrayObject *)args[1]);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    CHOOSE(adam_each, width, p, g, m, s, n, v[0], v[1], v[2], v[3], v[4], v[5], v[6]);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return Py_NewRef(Py_True);
}

/* param, grad, buffer or None, lr, momentum, fresh, decay, nesterov. */
static PyObject *sgd_kernel(PyObject *const *args)
{
    double v[4];
    int buffered = args[2] != Py_None;
    int width = common_width(args, buffered ? 3 : 2, 1);
    if (!width || !read_numbers(args + 3, 4, v) || !PyBool_Check(args[7])) {
        return NULL;
    }
    npy_intp n = PyArray_SIZE((PyArrayObject *)args[0]);
    void *p = PyArray_DATA((PyArrayObject *)args[0]), *b = buffered ? PyArray_DATA((PyArrayObject *)args[2]) : NULL;
    const void *g = PyArray_DATA((PyArrayObject *)args[1]);
    int nesterov = args[7] == Py_True;
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    CHOOSE(sgd_each, width, p, g, b, n, v[0], v[1], v[2], v[3], nesterov);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return Py_NewRef(Py_True);
}

const KernelEntry optim_kernels[] = {
    {"optim.adam_step", adam_kernel},
    {"optim.sgd_step", sgd_kernel},
    {NULL, NULL},
};
