/* Losses: of pairs of elements; and the negative log likelihood of classes, forward and backward: a matrix of scores, and a class for each row. */
#include "../runtime/extents.h"
#include "../runtime/engine.h"
#include "norm.h"

#define LOOPS "loss_loops.h"
#include "variants.h"

enum { NONE = 0, MEAN = 1, SUM = 2 };

/* ---------------------------------------------------------------------------------------------------------------- pairs */

#define CHUNK 1024 /* elements whose losses are still in the cache when they are summed */

typedef void (*PairLoss)(const void *input, const void *target, const void *factors, void *output, npy_intp n, double by);
#define LOSS_OF(name) (PairLoss[2]){CHOOSE32(name), CHOOSE64(name)}

/* `object` with the dtype and shape of x, contiguous; a new reference, or NULL without an exception where it does not broadcast. */
static PyArrayObject *spread_like(PyObject *object, PyArrayObject *x)
{
    if (!is_array(object)) {
        return NULL;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_DESCR(array) != PyArray_DESCR(x)) {
        return NULL;
    }
    if (is_contiguous(array) && PyArray_SAMESHAPE(array, x)) {
        return (PyArrayObject *)Py_NewRef(object);
    }
    PyObject *made = new_like(x);
    if (made != NULL && !move_into((PyArrayObject *)made, array)) {
        Py_CLEAR(made);
    }
    return (PyArrayObject *)made;
}

static PyObject *losses(const PairLoss *loss, int width, PyArrayObject *const *operand, Py_ssize_t reduction, double by)
{
    npy_intp n = PyArray_SIZE(operand[0]);
    PyObject *made = reduction == NONE ? new_like(operand[0]) : new_array(0, NULL, PyArray_DESCR(operand[0]));
    if (made == NULL) {
        return NULL;
    }
    double space[CHUNK], total = 0;
    char *out = PyArray_DATA((PyArrayObject *)made);
    const char *data[4]; /* input, target, factors inside, factors of the whole */
    for (int k = 0; k < 4; k++) {
        data[k] = operand[k] == NULL ? NULL : PyArray_DATA(operand[k]);
    }
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    for (npy_intp start = 0; start < n; start += CHUNK) {
        npy_intp count = n - start < CHUNK ? n - start : CHUNK, at = start * width;
        void *to = reduction == NONE ? (void *)(out + at) : (void *)space;
        loss[width == 8](data[0] + at, data[1] + at, data[2] == NULL ? NULL : data[2] + at, to, count, by);
        if (data[3] != NULL) {
            CHOOSE(times, width, to, data[3] + at, count);
        }
        if (reduction != NONE) {
            CHOOSE(total_of, width, to, count, &total);
        }
    }
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (reduction != NONE) {
        total = reduction == MEAN ? total / (double)n : total;
        if (width == 4) {
            *(float *)out = (float)total;
        }
        else {
            *(double *)out = total;
        }
    }
    return made;
}

/* self, target, and factors inside and of the whole, each of which may be None; target and factors may be broadcast to self. */
static PyObject *pair_loss(const PairLoss *loss, PyObject *self, PyObject *target, PyObject *inside, PyObject *whole, PyObject *reduction, double by)
{
    int width = is_array(self) ? float_width((PyArrayObject *)self) : 0;
    PyArrayObject *x = (PyArrayObject *)self, *operand[4] = {NULL, NULL, NULL, NULL};
    Py_ssize_t how;
    if (!width || PyArray_NDIM(x) > MAX_DIMS || !PyArray_SIZE(x) || !as_index(reduction, &how) || how < NONE || how > SUM) {
        return NULL;
    }
    PyObject *const given[4] = {self, target, inside, whole};
    PyObject *made = NULL;
    int fits = 1;
    for (int k = 0; fits && k < 4; k++) {
        operand[k] = given[k] == Py_None ? NULL : spread_like(given[k], x);
        fits = given[k] == Py_None || operand[k] != NULL;
    }
    if (fits) {
        made = losses(loss, width, operand, how, by);
    }
    for (int k = 0; k < 4; k++) {
        Py_XDECREF((PyObject *)operand[k]);
    }
    return made;
}

/* self, target, reduction. */
static PyObject *mse_kernel(PyObject *const *args)
{
    return pair_loss(LOSS_OF(squared_loss), args[0], args[1], Py_None, Py_None, args[2], 0);
}

static PyObject *soft_margin_kernel(PyObject *const *args)
{
    return pair_loss(LOSS_OF(soft_margin_loss), args[0], args[1], Py_None, Py_None, args[2], 0);
}

