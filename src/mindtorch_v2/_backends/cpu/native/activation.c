/* Activations of float arrays, forward and backward; the gradients of contiguous ones. */
#include "native.h"

#define LOOPS "activation_loops.h"
#include "variants.h"

typedef void (*Each)(const void *input, void *output, npy_intp n);
typedef void (*EachWithGrad)(const void *gradient, const void *input, void *output, npy_intp n);

#define BOTH(name) CHOOSE32(name), CHOOSE64(name)
#define FLOAT(name) CHOOSE32(name), NULL

/* Whether the loop can write straight to `out`. */
static int is_fitting(PyArrayObject *like, PyObject *out)
{
    return is_array(out) && is_contiguous((PyArrayObject *)out) && PyArray_DESCR((PyArrayObject *)out) == PyArray_DESCR(like) &&
           PyArray_SAMESHAPE((PyArrayObject *)out, like) && (PyArray_FLAGS((PyArrayObject *)out) & NPY_ARRAY_WRITEABLE);
}

/* Floats of any layout, from a contiguous copy and by one where need be, so that the last digit depends neither on the layout of the argument nor
 * on that of the result. */
static PyObject *run_each(PyObject *object, PyObject *out, Each of_float, Each of_double)
{
    if (!is_array(object)) {
        return NULL;
    }
    PyArrayObject *x = (PyArrayObject *)object;
    int width = float_width(x);
    Each each = width == 4 ? of_float : width == 8 ? of_double : NULL;
    npy_intp n = PyArray_SIZE(x);
    int wanted = out != NULL && out != Py_None;
    if (each == NULL || n == 0 || (wanted && !(is_array(out) && PyArray_SAMESHAPE((PyArrayObject *)out, x)))) {
        return NULL;
    }
    PyObject *result;
    if (!is_contiguous(x)) {
        result = PyArray_NewCopy(x, NPY_CORDER);
        x = (PyArrayObject *)result;
    }
    else {
        result = wanted && is_fitting(x, out) ? Py_NewRef(out) : new_like(x);
    }
    if (result == NULL) {
        return NULL;
    }
    const void *data = PyArray_DATA(x);
    void *target = PyArray_DATA((PyArrayObject *)result);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    each(data, target, n);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    if (wanted && result != out) {
        int failed = PyArray_CopyInto((PyArrayObject *)out, (PyArrayObject *)result);
        Py_DECREF(result);
        return failed ? NULL : Py_NewRef(out);
    }
    return result;
}

/* Of contiguous arrays only: a fast path leaves the layout of all others to the rule. */
static PyObject *run_dense(PyObject *object, Each of_float, Each of_double)
{
    return dense_width(object) ? run_each(object, NULL, of_float, of_double) : NULL;
}

static PyObject *run_with_grad(PyObject *gradient, PyObject *object, EachWithGrad of_float, EachWithGrad of_double)
{
    int width = dense_width(gradient);
    EachWithGrad each = width == 4 ? of_float : width == 8 ? of_double : NULL;
    if (each == NULL || dense_width(object) != width) {
        return NULL;
    }
    PyArrayObject *grad = (PyArrayObject *)gradient, *x = (PyArrayObject *)object;
    if (!PyArray_SAMESHAPE(grad, x) || PyArray_SIZE(x) == 0) {
        return NULL;
    }
    PyObject *result = new_like(x);
    if (result == NULL) {
        return NULL;
    }
    npy_intp n = PyArray_SIZE(x);
    const void *first = PyArray_DATA(grad), *second = PyArray_DATA(x);
    void *target = PyArray_DATA((PyArrayObject *)result);
    PyThreadState *thread = n >= RELEASE_GIL ? PyEval_SaveThread() : NULL;
    each(first, second, target, n);
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
    }
    return result;
}

static PyObject *fast_relu(PyObject *const *args)
{
    return run_dense(args[0], BOTH(relu_each));
}

static PyObject *relu(PyObject *const *args)
{
    return run_each(args[0], args[1], BOTH(relu_each));
}

