/* The negative log likelihood of classes, forward and backward: a matrix of scores, and a class for each row. */
#include "native.h"

#define LOOPS "loss_loops.h"
#include "variants.h"

enum { NONE = 0, MEAN = 1, SUM = 2 };

typedef struct {
    int width;
    npy_intp samples, classes;
    const npy_int64 *target;
    const void *weight;
    Py_ssize_t reduction, ignored;
} Classes;

/* Reads scores, target, weight, reduction, ignore_index; 0 to decline, also for a target out of range, for which Python has words. */
static int read_classes(PyObject *const *args, Classes *c)
{
    c->width = dense_width(args[0]);
    PyArrayObject *scores = (PyArrayObject *)args[0], *target = (PyArrayObject *)args[1];
    if (!c->width || PyArray_NDIM(scores) != 2 || !is_array(args[1]) || PyArray_TYPE(target) != NPY_INT64 || !is_contiguous(target) ||
        !PyArray_ISNOTSWAPPED(target) || PyArray_NDIM(target) != 1) {
        return 0;
    }
    c->samples = PyArray_DIM(scores, 0);
    c->classes = PyArray_DIM(scores, 1);
    if (!c->samples || !c->classes || PyArray_DIM(target, 0) != c->samples || !as_index(args[3], &c->reduction) ||
        !as_index(args[4], &c->ignored) || c->reduction < NONE || c->reduction > SUM) {
        return 0;
    }
    c->weight = NULL;
    if (args[2] != Py_None) {
        if (dense_width(args[2]) != c->width || PyArray_SIZE((PyArrayObject *)args[2]) != c->classes) {
            return 0;
        }
        c->weight = PyArray_DATA((PyArrayObject *)args[2]);
    }
    c->target = PyArray_DATA(target);
    for (npy_intp i = 0; i < c->samples; i++) {
        if (c->target[i] != c->ignored && (c->target[i] < 0 || c->target[i] >= c->classes)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *forward_kernel(PyObject *const *args)
{
    Classes c;
    if (!read_classes(args, &c)) {
        return NULL;
    }
    PyArray_Descr *descr = PyArray_DESCR((PyArrayObject *)args[0]);
    PyObject *loss = new_array(c.reduction == NONE, &c.samples, descr), *total = new_array(0, NULL, descr);
    PyObject *both = loss == NULL || total == NULL ? NULL : PyTuple_Pack(2, loss, total);
    if (both != NULL) {
        void *result = PyArray_DATA((PyArrayObject *)loss), *counted = PyArray_DATA((PyArrayObject *)total);
        CHOOSE(class_losses, c.width, PyArray_DATA((PyArrayObject *)args[0]), c.target, c.weight, c.samples, c.classes, c.ignored,
               c.reduction == MEAN, c.reduction == NONE ? result : NULL, result, counted);
    }
    Py_XDECREF(loss);
    Py_XDECREF(total);
    return both;
}

/* grad_output, self, target, weight, reduction, ignore_index, total_weight. */
static PyObject *backward_kernel(PyObject *const *args)
{
    Classes c;
    if (!read_classes(args + 1, &c) || dense_width(args[0]) != c.width || dense_width(args[6]) != c.width ||
        PyArray_SIZE((PyArrayObject *)args[6]) != 1 ||
        PyArray_SIZE((PyArrayObject *)args[0]) != (c.reduction == NONE ? c.samples : 1)) {
        return NULL;
    }
    PyArrayObject *scores = (PyArrayObject *)args[1];
    PyArray_Descr *descr = PyArray_DESCR(scores);
    Py_INCREF(descr);
    PyObject *result = PyArray_Zeros(2, PyArray_DIMS(scores), descr, 0);
    if (result != NULL) {
        CHOOSE(class_gradients, c.width, PyArray_DATA((PyArrayObject *)args[0]), c.reduction == NONE, c.target, c.weight, c.samples,
               c.classes, c.ignored, c.reduction == MEAN ? PyArray_DATA((PyArrayObject *)args[6]) : NULL,
               PyArray_DATA((PyArrayObject *)result));
    }
    return result;
}

const KernelEntry loss_kernels[] = {
    {"loss.nll_loss_forward", forward_kernel},
    {"loss.nll_loss_backward", backward_kernel},
    {NULL, NULL},
};