/* self, target, reduction, and the distance from which the loss is linear. */
static PyObject *smooth_l1_kernel(PyObject *const *args)
{
    double beta;
    if (!as_double(args[3], &beta)) {
        return NULL;
    }
    return pair_loss(beta == 0 ? LOSS_OF(absolute_loss) : LOSS_OF(smooth_loss), args[0], args[1], Py_None, Py_None, args[2], beta);
}

static PyObject *huber_kernel(PyObject *const *args)
{
    double delta;
    return as_double(args[3], &delta) ? pair_loss(LOSS_OF(huber_loss), args[0], args[1], Py_None, Py_None, args[2], delta) : NULL;
}

/* Whether the elements of a contiguous float array are between 0 and 1. */
static int are_shares(PyObject *object)
{
    int width = dense_width(object), all = 0;
    if (width) {
        CHOOSE(all_shares, width, PyArray_DATA((PyArrayObject *)object), PyArray_SIZE((PyArrayObject *)object), &all);
    }
    return all;
}

/* self, target, weight, reduction. Python says which elements are no probabilities. */
static PyObject *entropy_kernel(PyObject *const *args)
{
    if (!are_shares(args[0]) || !are_shares(args[1])) {
        return NULL;
    }
    return pair_loss(LOSS_OF(entropy_loss), args[0], args[1], Py_None, args[2], args[3], 0);
}

/* self, target, weight, pos_weight, reduction. */
static PyObject *logit_kernel(PyObject *const *args)
{
    return pair_loss(args[3] == Py_None ? LOSS_OF(logit_loss) : LOSS_OF(weighted_logit_loss), args[0], args[1], args[3], args[2], args[4], 0);
}

/* -------------------------------------------------------------------------------------------------------------- classes */

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
    PyObject *result = buffer_array(2, PyArray_DIMS(scores), NULL, PyArray_DESCR(scores), (size_t)PyArray_NBYTES(scores), 1);
    if (result != NULL) {
        CHOOSE(class_gradients, c.width, PyArray_DATA((PyArrayObject *)args[0]), c.reduction == NONE, c.target, c.weight, c.samples,
               c.classes, c.ignored, c.reduction == MEAN ? PyArray_DATA((PyArrayObject *)args[6]) : NULL,
               PyArray_DATA((PyArrayObject *)result));
    }
    return result;
}

/* Arguments of `backward_kernel`, when what log_softmax gave over the rows of a matrix is `self`. */
int cross_entropy_fits(PyObject *const *args)
{
    Classes c;
    return read_classes(args + 1, &c) && dense_width(args[0]) == c.width && dense_width(args[6]) == c.width && PyArray_SIZE((PyArrayObject *)args[6]) == 1 &&
           PyArray_SIZE((PyArrayObject *)args[0]) == (c.reduction == NONE ? c.samples : 1);
}

/* The gradient before log_softmax, whose own never is as a whole: a row of it is zero but for one element. */
int cross_entropy_gradient(PyObject *const *args, PyArrayObject *out)
{
    Classes c;
    if (!cross_entropy_fits(args) || !read_classes(args + 1, &c)) {
        PyErr_SetString(PyExc_SystemError, "no arguments of a cross entropy");
        return 0;
    }
    char *shares = scratch_take((size_t)(c.samples * c.width));
    if (shares == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    memset(shares, 0, (size_t)(c.samples * c.width));
    CHOOSE(class_shares, c.width, PyArray_DATA((PyArrayObject *)args[0]), c.reduction == NONE, c.target, c.weight, c.samples, c.ignored,
           c.reduction == MEAN ? PyArray_DATA((PyArrayObject *)args[6]) : NULL, shares);
    const int done = log_softmax_of_shares((PyArrayObject *)args[1], c.target, c.ignored, shares, out);
    scratch_give(shares);
    return done;
}

const KernelEntry loss_kernels[] = {
    {"loss.mse_loss", mse_kernel},
    {"loss.smooth_l1_loss", smooth_l1_kernel},
    {"loss.huber_loss", huber_kernel},
    {"loss.soft_margin_loss", soft_margin_kernel},
    {"loss.binary_cross_entropy", entropy_kernel},
    {"loss.binary_cross_entropy_with_logits", logit_kernel},
    {"loss.nll_loss_forward", forward_kernel},
    {"loss.nll_loss_backward", backward_kernel},
    {NULL, NULL},
};