/* grad_output, self, threshold: relu's, where the threshold is 0. */
static PyObject *threshold_backward(PyObject *const *args)
{
    PyObject *bound = args[2];
    int zero = (PyLong_CheckExact(bound) || PyFloat_CheckExact(bound)) && !PyObject_IsTrue(bound);
    return zero ? run_with_grad(args[0], args[1], BOTH(threshold_zero_each)) : NULL;
}

/* 1 for approximate="none", 2 for "tanh", 0 for anything else. */
static int approximation(PyObject *object)
{
    if (!PyUnicode_CheckExact(object)) {
        return 0;
    }
    return PyUnicode_CompareWithASCIIString(object, "none") == 0 ? 1 : PyUnicode_CompareWithASCIIString(object, "tanh") == 0 ? 2 : 0;
}

static PyObject *gelu_to(PyObject *x, PyObject *approximate, PyObject *out)
{
    switch (approximation(approximate)) {
    case 1:
        return run_each(x, out, FLOAT(gelu_each));
    case 2:
        return run_each(x, out, FLOAT(gelu_tanh_each));
    default:
        return NULL;
    }
}

static PyObject *fast_gelu(PyObject *const *args)
{
    return dense_width(args[0]) ? gelu_to(args[0], args[1], NULL) : NULL;
}

static PyObject *gelu(PyObject *const *args)
{
    return gelu_to(args[0], args[1], args[2]);
}

static PyObject *gelu_backward(PyObject *const *args)
{
    switch (approximation(args[2])) {
    case 1:
        return run_with_grad(args[0], args[1], FLOAT(gelu_backward_each));
    case 2:
        return run_with_grad(args[0], args[1], FLOAT(gelu_tanh_backward_each));
    default:
        return NULL;
    }
}

static PyObject *fast_silu(PyObject *const *args)
{
    return run_dense(args[0], BOTH(silu_each));
}

static PyObject *silu(PyObject *const *args)
{
    return run_each(args[0], args[1], BOTH(silu_each));
}

static PyObject *silu_backward(PyObject *const *args)
{
    return run_with_grad(args[0], args[1], BOTH(silu_backward_each));
}

static PyObject *fast_sigmoid(PyObject *const *args)
{
    return run_dense(args[0], BOTH(sigmoid_each));
}

static PyObject *sigmoid(PyObject *const *args)
{
    return run_each(args[0], args[1], BOTH(sigmoid_each));
}

static PyObject *sigmoid_backward(PyObject *const *args)
{
    return run_with_grad(args[0], args[1], BOTH(sigmoid_backward_each));
}

static PyObject *tanh_backward(PyObject *const *args)
{
    return run_with_grad(args[0], args[1], BOTH(tanh_backward_each));
}

static PyObject *fast_erf(PyObject *const *args)
{
    return run_dense(args[0], FLOAT(erf_each));
}

static PyObject *erf_to(PyObject *const *args)
{
    return run_each(args[0], args[1], FLOAT(erf_each));
}

const KernelEntry activation_kernels[] = {
    {"nn.fast_relu", fast_relu},
    {"nn.relu", relu},
    {"nn.threshold_backward", threshold_backward},
    {"nn.fast_threshold_backward", threshold_backward},
    {"nn.fast_gelu", fast_gelu},
    {"nn.gelu", gelu},
    {"nn.gelu_backward", gelu_backward},
    {"nn.fast_gelu_backward", gelu_backward},
    {"nn.fast_silu", fast_silu},
    {"nn.silu", silu},
    {"nn.silu_backward", silu_backward},
    {"nn.fast_silu_backward", silu_backward},
    {"pointwise.fast_sigmoid", fast_sigmoid},
    {"pointwise.sigmoid", sigmoid},
    {"pointwise.sigmoid_backward", sigmoid_backward},
    {"pointwise.fast_sigmoid_backward", sigmoid_backward},
    {"pointwise.tanh_backward", tanh_backward},
    {"pointwise.fast_tanh_backward", tanh_backward},
    {"special.fast_erf", fast_erf},
    {"special.erf", erf_to},
    {NULL, NULL},
};
